"""Samplers from Python: steps choose among draws that the program has, full passes take the
reference's own sample."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch

import fccomodel as fc
from fccomodel.evaluation.interpret import evaluate
from fccomodel.program.lower.binders import noise
from fccomodel.report.new_rows.sampling import fresh

NEWSVENDOR = (
    "param rate > 0 default 10; var q; maximize profit: E[z ~ demand(rate)] (5 * min(q, z) - 2 "
    "* q) subject to q >= 0;"
)
NOISY = """dim d; data D : table(x: real[d], y: real); var w[d];
minimize E[z ~ D, e ~ shock()[d]] (dot(w, z.x + e) - z.y)^2 + 0.01 * sumsq(w);"""


def demand(rng: np.random.Generator, n: int, rate: np.ndarray) -> np.ndarray:
    return rng.exponential(rate, n)


def shock(rng: np.random.Generator, n: int) -> np.ndarray:
    return 0.5 * rng.uniform(-1, 1, (n, 3))


def quantile(result: Any, rate: float) -> bool:
    """The optimum of the newsvendor, to what 20,000 draws tell of it."""
    return float(result.variables["q"]) == pytest.approx(rate * np.log(5 / 2), rel=0.03)


def test_a_model_with_a_sampler_is_solved_anew_for_another_parameter(tmp_path: Any) -> None:
    """And its program stands by itself."""
    problem = fc.compile(NEWSVENDOR).bind(samplers={"demand": demand})
    result = problem.solve(seed=0, budget="4s")
    assert result.report.solved and quantile(result, 10)
    assert quantile(problem.with_params(rate=20).solve(start=result, budget="4s"), 20)
    folder = result.save(tmp_path / "out")
    done = subprocess.run(
        [sys.executable, folder / "solver.py"], capture_output=True, text=True, timeout=120, check=True
    )
    printed = float(
        re.search(r"^objective (\S+)", done.stdout, re.MULTILINE)[1]
    )  # on the program's own draws
    assert result.report.error > 0 and printed == pytest.approx(result.objective, abs=4 * result.report.error)


def test_draws_beside_rows() -> None:
    """The report is of fresh draws, near the value on the run's own, and steps lead to the least
    squares with noise."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    rows = {"x": x, "y": x @ [1.0, 2.0, 3.0]}
    problem = fc.compile(NOISY).bind(D=rows, samplers={"shock": shock})
    result = problem.solve(seed=0)
    point = {"w": torch.as_tensor(result.variables["w"])}
    bound, expr = result.outcome.bound, problem.compiled.problem.objective.expr
    seed = fresh(bound.problem, 0)
    assert seed != 0 and result.objective == pytest.approx(float(evaluate(bound, expr, point, seed=seed)))
    assert float(evaluate(bound, expr, point)) == pytest.approx(result.objective, abs=6 * result.report.error)
    expected = np.linalg.solve(x.T @ x / 60 + (0.25 / 3 + 0.01) * np.eye(3), x.T @ rows["y"] / 60)
    assert result.variables["w"] == pytest.approx(expected, abs=0.05)
    steps = problem.solve(seed=0, budget="3000it", polish=False)
    assert steps.variables["w"] == pytest.approx(expected, abs=0.15)


def test_as_many_draws_as_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise.draw_counts, "MOST_NUMBERS", 1 << 10)
    program = fc.compile(NEWSVENDOR).bind(samplers={"demand": demand}).plan()
    from fccomodel import pipeline

    assert pipeline.emit(program).data["demand_draws"].shape == (1 << 10,)
