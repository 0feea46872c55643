"""Feasible convex models at any scale: no false verdict and no false gap. ``FUZZ=2000 pytest
tests/fuzz/test_scaled.py``."""

from __future__ import annotations

import os

import numpy as np
import pytest
from fuzz.scaled import Scaled, model

import fccomodel

#: How many models; a few unless ``FUZZ`` asks for more.
CASES = int(os.environ.get("FUZZ", "40"))
TOGETHER = 20
#: Verdicts of models without an optimum, which these have.
FALSE = ("infeasible", "unbounded", "unattained")
#: What "Solved" may be off, relative to the optimum's terms, or to a size that counts as small.
CLOSE, SMALL = 1e-3, 1e-2
#: Relative rounding of an optimum.
ROUNDING = 1e-9


def false(made: Scaled, found: fccomodel.Result) -> str:
    """What a result says that is not true, or ""."""
    report, status = found.report, found.outcome.status
    sign = 1.0 if found.outcome.planned.problem.objective.sense == "minimize" else -1.0
    worse = sign * (found.objective - made.optimum)
    if status in FALSE:
        return f"{status}: {report.verdict}"
    failure = found.outcome.solution.failure
    if failure is not None and failure.radius > float(np.linalg.norm(made.point)) * (1 + 1e-6):
        return f"a feasible point at {np.linalg.norm(made.point)}: {report.verdict}"
    if (
        report.gap is not None
        and report.gap.value is not None
        and worse > max(report.gap.value, 0.0) + ROUNDING * made.terms
    ):
        return f"{report.gap}, and the objective is {worse} worse"
    if report.solved and abs(worse) > CLOSE * max(made.terms, SMALL):
        return f"{worse / made.terms} off: {report.verdict}"
    return ""


def judged(seed: int) -> tuple[str, bool]:
    """What is false of the result of a seed's model, and whether it is solved."""
    made = model(seed)
    found = fccomodel.compile(made.text).bind(data=made.data).solve(seed=0, budget="5s")
    return false(made, found), found.report.solved


@pytest.mark.parametrize("start", range(0, CASES, TOGETHER))
def test_feasible_models_at_any_scale(start: int) -> None:
    seeds = range(start, min(start + TOGETHER, CASES))
    found = {seed: judged(seed) for seed in seeds}
    wrong = [f"seed {seed}: {text}" for seed, (text, _) in found.items() if text]
    assert not wrong, "\n".join(wrong)
    assert sum(solved for _, solved in found.values()) >= 0.8 * len(found)
