"""Points that meet all constraints, found without the objective: for verdicts, and for runs that ended
at a stationary point of the violation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch

from fccomodel.core.diagnostics import FccoError
from fccomodel.core.work import Meter, priced
from fccomodel.data.bound import Bound
from fccomodel.evaluation.interpret import Evaluator
from fccomodel.evaluation.sets import elements
from fccomodel.evaluation.values import functions
from fccomodel.report.around.local_search import ALLOWED

#: Distances from the origin of the points that are tried, one random point each.
DISTANCES_TRIED = (0.0, 0.1, 0.1, 0.1, 1.0, 1.0, 1.0, 10.0, 10.0, 10.0)
#: Steps towards the constraints, at most, from every second of these points.
STEPS = 25
#: Length of a step, relative to the one to where the violations' linear model vanishes: beyond it, so
#: that inequalities are met after finitely many steps.
BEYOND = 1.3

Point = Mapping[str, torch.Tensor]


@dataclass(frozen=True, eq=False, kw_only=True)
class Feasible:
    """A ``point`` that meets all constraints, and the objective there."""

    point: Mapping[str, np.ndarray]
    objective: float


def feasible_points(bound: Bound, meter: Meter, seed: int = 0) -> Iterator[Feasible]:
    """Points that meet all constraints, as many as are found with the work that the meter allows.

    The origin and random points around it are moved into the variables' sets. Those that violate
    constraints move by Polyak's steps on the sum of all violations, whose least value is 0 if there is a
    feasible point.
    """
    points = list(_first_points(bound, seed))
    for most, tried in ((0, points), (STEPS, points[1::2])):
        for point in tried:
            feasible = _moved_in(bound, point, meter, seed, most)
            if feasible is not None:
                yield feasible


def _first_points(bound: Bound, seed: int) -> list[Point]:
    """The origin and random points around it, in the variables' sets."""
    random = np.random.default_rng(seed)
    points: list[Point] = []
    for far in DISTANCES_TRIED:
        point = {}
        for name, variable in bound.problem.variables.items():
            shape = elements.shape(bound, variable.shape)
            point[name] = torch.from_numpy(np.array(far * random.standard_normal(shape)))
        points.append(_in_sets(bound, point))
    return points


def _in_sets(bound: Bound, point: Point) -> dict[str, torch.Tensor]:
    """The point, projected on the variables' sets one after the other."""
    evaluator = Evaluator(bound, {})
    variables = bound.problem.variables
    return {name: evaluator.into_sets(variables[name].sets, value) for name, value in point.items()}


def _moved_in(bound: Bound, point: Point, meter: Meter, seed: int, most: int) -> Feasible | None:
    """The first point that meets all constraints within so many steps from a point, or None."""
    for step in range(most + 1):
        if meter.over:
            return None
        leaves = {name: value.clone().requires_grad_(most > 0) for name, value in point.items()}
        try:
            values, seconds = priced(lambda at=leaves: _values(bound, at, seed), most=meter.left)
        except FccoError:  # a value is not defined there
            return None
        meter.spend(seconds)
        if values is None:
            return None
        objective, violations = values
        if not bool(torch.isfinite(violations).all()):
            return None
        if not len(violations) or float(violations.detach().max()) <= ALLOWED:
            arrays = {name: value.detach().numpy() for name, value in leaves.items()}
            return Feasible(point=arrays, objective=objective)
        if step == most:
            return None
        stepped, seconds = priced(lambda at=leaves, v=violations: _polyak_step(at, v.sum()), most=meter.left)
        meter.spend(seconds)
        if stepped is None:
            return None
        point = _in_sets(bound, stepped)
    return None


def _values(bound: Bound, point: Point, seed: int) -> tuple[float, torch.Tensor]:
    """The objective at a point, and the violation of each constraint."""
    objective, values, _, equal = functions(Evaluator(bound, point, seed=seed))
    violations = torch.where(torch.tensor(equal, dtype=torch.bool), values.abs(), values.clamp(min=0))
    return float(objective.detach()), violations


def _polyak_step(leaves: Point, total: torch.Tensor) -> dict[str, torch.Tensor] | None:
    """The point after a step against the gradient of ``total``; None if the gradient is 0 or not finite.

    The step is ``BEYOND`` times as long as makes the linear model of ``total`` 0, but no longer than 1 and
    the point's size.
    """
    slopes = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
    square = sum(float(slope.square().sum()) for slope in slopes if slope is not None)
    if not square or not np.isfinite(square):
        return None
    size = 1 + math.sqrt(sum(float(value.detach().square().sum()) for value in leaves.values()))
    length = min(BEYOND * float(total.detach()) / square, size / math.sqrt(square))
    return {
        name: value.detach() if slope is None else value.detach() - length * slope
        for (name, value), slope in zip(leaves.items(), slopes, strict=True)
    }
