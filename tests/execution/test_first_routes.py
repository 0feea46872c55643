"""What comes before steps: small linear and quadratic programs, functions of one number over many rows."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import numpy as np
import pytest

import fccomodel
from fccomodel.pipeline import budget
from fccomodel.pipeline.budget import Deadlines
from fccomodel.pipeline.routes import one_variable


def test_a_small_quadratic_program_is_solved_at_once() -> None:
    r = np.random.default_rng(0).normal(0.05, 1, size=(200, 4))
    text = """dim d; data R: table(r: real[d]); var x[d] in simplex(d);
    let m = E[z ~ R] dot(z.r, x); minimize E[z ~ R] square(dot(z.r, x) - m) - 0.2 * m;
    subject to even: norm1(x - 0.25) <= 0.3;"""
    result = fccomodel.compile(text).bind(R={"r": r}).solve(seed=0)
    solution = result.outcome.solution
    assert solution.interior > 0
    assert solution.iterations == solution.passes == 0
    assert result.report.solved
    assert result.report.gap.value <= 1e-7


NEWSVENDOR = (
    "data D: table(d: real); var q >= 0; minimize cvar(tail = 0.1)[z in D] (4 * q - 10 * min(q, z.d));"
)


def losses(q: float, demand: np.ndarray) -> float:
    """The mean of the worst tenth of a newsvendor's losses."""
    worst = np.sort(4 * q - 10 * np.minimum(q, demand))[::-1]
    return float(worst[: len(demand) // 10].mean())


def test_a_function_of_one_number_over_many_rows() -> None:
    demand = np.random.default_rng(0).lognormal(3, 0.5, 3000)
    result = fccomodel.compile(NEWSVENDOR).bind(D={"d": demand}).solve(seed=0)
    solution = result.outcome.solution
    assert "cutting planes of one variable" in solution.stopped
    assert result.report.solved
    best = min(losses(q, demand) for q in demand[(demand > 5) & (demand < 15)])
    assert result.objective == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("why", ["interrupted", "stopped"])
def test_cutting_planes_that_are_ended_keep_the_best_point(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C, or the time limit, in the middle of the passes."""
    demand = np.random.default_rng(0).lognormal(3, 0.5, 3000)
    bound = fccomodel.compile(NEWSVENDOR).bind(D={"d": demand})
    values: list[float] = []
    saw = one_variable._Best.saw

    def ended_after_three(best: Any, x: float, value: float) -> None:
        saw(best, x, value)
        values.append(value)
        if best.passes == 3 and why == "interrupted":
            os.kill(os.getpid(), signal.SIGINT)
        if best.passes == 3 and why == "stopped":
            monkeypatch.setattr(Deadlines, "run_is_over", True)

    monkeypatch.setattr(one_variable._Best, "saw", ended_after_three)
    result = bound.solve(seed=0, budget="60s")
    assert result.outcome.status == why and len(values) == 3
    assert result.objective == pytest.approx(min(values), rel=1e-12)


def test_only_a_first_run_has_a_least_share_of_the_budget() -> None:
    planned = fccomodel.compile("var x; minimize x^2;").bind().plan(budget="10s")
    late = time.perf_counter() - 1.0
    assert budget.run_seconds(planned, late) == 6.0
    assert budget.run_seconds(planned, late, goes_on=True) == 1.0
