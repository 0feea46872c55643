"""Certified positive lower bounds of convex functions on the bound data.

They keep the arguments of roots and logarithms away from 0. For a quadratic function the least value
has a closed form. For others a point v near the minimiser is computed, and by convexity

    f(w) >= f(v) + <grad f(v), w - v> >= f(v) - <grad f(v), v> - support(-grad f(v))

for all w in a bounded simple set, whose support function is known.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from math import inf, prod
from typing import NamedTuple

import torch

from fccomodel.core import ir
from fccomodel.core.diagnostics import FccoError
from fccomodel.evaluation import memory
from fccomodel.evaluation.interpret import evaluate
from fccomodel.evaluation.sets import elements
from fccomodel.evaluation.sets.elements import Pointwise
from fccomodel.library import atoms, reductions
from fccomodel.numerics import concave_maxima
from fccomodel.structure.declarations import Declarations
from fccomodel.structure.facts import Facts, Standing

See = Callable[[ir.Expr], Facts]
MAX_WORK = 1e9  # numbers that all passes over the data may touch: passes x rows x variables
MAX_MEMBERS = 64  # members of a family, each of which is minimised by itself
STEPS = 200  # steps of the projected gradient method
ROUNDING = 1e-4  # share of f(v): a smaller least value may be rounding alone
FLAT = 1e-10  # share of the largest curvature below which a direction counts as flat
LARGEST_FLAT_SLOPE = 1e-8  # share of the whole slope along flat directions that may be rounding


class Least(NamedTuple):
    """A positive lower bound of a function, and how far it can be trusted.

    The standing is ``estimated`` if rounding hides whether the function is flat in some direction,
    since the function might fall further along it.
    """

    value: float
    standing: Standing = Standing.BOUNDED


def least(facts: Facts, declared: Declarations, see: See) -> Least | None:
    """A positive lower bound of a convex scalar function inside the variables' simple sets, or None.

    It holds for all members of the families that the expression stands in. None is returned if no
    bound is found, or if the computation would cost too much (``MAX_WORK``, ``MAX_MEMBERS``).
    """
    problem, bound = declared.problem, declared.bound
    if problem is None or bound is None or declared.holes or declared.within:
        return None
    if not facts.convex or facts.expr.shape:
        return None
    if not facts.leaves.keys() <= problem.variables.keys():  # it has arguments of outer functions
        return None
    key = ("least", facts.expr, problem, declared.free)
    lowest = memory.remember(bound, key, lambda: _least(facts, declared, see))
    if lowest is not None or facts.interval.value.lo < 0:
        return lowest
    match facts.expr:
        case ir.Reduce(body=body) if reductions.of(facts.expr).average:
            return least(see(body), declared, see)
    match atoms.as_power(facts.expr):
        case (e, ir.Const(value=p)) if p > 0:
            inner = least(see(e), declared, see)
            if inner is None:
                return None
            return inner._replace(value=inner.value**p)
    return None


def _unlisted(binder: ir.Binder) -> bool:
    """Whether the elements that a binder ranges over have no list: draws, or vectors."""
    return isinstance(binder.domain, ir.Distribution | ir.VectorSet)


def _least(facts: Facts, declared: Declarations, see: See) -> Least | None:
    """``least`` for the function as a whole, without looking at its parts."""
    assert declared.problem is not None and declared.bound is not None
    expr = facts.expr
    nodes = list(ir.walk(expr))
    if any(_sampled(n) for n in nodes) or any(map(_unlisted, ir.free_binders(expr))):
        return None
    names = sorted(ir.variables_of(expr))
    domains, in_bounded_sets = [], False
    if not declared.free:
        sets_of_variables = [_set(declared.problem.variables[name]) for name in names]
        domains = [domain for domain in sets_of_variables if domain is not None]
        all_bounded = all(declared.variable(name).size.finite for name in names)
        in_bounded_sets = len(domains) == len(names) and all_bounded
    quadratic = not facts.affine and facts.degree == 2
    by_tangent = in_bounded_sets and facts.smooth
    free = sorted(ir.free_binders(expr), key=lambda b: b.name)
    members = [elements.ids(declared.bound, b.domain) for b in free]
    size = sum(declared.entries(declared.problem.variables[name].shape) for name in names)
    if size == inf:
        return None
    count = prod(len(m) for m in members)
    passes = 0
    if quadratic:
        passes += count * (int(size) + 2)
    if by_tangent:
        passes += count * 4 * STEPS
    reductions = [node for node in nodes if isinstance(node, ir.Reduce)]
    rows = [prod(declared.count(b.domain) for b in node.binders) for node in reductions]
    if not passes or count > MAX_MEMBERS or passes * max([1.0, *rows]) * size > MAX_WORK:
        return None
    lowest, standing = inf, Standing.BOUNDED
    for chosen in itertools.product(*members):
        f = _Function(declared, expr, names, dict(zip(free, chosen, strict=True)))
        bound = Least(-inf)
        try:
            if quadratic:
                bound = f.least_of_quadratic()
            if by_tangent and bound.value <= 0:
                bound = Least(f.least_inside(domains))
        except FccoError:  # a member without a value; conditions around it may leave it out
            return None
        lowest, standing = min(lowest, bound.value), max(standing, bound.standing)
    if 0 < lowest < inf:
        return Least(lowest, standing)
    return None


def _sampled(node: ir.Expr) -> bool:
    """Whether the node's value is not a finite sum over bound data."""
    if isinstance(node, ir.NetCall):
        return True
    return isinstance(node, ir.Reduce) and any(
        isinstance(b.domain, ir.Distribution | ir.VectorSet) for b in node.binders
    )


