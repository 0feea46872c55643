"""Nets with batch normalisation and dropout: steps in train mode, looks and report in evaluation mode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import fccomodel

TEXT = """model m; dim d; data D : table(x: real[d], y: {0, 1}); net s : real[d] -> real; var w = params(s);
minimize risk: E[z ~ D] log1pexp(-(2 * z.y - 1) * s(w; z.x));
subject to flagged: E[z ~ D] sigmoid(s(w; z.x)) <= 0.6;"""


def rows() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    x = 3 + 2 * rng.normal(size=(160, 4))
    return {"x": x, "y": (x[:, 0] > 3).astype(int)}


@pytest.fixture(scope="module")
def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 6), nn.Tanh(), nn.Dropout(0.1), nn.Linear(6, 1))


@pytest.fixture(scope="module")
def result(net: nn.Module) -> Any:
    problem = fccomodel.compile(TEXT).bind(D=rows(), nets={"s": net})
    return problem.solve(budget="150it", seed=0)


def by_hand(module: nn.Module) -> float:
    data = rows()
    scores = module.double()(torch.as_tensor(data["x"])).detach().flatten()
    return float(nn.functional.softplus(-scores * torch.as_tensor(2 * data["y"] - 1)).mean())


def test_statistics_belong_to_the_answer(result: Any, net: nn.Module) -> None:
    """They are those of the rows, not of the module that was given, and the report is by them."""
    trained = result.module("s")
    assert type(trained) is nn.Sequential
    assert not trained.training
    assert trained[0].running_mean.numpy() == pytest.approx(rows()["x"].mean(0), abs=0.3)
    assert float(net[0].running_mean.abs().max()) == 0.0
    assert net.training
    assert result.objective == pytest.approx(by_hand(trained), rel=1e-9)
    assert result.objective < 0.65


def test_the_report_says_so(result: Any) -> None:
    practice = " ".join(result.outcome.planned.plan.practice)
    assert "no theorem is claimed" in practice
    assert "BatchNorm1d (layer 0), Dropout (layer 3)" in practice
    assert "one row has not one value" in practice
    assert result.outcome.planned.plan.promise is None


@pytest.mark.slow
def test_a_folder_keeps_the_statistics(result: Any, tmp_path: Path) -> None:
    """The module is written by torch's own layers: what is loaded is never code."""
    result.save(tmp_path / "out")
    stored = fccomodel.load(tmp_path / "out")
    again = stored.module("s")
    assert torch.equal(again[0].running_mean, result.module("s")[0].running_mean)
    assert np.array_equal(stored.predict(rows()), result.predict(rows()))
    judged = fccomodel.evaluate(tmp_path / "out", data={"D": rows()})
    assert judged.report.objective == pytest.approx(result.objective, rel=1e-9)


def test_the_same_seed_gives_the_same_bits(result: Any, net: nn.Module) -> None:
    problem = fccomodel.compile(TEXT).bind(D=rows(), nets={"s": net})
    again = problem.solve(budget="150it", seed=0)
    assert np.array_equal(again.variables["w"], result.variables["w"])
