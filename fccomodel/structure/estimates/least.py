"""The least value of a convex function on the bound data, certified: what keeps the argument of a root
or a logarithm from 0.

A quadratic function has it in closed form. Elsewhere a point v near the minimiser is found, and by convexity

    f(w) >= f(v) + <grad f(v), w - v> >= f(v) - <grad f(v), v> - support(-grad f(v))     for w in a bounded simple set,

whose support function is known.
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
#: numbers that passes over the data may take in all, and members of a family that are looked at one by one
MOST_WORK, MOST_MEMBERS = 1e9, 64
STEPS = 200
#: of the values that it is the difference of: a least value below this may be rounding alone
ROUNDING = 1e-4
#: the share of the largest curvature up to which a direction may be flat
FLAT = 1e-10


class Least(NamedTuple):
    """A positive number that a function is never below, and how far that can be trusted: it is
    estimated where rounding hides whether the function is flat in some direction, along which it
    might fall further."""

    value: float
    standing: Standing = Standing.BOUNDED


def least(facts: Facts, declared: Declarations, see: See) -> Least | None:
    """A positive number that a convex, scalar function of the variables is never below, whatever
    members of the families around it are taken, inside the variables' simple sets; None where none
    is found, or what it takes is too much."""
    problem, bound = declared.problem, declared.bound
    if (
        problem is None
        or bound is None
        or declared.holes
        or declared.within
        or not facts.convex
        or facts.expr.shape
    ):
        return None
    if not facts.leaves.keys() <= problem.variables.keys():  # of arguments of outer functions too
        return None
    lowest = memory.remember(
        bound, ("least", facts.expr, problem, declared.free), lambda: _least(facts, declared, see)
    )
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


def _least(facts: Facts, declared: Declarations, see: See) -> Least | None:
    """The same of the function as a whole, not from its parts."""
    assert declared.problem is not None and declared.bound is not None
    expr = facts.expr
    nodes = list(ir.walk(expr))
    if any(_sampled(n) for n in nodes):
        return None
    names = sorted(ir.variables_of(expr))
    if declared.free:
        domains = []
    else:
        domains = [d for name in names if (d := _set(declared.problem.variables[name])) is not None]
    bounded = len(domains) == len(names) and all(declared.variable(name).size.finite for name in names)
    square = not facts.affine and facts.degree == 2
    free = sorted(ir.free_binders(expr), key=lambda b: b.name)
    members = [elements.ids(declared.bound, b.domain) for b in free]
    size = sum(declared.entries(declared.problem.variables[name].shape) for name in names)
    if size == inf:
        return None
    passes = prod(len(m) for m in members) * (
        (int(size) + 2 if square else 0) + (4 * STEPS if bounded and facts.smooth else 0)
    )
    rows = max(
        [1.0, *(prod(declared.count(b.domain) for b in n.binders) for n in nodes if isinstance(n, ir.Reduce))]
    )
    if not passes or prod(len(m) for m in members) > MOST_MEMBERS or passes * rows * size > MOST_WORK:
        return None
    lowest, standing = inf, Standing.BOUNDED
    for chosen in itertools.product(*members):
        f = _Function(declared, expr, names, dict(zip(free, chosen, strict=True)))
        try:
            if square:
                found = f.least_of_quadratic()
            else:
                found = Least(-inf)
            if bounded and facts.smooth and found.value <= 0:
                found = Least(f.least_inside(domains))
        except FccoError:  # a member that has no value: conditions around it may leave it out
            return None
        lowest, standing = min(lowest, found.value), max(standing, found.standing)
    if 0 < lowest < inf:
        return Least(lowest, standing)
    return None


def _sampled(node: ir.Expr) -> bool:
    """Its value is not a finite sum over bound data."""
    return isinstance(node, ir.NetCall) or (
        isinstance(node, ir.Reduce)
        and any(isinstance(b.domain, ir.Distribution | ir.VectorSet) for b in node.binders)
    )


def _set(variable: ir.Variable) -> ir.VectorSet | None:
    if len(variable.sets) == 1 and variable.net is None:
        return variable.sets[0]
    return None


class _Function:
    """An expression at one member of its families, as a function of all variables' entries in one vector."""

    def __init__(self, declared: Declarations, expr: ir.Expr, names: list[str], env: dict[ir.Binder, int]):
        assert declared.problem is not None and declared.bound is not None
        self.bound, self.expr, self.env = declared.bound, expr, env
        self.shapes = {
            name: elements.shape(declared.bound, declared.problem.variables[name].shape) for name in names
        }
        self.size = sum(prod(shape) for shape in self.shapes.values())

    def split(self, w: torch.Tensor) -> dict[str, torch.Tensor]:
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
        """c - b' A^+ b / 2 of w' A w / 2 + b' w + c; -inf where it is none, or lost in rounding.
        Curvatures are compared in units in which that of every entry is 1, so that the variables'
        units do not matter."""
        zero = torch.zeros(self.size, dtype=torch.float64)
        c, b = self(zero)
        A = torch.stack([self(e)[1] - b for e in torch.eye(self.size, dtype=torch.float64)])
        if not bool(torch.isfinite(A).all()):
            return Least(-inf)
        absent = (A == 0).all(0) & (b == 0)
        A, b = ((A + A.T) / 2)[~absent][:, ~absent], b[~absent]
        unit = A.diagonal().clamp(min=0).sqrt()
        unit = unit.where(unit > 0, 1.0)
        curvature, axes = torch.linalg.eigh(A / torch.outer(unit, unit))
        slope = axes.T @ (b / unit)
        flat = curvature <= FLAT * curvature[-1:].clamp(min=0)
        if float(slope[flat].norm()) > 1e-8 * float(slope.norm()):
            return Least(-inf)
        value = float(c - (slope[~flat] ** 2 / curvature[~flat]).sum() / 2)
        if value <= ROUNDING * float(c.abs()):
            return Least(-inf)
        return Least(value / 2, Standing.ESTIMATED if bool(flat.any()) else Standing.BOUNDED)

    def least_inside(self, domains: list[ir.VectorSet]) -> float:
        """What the tangent plane at a point near the minimiser allows inside the sets."""
        simple = [Pointwise(self.bound).simple_set(d) for d in domains]

        def project(w: torch.Tensor) -> torch.Tensor:
            inside = [
                s.project(v, *s.prepare(*args))
                for v, (s, args) in zip(self.split(w).values(), simple, strict=True)
            ]
            return torch.cat([v.reshape(-1) for v in inside])

        def rising(w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            value, gradient = self(w)
            return -value, -gradient

        v = concave_maxima.ascent(
            rising, project, project(torch.zeros(self.size, dtype=torch.float64)), steps=STEPS
        )
        f, gradient = self(v)
        furthest = sum(
            float(s.support(-g, *args))
            for g, (s, args) in zip(self.split(gradient).values(), simple, strict=True)
        )
        value = float(f - gradient @ v) - furthest
        if value > ROUNDING * float(f.abs()):
            return value / 2
        return -inf
