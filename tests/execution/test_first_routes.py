"""What comes before steps: small linear and quadratic programs, functions of one number over many rows."""

from __future__ import annotations

import numpy as np
import pytest

import fccomodel


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


def losses(q: float, demand: np.ndarray) -> float:
    """The mean of the worst tenth of a newsvendor's losses."""
    worst = np.sort(4 * q - 10 * np.minimum(q, demand))[::-1]
    return float(worst[: len(demand) // 10].mean())


def test_a_function_of_one_number_over_many_rows() -> None:
    demand = np.random.default_rng(0).lognormal(3, 0.5, 3000)
    text = "data D: table(d: real); var q >= 0; minimize cvar(tail = 0.1)[z in D] (4 * q - 10 * min(q, z.d));"
    result = fccomodel.compile(text).bind(D={"d": demand}).solve(seed=0)
    solution = result.outcome.solution
    assert "cutting planes of one variable" in solution.stopped
    assert result.report.solved
    best = min(losses(q, demand) for q in demand[(demand > 5) & (demand < 15)])
    assert result.objective == pytest.approx(best, rel=1e-12)
