"""Values of a model at a point: objective, constraints, any ``let``.

They are computed over all bound rows in float64, without gradients.
"""

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
#: the value of a ``let``: a number, a nested list for a vector, or either by member for a family
Shown = float | list | dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Level:
    """The values of a model at a point.

    objective    the objective as the user wrote it
    constraints  by label, the left minus the right side
    violation    the largest violation, at least 0
    """

    objective: float
    constraints: Mapping[str, float] = field(default_factory=dict)
    violation: float = 0.0


def functions(evaluator: Evaluator) -> tuple[torch.Tensor, torch.Tensor, list[str], list[bool]]:
    """The objective as written, the values of all constraints in one vector, their labels, and which of
    them are equalities."""
    problem = evaluator.bound.problem
    objective = evaluator.value(problem.objective.expr, {}).data
    parts = [torch.zeros(0, dtype=torch.float64)]
    labels: list[str] = []
    equal: list[bool] = []
    for constraint in problem.constraints:
        family = members.of(evaluator.bound, constraint)
        value = evaluator.value(constraint.body, family.env)
        parts.append(family.over(value))
        labels += family.labels(constraint.label)
        equal += [constraint.kind == "eq"] * len(family)
    return objective, torch.cat(parts), labels, equal


def level(bound: Bound, point: Point, *, seed: int = 0) -> Level:
    """Objective and constraints at a point; ``seed`` is the seed of the sample for each distribution."""
    evaluator = _evaluator(bound, point, seed)
    constraints: dict[str, float] = {}
    violations = [0.0]
    with torch.no_grad():
        objective = float(evaluator.value(bound.problem.objective.expr, {}).data)
        for constraint in bound.problem.constraints:
            by_label = _by_label(evaluator, constraint, constraint.label)
            constraints |= by_label
            if constraint.kind == "eq":
                violations += map(abs, by_label.values())
            else:
                violations += by_label.values()
    return Level(objective=objective, constraints=constraints, violation=max(violations))


def values(bound: Bound, point: Point, wanted: Sequence[ir.Let], *, seed: int = 0) -> dict[str, Shown]:
    """The values of the lets by name.

    A ``let`` may contain step functions of the variables (error rates), unlike the objective.
    """
    evaluator = _evaluator(bound, point, seed)
    shown: dict[str, Shown] = {}
    with torch.no_grad():
        for let in wanted:
            by_member = _by_label(evaluator, let, let.name)
            if let.binders:
                shown[let.name] = by_member
            else:
                shown[let.name] = by_member[let.name]
    return shown


def lets(problem: ir.Problem, names: Iterable[str]) -> list[ir.Let]:
    """The ``let`` statements of these names. An unknown name is refused."""
    names = list(dict.fromkeys(names))
    for name in names:
        if name not in problem.lets:
            refuse(errors.no_let(name, list(problem.lets)))
    return [problem.lets[name] for name in names]


def sides(
    evaluator: Evaluator, constraint: ir.Constraint, values: np.ndarray
) -> tuple[str, np.ndarray, np.ndarray] | None:
    """The relation of a constraint as written (``<=``, ``>=``, ``==``), and both sides of all members.

    ``values`` are the values of ``body``. One side is evaluated, the other follows from the value.
    None is returned if each side has an expectation, a sum or a net, or is a matrix.
    """
    left, relation, right = constraint.written
    if constraint.of_matrices:
        return None
    if relation == ">=":
        values = -values
    if _plain(right):
        known = _side(evaluator, constraint, right)
        return relation, known + values, known
    if _plain(left):
        known = _side(evaluator, constraint, left)
        return relation, known, known - values
    return None


def _plain(expr: ir.Expr) -> bool:
    """Whether an expression has neither reductions nor nets."""
    return not any(isinstance(node, ir.Reduce | ir.NetCall) for node in ir.walk(expr))


def _side(evaluator: Evaluator, constraint: ir.Constraint, expr: ir.Expr) -> np.ndarray:
    """The values of one side at all members."""
    family = members.of(evaluator.bound, constraint)
    with torch.no_grad():
        return family.over(evaluator.value(expr, family.env)).double().numpy()


def _evaluator(bound: Bound, point: Point, seed: int) -> Evaluator:
    """An evaluator at a point of arrays."""
    tensors = {name: torch.as_tensor(value, dtype=torch.float64) for name, value in point.items()}
    return Evaluator(bound, tensors, seed=seed)


def _by_label(evaluator: Evaluator, family: ir.Constraint | ir.Let, name: str) -> dict[str, Any]:
    """The values of a family's members by label; one entry without binders."""
    all_members = members.of(evaluator.bound, family)
    value = evaluator.value(family.body, all_members.env)
    numbers = all_members.over(value).double().tolist()
    return dict(zip(all_members.labels(name), numbers, strict=True))
