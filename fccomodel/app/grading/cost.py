"""The cost of the differences: both models are solved, and the key judges the answer's optimum."""

from __future__ import annotations

import numpy as np

from fccomodel import pipeline
from fccomodel.app.grading.record import CostOfDifferences
from fccomodel.app.grading.trials import Trial, for_answer
from fccomodel.core import options
from fccomodel.core.diagnostics import FccoError
from fccomodel.data.bound import Bound
from fccomodel.evaluation.values import Level, level

#: Violation from which on a constraint is named.
VIOLATED = 1e-4


def of(
    key: pipeline.Compiled, answer: pipeline.Compiled, trial: Trial, budget: str, on_data: bool
) -> CostOfDifferences | None:
    """The cost on the data of a trial, or None if it cannot be said.

    Random data say nothing about a task with data of its own, so that a key with tables needs the
    user's (``on_data``).
    """
    if not on_data and (key.problem.tables or key.problem.arrays):
        return None
    try:
        own = _optimum(key, trial.key, pipeline.Binding(params=trial.key.params), budget)
        binding = for_answer(trial.key, key.problem, answer.problem, trial.names)
        theirs = _optimum(answer, trial.answer, binding, budget)
        moved = {a: theirs[b] for a, b in trial.names.variables.items()}
        best, found = level(trial.key, own), level(trial.key, moved)
    except FccoError:
        return None
    if not np.isfinite([best.objective, found.objective]).all():
        return None
    worst = _worst(key, found)
    return CostOfDifferences(
        objective=found.objective, best=best.objective, violation=found.violation, worst=worst
    )


def _optimum(
    compiled: pipeline.Compiled, bound: Bound, binding: pipeline.Binding, budget: str
) -> dict[str, np.ndarray]:
    """The variables of the answer of a solve."""
    given = {"budget": budget, "seed": 0, "unverified": True}
    chosen = options.resolve(given, {}, {}, given_as=options.KEYWORD)
    planned = pipeline.plan(compiled, binding, chosen, bound=bound)
    return dict(pipeline.solve(planned).solution.variables)


def _worst(key: pipeline.Compiled, found: Level) -> str:
    """The constraint of the key that is violated most, or an empty text."""
    equations = {c.label for c in key.problem.constraints if c.kind == "eq"}
    by_size = {
        label: abs(value) if label.partition("[")[0] in equations else value
        for label, value in found.constraints.items()
    }
    label = max(by_size, key=lambda one: by_size[one], default="")
    if label and by_size[label] > VIOLATED:
        return label
    return ""
