"""What a model is worth at a point, over all bound rows in float64, without gradients: objective,
constraints, any ``let``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.data.bound import Bound
from fccomodel.evaluation import errors
from fccomodel.evaluation.interpret import Evaluator
from fccomodel.evaluation.sets import members

Point = Mapping[str, np.ndarray]
#: of a ``let``: a number, a nested list for a vector, or either by member for a family
Shown = float | list | dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Level:
    """The objective as the user wrote it; the constraints' left minus right sides by label, and the
    largest violation."""

    objective: float
    constraints: Mapping[str, float] = field(default_factory=dict)
    violation: float = 0.0


def level(bound: Bound, point: Point, *, seed: int = 0) -> Level:
    """Objective and constraints at a point; ``seed`` is that of the fixed sample that stands for each
    distribution."""
    evaluator = _evaluator(bound, point, seed)
    constraints: dict[str, float] = {}
    violations = [0.0]
    with torch.no_grad():
        objective = float(evaluator.value(bound.problem.objective.expr, {}).data)
        for c in bound.problem.constraints:
            by_label = _by_label(evaluator, c, c.label)
            constraints |= by_label
            violations += [abs(value) if c.kind == "eq" else value for value in by_label.values()]
    return Level(objective=objective, constraints=constraints, violation=max(violations))


def values(bound: Bound, point: Point, wanted: Sequence[ir.Let], *, seed: int = 0) -> dict[str, Shown]:
    """The lets by name. They may hold step functions of the variables (error rates), which an
    objective may not."""
    evaluator = _evaluator(bound, point, seed)
    with torch.no_grad():
        shown = {let.name: _by_label(evaluator, let, let.name) for let in wanted}
    return {let.name: shown[let.name] if let.binders else shown[let.name][let.name] for let in wanted}


def lets(problem: ir.Problem, names: Iterable[str]) -> list[ir.Let]:
    """The ``let`` statements of these names; F0805 for a name that is none."""
    names = list(dict.fromkeys(names))
    for name in names:
        if name not in problem.lets:
            refuse(errors.no_let(name, list(problem.lets)))
    return [problem.lets[name] for name in names]


def sides(
    evaluator: Evaluator, constraint: ir.Constraint, values: np.ndarray
) -> tuple[str, np.ndarray, np.ndarray] | None:
    """A constraint as written, ``left <= right`` (``>=``, ``==``): the relation, and both sides of all
    members.

    ``values`` are those of ``body``. One side is found by itself, the other by the value; None
    where each has an expectation, a sum or a net.
    """
    left, relation, right = constraint.written
    values = -values if relation == ">=" else values
    if _plain(right):
        known = _side(evaluator, constraint, right)
        return relation, known + values, known
    if _plain(left):
        known = _side(evaluator, constraint, left)
        return relation, known, known - values
    return None


def _plain(expr: ir.Expr) -> bool:
    return not any(isinstance(node, ir.Reduce | ir.NetCall) for node in ir.walk(expr))


def _side(evaluator: Evaluator, constraint: ir.Constraint, expr: ir.Expr) -> np.ndarray:
    family = members.of(evaluator.bound, constraint)
    with torch.no_grad():
        return family.over(evaluator.value(expr, family.env)).double().numpy()


def _evaluator(bound: Bound, point: Point, seed: int) -> Evaluator:
    return Evaluator(
        bound, {name: torch.as_tensor(value, dtype=torch.float64) for name, value in point.items()}, seed=seed
    )


def _by_label(evaluator: Evaluator, family: ir.Constraint | ir.Let, name: str) -> dict[str, Any]:
    """A family's values by label; one entry where there are no binders."""
    all_members = members.of(evaluator.bound, family)
    data = all_members.over(evaluator.value(family.body, all_members.env))
    return dict(zip(all_members.labels(name), data.double().tolist(), strict=True))
