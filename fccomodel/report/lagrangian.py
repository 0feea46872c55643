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


def gradient(system: System, terms: list[tuple[Root, ir.Expr]], at: Array, weights: Sequence[tuple[int, Array]] = ()) -> Array:
    """Of the sum of the roots at any point, each with an expression of choice in place of its own, and of weighted terms of kinks
    (by record)."""
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
        return np.zeros(system.d)
    slopes = torch.autograd.grad(total, leaves, allow_unused=True)
    return np.concatenate(
        [np.zeros(leaf.numel()) if g is None else g.numpy().ravel() for g, leaf in zip(slopes, leaves, strict=True)]
    )
