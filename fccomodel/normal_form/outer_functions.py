"""Outer functions in an expression: a non-smooth node as a function with a computable prox."""

from __future__ import annotations

import functools
from collections.abc import Callable

from fccomodel.core import ir
from fccomodel.library import atoms
from fccomodel.library.atoms import ScalarAtom
from fccomodel.library.proximal import Largest, Proximal, Smooth, line, of
from fccomodel.structure import facts_of


def outer_function(
    node: ir.Expr, constant: Callable[[ir.Expr], float | None]
) -> tuple[Proximal, ir.Expr | None, ir.Reduce | None] | str:
    """(function with a prox, argument, reduction) for a non-smooth node, or the reason why there is none.

    argument   the only argument of the function; None: the node's own arguments, or those of a set
    reduction  the reduction whose elements are the arguments, or None

    Convex functions come before weakly convex ones, and both before Newton's method.
    """
    if isinstance(node, ir.Apply):
        name = node.op
    else:
        name = getattr(node, "kind", "it")
    reason = f"no prox is known for `{name}`"
    candidates: list[tuple[Proximal, ir.Expr]] = []
    for argument in arguments(node, constant):
        function = of(node, (argument,), facts_of, constant)
        if isinstance(function, str):
            reason = function
        else:
            candidates.append((function, argument))
    below = leaves(node, constant, deep=True)
    if len(below) > 1 and not any(leaf.shape for leaf in below):
        form = line(node, below, facts_of, constant)
        if not isinstance(form, str):
            candidates.append(form[::-1])
    if candidates:
        return *min(candidates, key=lambda pair: (isinstance(pair[0], Smooth), pair[0].weak > 0)), None
    atom = atoms.of(node)
    if atom is not None and atom.extreme > 0 and not node.shape:
        return Largest.of(), None, None
    if isinstance(node, ir.Reduce) and not node.shape:
        function = of(node, (node.body,), facts_of, constant)
        if isinstance(function, str):
            return function
        return (function, None, node)
    return reason


def refusal(node: ir.Expr, constant: Callable[[ir.Expr], float | None]) -> str:
    """Why a non-smooth node has no envelope."""
    reason = outer_function(node, constant)
    if isinstance(reason, str):
        return reason
    return "its envelope is of no use to the algorithm"


def leaves(node: ir.Expr, constant: Callable[[ir.Expr], float | None], *, deep: bool) -> list[ir.Expr]:
    """The varying arguments of ``node`` as a piecewise linear-quadratic function."""
    below: dict[int, ir.Expr] = {}
    seen: set[int] = set()
    stack = [node]
    while stack:
        part = stack.pop()
        if id(part) in seen or constant(part) is not None:
            continue
        seen.add(id(part))
        if (
            isinstance(part, ir.Apply)
            and _bends(part) is not None
            and (part is node or deep and _composed(part))
        ):
            stack.extend(reversed(part.args))
        else:
            below[id(part)] = part
    return list(below.values())


def arguments(node: ir.Expr, constant: Callable[[ir.Expr], float | None]) -> list[ir.Expr]:
    """Candidates for the only argument of ``node`` as a function with a prox.

    They are the array below a norm, the deepest expression and the nearest one.
    """
    candidates: list[ir.Expr] = []
    for deep in (True, False):
        below = leaves(node, constant, deep=deep)
        if len(below) == 1 and below[0] is not node:
            candidates += _array(below[0], constant) + below
        elif below == [node]:
            candidates += _array(node, constant)
    return list({id(a): a for a in candidates}.values())


def _array(node: ir.Expr, constant: Callable[[ir.Expr], float | None]) -> list[ir.Expr]:
    """A list with the array x if the node is an affine function of a norm or a sum of x; otherwise []."""
    while isinstance(node, ir.Apply) and _bends(node) is False and not node.shape:
        varying = [a for a in node.args if constant(a) is None]
        if len(varying) != 1:
            return []
        node = varying[0]
    of_array = isinstance(node, ir.Apply) and not node.shape and bool(node.args) and bool(node.args[0].shape)
    if of_array and isinstance(node, ir.Apply):
        return [node.args[0]]
    return []


def _composed(part: ir.Expr) -> bool:
    """Whether a kink lies below, reached by piecewise linear-quadratic operations alone.

    Each node remembers it.
    """
    memo = "_composed"
    if memo not in vars(part):
        vars(part)[memo] = _has_kink_below(part)
    return vars(part)[memo]


def _has_kink_below(part: ir.Expr) -> bool:
    """Whether a kink lies below, reached by piecewise linear-quadratic operations alone."""
    seen: set[int] = set()
    stack = [part]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        bends = _bends(node)
        if bends:
            return True
        if bends is False:
            stack.extend(node.children)
    return False


def _bends(node: ir.Expr) -> bool | None:
    """True for a piecewise polynomial operation, False for a sum, product or quotient, None otherwise."""
    atom = atoms.of(node)
    if atom is None:
        return None
    return _atom_bends(atom)


@functools.cache
def _atom_bends(atom: atoms.Atom) -> bool | None:
    """The same of an atom, which does not depend on its arguments."""
    if atom.bent or isinstance(atom, ScalarAtom) and atom.linear([True, *[False] * (atom.min_count - 1)]):
        return atom.bent
    return None
