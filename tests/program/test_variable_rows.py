"""Sums and means over a row of a variable, and nets at fixed points: derivatives of the shape of what
they are of."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import fccomodel

HEAD = "set I = 1 .. 3; set J = 1 .. 4; var P[I, J] in box(-1, 1);"


@pytest.mark.parametrize(
    "objective, optimum",
    [
        ("sumsq(P) + sum[i in I] (sum(P[i]) - 1)^2", 3 / 5),
        ("sumsq(P) + sum[i in I] (mean(P[i]) - 1)^2", 12 / 5),
        ("sumsq(P) + sum[i in I] (sum(2 * P[i]) - 1)^2", 3 / 17),
        ("sumsq(P) + (sum(P[1]) - 1)^2", 1 / 5),
    ],
)
def test_of_one_row_each(objective: str, optimum: float) -> None:
    result = fccomodel.compile(f"{HEAD} minimize {objective};").bind().solve(seed=0, budget="2s")
    assert result.report.solved and result.objective == pytest.approx(optimum, abs=1e-6)


def test_of_the_rows_of_a_group() -> None:
    text = (
        "set G = 1 .. 3; dim d; data D : table(x: real[d], t: real, g: G); var W[G, d]; "
        "minimize mean[z in D] (sum(W[z.g]) - z.t)^2 + 0.1 * sumsq(W);"
    )
    random = np.random.default_rng(0)
    data = {"x": random.normal(size=(30, 4)), "t": random.normal(size=30), "g": np.resize([1, 2, 3], 30)}
    result = fccomodel.compile(text).bind(D=data).solve(seed=0, budget="2s")
    means = np.array([data["t"][data["g"] == g].mean() for g in (1, 2, 3)])
    rows = 4 / 3 * means / (4 / 3 + 0.1)  # of 4 equal entries w: (4 w - m)^2 / 3 + 0.4 w^2 is least
    assert result.report.solved
    assert result.variables["W"].sum(axis=1) == pytest.approx(rows, abs=1e-5)


@pytest.mark.parametrize("outputs", ["real", "real[d]"])
def test_a_net_at_a_fixed_point(outputs: str) -> None:
    size = "(s(p; b) - 1)^2" if outputs == "real" else "sumsq(s(p; b) - b)"
    text = (
        f"dim d; data b : real[d]; net s : real[d] -> {outputs}; var p = params(s); minimize {size} + "
        "1e-3 * sumsq(p);"
    )
    module = torch.nn.Linear(4, 1 if outputs == "real" else 4)
    result = fccomodel.compile(text).bind(b=np.ones(4), nets={"s": module}).solve(seed=0, budget="2s")
    assert np.isfinite(result.objective) and result.objective < 0.1
