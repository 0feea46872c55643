"""Constraints on monotone functions as constraints on their arguments: log(1 + x^2) <= 5 as 1 + x^2 <=
e^5.

A function that is not convex may have convex level sets (A. Agrawal, S. Boyd, Disciplined quasiconvex
programming, 2020).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fccomodel.conic.affine import Affine, NotConic, number
from fccomodel.core import ir
from fccomodel.evaluation.sets.axes import Env
from fccomodel.library import atoms
from fccomodel.library.atoms import Interval

if TYPE_CHECKING:
    from fccomodel.conic.model import Walk

#: Steps of a bisection between two finite numbers.
BISECTION_STEPS = 200
#: The range, from minus this to this, in which a crossing is sought first.
FIRST_RANGE = 1e12
#: The number up to which the range then grows.
LAST_RANGE = 1e100
#: The relative step of a difference quotient.
DIFFERENCE_STEP = 1e-6
#: The least difference that such a quotient may rest on, relative to the function's value.
LEAST_DIFFERENCE = 1e-9
#: Monotone functions of which a bound is one of their argument, and those of them that are not
#: defined everywhere.
STRAIGHTENED = ("log", "sqrt", "exp")
PARTIAL = ("log", "sqrt")


def peeled(walk: Walk, body: ir.Expr, env: Env) -> tuple[int, float]:
    """State body <= 0 without its outermost monotone functions.

    Returns the number of the condition, and the change of the body for a unit change of the remaining
    argument. Raises NotConic if the condition is not conic without any of these functions.
    """
    condition = Peeled(body)
    while True:
        condition = condition.inside(walk, env)
        with suppress(NotConic):
            value = walk.value(condition.node, env)
            if not value.axes and isinstance(value.data, Affine) and condition.slope:
                return _state(walk, value.data, condition)


def straight(walk: Walk, body: ir.Expr, env: Env) -> tuple[int, float] | None:
    """State body <= 0 as a bound of an affine function, such as log(x) >= 30 as x >= exp(30).

    Returns the number of the condition, and the change of the body for a unit change of the affine
    function. Returns None if the body is not monotone in an affine function, or if the argument of a root
    or a logarithm might be negative, which the bound would allow.
    """
    condition = Peeled(body)
    curved = False
    try:
        while not curved or not _affine(condition.node):
            node = condition.node
            if isinstance(node, ir.Apply) and node.op not in ("add", "sub", "neg", "mul"):
                if node.op not in STRAIGHTENED:
                    return None
                curved = True
            condition = condition.inside(walk, env)
        value = walk.value(condition.node, env)
    except NotConic:
        return None
    if value.axes or not isinstance(value.data, Affine) or not condition.slope:
        return None
    is_upper_bound = condition.sign > 0
    if is_upper_bound and not _total(body):
        return None
    return walk.cones.nonneg((condition.level - value.data) * condition.sign), condition.slope


class Peeled(NamedTuple):
    """A condition body <= 0 as sign * node <= sign * level, without some outer monotone functions.

    slope  the change of the body for a unit change of the node, at the level
    """

    node: ir.Expr
    level: float = 0.0
    sign: float = 1.0
    slope: float = 1.0

    def inside(self, walk: Walk, env: Env) -> Peeled:
        """The same condition for the argument of the outermost function. Raises NotConic if that is not
        monotone.
        """
        node, level, turned, factor = _inside(walk, self.node, env, self.level)
        return Peeled(node, level, self.sign * turned, self.slope * factor)


def _affine(node: ir.Expr) -> bool:
    """Whether an expression is written as an affine one: sums, multiples and entries of variables."""
    if isinstance(node, ir.Var) or not ir.variables_of(node):
        return True
    atom = atoms.of(node)
    if atom is None:
        return False
    varying = [bool(ir.variables_of(arg)) for arg in node.children]
    return bool(atom.linear(varying)) and all(map(_affine, node.children))


def _total(body: ir.Expr) -> bool:
    """Whether all functions in the expression are defined everywhere."""
    return not any(isinstance(part, ir.Apply) and part.op in PARTIAL for part in ir.walk(body))


def convex(body: ir.Expr, see: Callable[[ir.Expr], Any]) -> bool:
    """Whether body <= 0 is known to be convex, as written or without its outermost monotone functions.

    ``see`` gives the known facts about an expression.
    """

    def where(node: ir.Expr) -> Interval:
        """An interval that contains the value of an expression."""
        return see(node).interval.value

    node = body
    sign = 1.0
    with suppress(NotConic):
        while not (see(node).convex if sign > 0 else see(node).concave):
            _, k, turned = _monotone(node, where)
            node = node.children[k]
            sign *= turned
        return True
    return False


def _state(walk: Walk, value: Affine, condition: Peeled) -> tuple[int, float]:
    """State a condition on an affine value.

    A sum of squares is stated by its root, which has the scale of the variables.
    """
    _, level, sign, slope = condition
    _, const, _ = value.entries()
    rest = level - float(const[0])
    root = None
    if sign > 0 and rest > 0:
        root = walk.cones.norm_of(value - (level - rest))
    if root is None:
        return walk.cones.nonneg((level - value) * sign), slope
    return walk.cones.nonneg(rest**0.5 - root), 2 * rest**0.5 * slope


def _monotone(node: ir.Expr, where: Callable[[ir.Expr], Interval]) -> tuple[atoms.ScalarAtom, int, float]:
    """The outermost monotone function, the place of its varying argument, and -1 if it reverses
    inequalities.
    """
    atom = atoms.of(node) if isinstance(node, ir.Apply) else None
    if not isinstance(node, ir.Apply) or not isinstance(atom, atoms.ScalarAtom):
        raise NotConic("a constraint that is no monotone function")
    varying = [k for k, arg in enumerate(node.args) if ir.variables_of(arg)]
    if len(varying) != 1 or node.shape:
        raise NotConic("a constraint on a function of several")
    (k,) = varying
    direction = atom.monotone(*map(where, node.args), argument=k)
    if direction == "increasing":
        return atom, k, 1.0
    if direction == "decreasing":
        return atom, k, -1.0
    raise NotConic("a constraint on a function that is not monotone")


def _inside(walk: Walk, node: ir.Expr, env: Env, level: float) -> tuple[ir.Expr, float, float, float]:
    """The argument of the outermost monotone function, and the inequality for it.

    The result is the argument, its level, -1 if the inequality is reversed, and the function's slope there.
    """
    atom, k, turned = _monotone(node, walk.where)
    values = [np.float64(0.0)] * len(node.children)
    for j, arg in enumerate(node.children):
        if j != k:
            values[j] = np.float64(_constant(walk, arg, env))

    def function(u: float) -> float:
        """The atom as a function of its argument k."""
        values[k] = np.float64(u)
        return float(atom.value(*values))

    place = walk.where(node.children[k])
    inside = _crossing(lambda u: turned * function(u), turned * level, place)
    return node.children[k], inside, turned, _steepness(function, inside)


def _steepness(function: Callable[[float], float], at: float) -> float:
    """The size of a monotone function's slope, by a difference quotient. Its step is relative, as the
    function may end nearby (a root near 0), unless rounding would decide (u + 1 near 0)."""
    step = DIFFERENCE_STEP * abs(at)
    near = abs(function(at + step) - function(at - step))
    if near >= LEAST_DIFFERENCE * abs(function(at)) and step > 0:
        return near / (2 * step)
    step = DIFFERENCE_STEP * (1 + abs(at))
    return abs(function(at + step) - function(at - step)) / (2 * step)


def _constant(walk: Walk, node: ir.Expr, env: Env) -> float:
    """The value of an expression without variables, which must be one number."""
    value = number(walk.value(node, env).data)
    if value.size != 1:
        raise NotConic("a level that differs from member to member")
    return float(value.reshape(()))


def _crossing(function: Callable[[float], float], level: float, where: Interval) -> float:
    """The point at which an increasing function reaches a level."""

    def under(u: float) -> bool:
        """Whether the function is below the level at u."""
        with np.errstate(all="ignore"):
            return function(u) <= level

    low = max(where.lo, -FIRST_RANGE)
    high = min(where.hi, FIRST_RANGE)
    with np.errstate(all="ignore"):
        if math.isnan(function(low)):  # of roots and logarithms
            low = max(low, 0.0)
    while high < where.hi and high < LAST_RANGE and under(high):
        high *= FIRST_RANGE
    high = min(high, where.hi)
    above_low = low + 1e-12 * abs(low)
    if math.isnan(low + high) or not under(above_low) or under(high):
        raise NotConic("a level that the function does not cross")
    for _ in range(BISECTION_STEPS):
        middle = (low + high) / 2
        if under(middle):
            low = middle
        else:
            high = middle
    return low
