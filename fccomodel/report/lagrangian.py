"""The Lagrangian of a point's multipliers, away from the point: its functions and their gradient anywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch

from fccomodel.core import ir
from fccomodel.evaluation import members
from fccomodel.evaluation.interpret import Evaluator
from fccomodel.report.recording import Recorder
from fccomodel.report.system import System

Array = np.ndarray


class Root(NamedTuple):
    """``sign * expr``, or ``weights . expr`` over the members of a constraint."""

    expr: ir.Expr
    sign: float
    weights: Array | None = None
    constraint: ir.Constraint | None = None


Terms = list[tuple[Root, ir.Expr]]
Weights = Sequence[tuple[int, Array]]
Slopes = Sequence[torch.Tensor | None]


def roots(system: System, multipliers: Array) -> list[Root]:
    """The functions that the Lagrangian is the sum of."""
    constraints = [Root(constraint.body, 1.0, weights, constraint) for constraint, weights in of_members(system, multipliers)]
    return [Root(system.problem.objective.expr, system.sign), *constraints]


def of_members(system: System, multipliers: Array) -> Iterator[tuple[ir.Constraint, Array]]:
    """The constraints with a multiplier that is not 0, with those of their members."""
    start = 0
    for constraint in system.problem.constraints:
        weights = multipliers[start : start + len(members.of(system.bound, constraint))]
        start += len(weights)
        if weights.any():
            yield constraint, weights


def gradient(system: System, terms: Terms, at: Array, weights: Weights = ()) -> Array:
    """Of the sum of the roots at any point, each with an expression of choice in place of its own, and of weighted terms of kinks
    (by record)."""
    return _flat(*_slopes(system, terms, at, weights))


def curvature(system: System, terms: Terms, weights: Weights = ()) -> Array:
    """The Hessian of such a sum that is quadratic: one pass, and for each entry one back through what its slope is made of."""
    at = 1.0 + np.arange(system.d) % 7 / 7  # no zero, where roots of squares have no second derivative
    slopes, leaves = _slopes(system, terms, at, weights, twice=True)
    rows = []
    for slope, leaf in zip(slopes, leaves, strict=True):
        for k in range(leaf.numel()):
            parts: Slopes = [None] * len(leaves)
            if slope is not None and slope.requires_grad:
                parts = torch.autograd.grad(slope.reshape(-1)[k], leaves, retain_graph=True, allow_unused=True)
            rows.append(_flat(parts, leaves))
    return np.stack(rows)


def _slopes(system: System, terms: Terms, at: Array, weights: Weights, twice: bool = False) -> tuple[Slopes, list[torch.Tensor]]:
    """The gradient by variable, ``twice``: to be differentiated again, None where it is zero; and what it is by."""
    point = {name: part.clone().requires_grad_(True) for name, part in system.split(at).items()}
    evaluator = Evaluator(system.bound, point, seed=system.seed)
    total = torch.zeros((), dtype=torch.float64)
    for root, expr in terms:
        if root.constraint is None or root.weights is None:
            total = total + root.sign * evaluator.value(expr, {}).data
        else:
            family = members.of(system.bound, root.constraint)
            total = total + family.over(evaluator.value(expr, family.env)) @ torch.from_numpy(root.weights)
    leaves = [evaluator.point[name] for name in system.names]
    if weights:
        recorder = Recorder(system.kinks, frozen=system.records)
        system.evaluate(evaluator.point, recorder)
        total = total + sum((recorder.records[k].terms * torch.from_numpy(factors)).sum() for k, factors in weights)
    if not total.requires_grad:
        return [None] * len(leaves), leaves
    return torch.autograd.grad(total, leaves, allow_unused=True, create_graph=twice), leaves


def _flat(slopes: Slopes, leaves: Sequence[torch.Tensor]) -> Array:
    """Slopes by variable as one vector."""
    pairs = zip(slopes, leaves, strict=True)
    return np.concatenate([np.zeros(x.numel()) if g is None else g.detach().numpy().ravel() for g, x in pairs])