def _set(variable: ir.Variable) -> ir.VectorSet | None:
    """The only simple set of a variable, or None if it has none, several, or a net's weights."""
    if len(variable.sets) == 1 and variable.net is None:
        return variable.sets[0]
    return None


class _Function:
    """An expression at one member of its families: a function of one vector with all variables' entries."""

    def __init__(self, declared: Declarations, expr: ir.Expr, names: list[str], env: dict[ir.Binder, int]):
        assert declared.problem is not None and declared.bound is not None
        self.bound, self.expr, self.env = declared.bound, expr, env
        self.shapes = {
            name: elements.shape(declared.bound, declared.problem.variables[name].shape) for name in names
        }
        self.size = sum(prod(shape) for shape in self.shapes.values())

    def split(self, w: torch.Tensor) -> dict[str, torch.Tensor]:
        """The variables, by name, from the vector of all their entries."""
        pieces = w.split([prod(shape) for shape in self.shapes.values()])
        return {
            name: piece.reshape(shape)
            for (name, shape), piece in zip(self.shapes.items(), pieces, strict=True)
        }

    def __call__(self, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The value and the gradient."""
        with torch.inference_mode(False), torch.enable_grad():
            w = w.detach().clone().requires_grad_()
            value = evaluate(self.bound, self.expr, self.split(w), self.env)
            (gradient,) = torch.autograd.grad(value, w)
        return value.detach(), gradient

    def least_of_quadratic(self) -> Least:
        """The bound (c - b' A^+ b / 2) / 2 for f(w) = w' A w / 2 + b' w + c.

        Its value is -inf if f has no least value, or if rounding hides it. A is scaled to a unit
        diagonal before curvatures are compared, so that the units of the variables do not matter.
        """
        zero = torch.zeros(self.size, dtype=torch.float64)
        c, b = self(zero)
        units = torch.eye(self.size, dtype=torch.float64)
        A = torch.stack([self(unit)[1] - b for unit in units])
        if not bool(torch.isfinite(A).all()):
            return Least(-inf)
        present = (A != 0).any(0) | (b != 0)  # entries that f depends on
        symmetric = (A + A.T) / 2
        A = symmetric[present][:, present]
        b = b[present]
        unit = A.diagonal().clamp(min=0).sqrt()
        unit = unit.where(unit > 0, 1.0)
        scaled = A / torch.outer(unit, unit)
        curvature, axes = torch.linalg.eigh(scaled)
        slope = axes.T @ (b / unit)
        largest = curvature[-1:].clamp(min=0)
        flat = curvature <= FLAT * largest
        along_flat = float(slope[flat].norm())
        if along_flat > LARGEST_FLAT_SLOPE * float(slope.norm()):
            return Least(-inf)
        curved = ~flat
        decreases = slope[curved] ** 2 / curvature[curved]
        value = float(c - decreases.sum() / 2)
        rounding = ROUNDING * float(c.abs())
        if value <= rounding:
            return Least(-inf)
        standing = Standing.ESTIMATED if bool(flat.any()) else Standing.BOUNDED
        return Least(value / 2, standing)

    def least_inside(self, domains: list[ir.VectorSet]) -> float:
        """Half the least value of the tangent plane at a point near the minimiser, inside the sets.

        It is -inf if rounding may hide that value.
        """
        simple = [Pointwise(self.bound).simple_set(d) for d in domains]

        def project(w: torch.Tensor) -> torch.Tensor:
            """The projection of w onto the product of the sets."""
            inside = []
            for part, (one, args) in zip(self.split(w).values(), simple, strict=True):
                inside.append(one.nearest(part, *args).reshape(-1))
            return torch.cat(inside)

        def negated(w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            """The value and the gradient of -f."""
            value, gradient = self(w)
            return -value, -gradient

        origin = torch.zeros(self.size, dtype=torch.float64)
        v = concave_maxima.ascent(negated, project, project(origin), steps=STEPS)
        f, gradient = self(v)
        furthest = 0.0
        for part, (one, args) in zip(self.split(gradient).values(), simple, strict=True):
            furthest += float(one.support(-part, *args))
        value = float(f - gradient @ v) - furthest
        rounding = ROUNDING * float(f.abs())
        if value > rounding:
            return value / 2
        return -inf
