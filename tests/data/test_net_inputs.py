"""Modules as people have them: token ids, several inputs, frozen nets, sizes that only an output decides;
tried on rows of the data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import fccomodel
from fccomodel.core.diagnostics import FccoError

ROWS, TOKENS, IDS = 120, 6, 11
HEAD = "model m; dim d; dim t; data D : table(x: real[d], m: int[t], y: {0, 1});"
LOSS = "minimize risk: E[z ~ D] log1pexp(-(2 * z.y - 1) * SCORE);"


def data() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    m = rng.integers(0, IDS, size=(ROWS, TOKENS))
    return {"x": rng.normal(size=(ROWS, 3)), "m": m, "y": (m[:, 0] > 5).astype(int)}


class Reader(nn.Module):
    """A score of token ids, beside a vector if there is one."""

    def __init__(self, ids: int = IDS, vector: int = 0):
        super().__init__()
        torch.manual_seed(0)
        self.embedding, self.last = nn.Embedding(ids, 5), nn.Linear(5 + vector, 1)
        self.words = ["of", "the", "user"]

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        text = torch.tanh(self.embedding(inputs[-1])).mean(1)
        return self.last(torch.cat([*inputs[:-1], text], 1))


def bound(declared: str, score: str, **nets: nn.Module) -> Any:
    return fccomodel.compile(HEAD + declared + LOSS.replace("SCORE", score)).bind(D=data(), nets=nets)


def by_hand(scores: torch.Tensor) -> float:
    sign = torch.as_tensor(2.0 * data()["y"] - 1)
    return float(torch.nn.functional.softplus(-sign * scores.detach().double().flatten()).mean())


@pytest.mark.slow
def test_token_ids_and_a_vector_beside_them() -> None:
    problem = bound(
        "net s : real[d], int[t] -> real; var w = params(s);", "s(w; z.x, z.m)", s=Reader(vector=3)
    )
    result = problem.solve(budget="80it", unverified=True, seed=0)
    trained = result.module("s")
    assert type(trained) is Reader
    assert trained.words == ["of", "the", "user"]
    rows = data()
    x, m = torch.as_tensor(rows["x"]), torch.as_tensor(rows["m"])
    assert result.objective == pytest.approx(by_hand(trained.double()(x, m)), rel=1e-6)
    assert result.objective < 0.68
    assert set(result.predict(rows)) <= {0, 1}


def test_the_criterion_of_token_ids() -> None:
    net = Reader()
    problem = bound("net s : int[t] -> real; var w = params(s);", "s(w; z.m)", s=net)
    criterion = problem.criterion(batch=16)
    rows = torch.arange(16)
    loss = criterion(rows, s=net(torch.as_tensor(data()["m"][:16])).flatten())
    loss.backward()
    assert float(net.last.weight.grad.abs().sum()) > 0


def test_a_frozen_net_is_computed_once_and_decides_a_size() -> None:
    """Of 7 numbers, which nothing but the module says; the solver's file has its outputs, not the net."""
    frozen = nn.Linear(3, 7)
    problem = bound("dim k; net q : real[d] -> real[k] frozen; var w[k];", "dot(w, q(z.x))", q=frozen)
    assert problem.bound.dims["k"] == 7
    assert "net_q" not in problem.emit()
    result = problem.solve()
    rows = torch.as_tensor(data()["x"])
    scores = frozen.double()(rows).detach() @ torch.as_tensor(result.variables["w"])
    assert result.objective == pytest.approx(by_hand(scores), rel=1e-9)
    assert "Solved" in str(result)
    assert all(one.requires_grad for one in frozen.parameters())


def test_a_net_over_a_frozen_net() -> None:
    declared = "dim k; net q : int[t] -> real[k] frozen; net s : real[k] -> real; var w = params(s);"
    body = nn.Sequential(nn.Embedding(IDS, 2), nn.Flatten())
    problem = bound(declared, "s(w; q(z.m))", q=body, s="mlp(4)")  # type: ignore[arg-type]
    assert problem.bound.dims["k"] == 2 * TOKENS
    result = problem.solve(budget="60it", seed=0)
    scores = result.module("s").double()(body(torch.as_tensor(data()["m"])).double())
    assert result.objective == pytest.approx(by_hand(scores), rel=1e-6)


def test_a_module_is_tried_on_rows_of_the_data() -> None:
    """An embedding that lacks the largest id of any row is refused with what to do."""
    with pytest.raises(FccoError, match="F0526") as caught:
        bound("net s : int[t] -> real; var w = params(s);", "s(w; z.m)", s=Reader(ids=IDS - 1))
    assert "as many entries as there are ids" in " ".join(str(caught.value).split())


def test_an_input_of_a_trained_net_that_depends_on_variables() -> None:
    declared = "net s : real[d] -> real; var w = params(s); var c[d];"
    problem = bound(declared, "s(w; z.x + c)", s=nn.Linear(3, 1))
    before, result = problem.solve(budget="1it"), problem.solve(budget="60it", seed=0)
    rows = torch.as_tensor(data()["x"] + result.variables["c"])
    assert result.objective == pytest.approx(by_hand(result.module("s").double()(rows)), rel=1e-9)
    assert result.objective < before.objective and np.abs(result.variables["c"]).max() > 1e-3


def test_a_net_over_a_trained_net() -> None:
    """No theorem is claimed of a ReLU inside; the value is that of the modules one after the other."""
    declared = (
        "dim k; net q : real[d] -> real[k]; net s : real[k] -> real; var w = params(s); var v = params(q);"
    )
    inner = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    problem = bound(declared, "s(w; q(v; z.x))", q=inner, s="mlp(4)")
    result = problem.solve(budget="60it", seed=0)
    scores = result.module("s").double()(result.module("q").double()(torch.as_tensor(data()["x"])))
    assert result.objective == pytest.approx(by_hand(scores), rel=1e-9)
    assert any("ReLU" in said for said in result.outcome.planned.plan.of_nets)
    smooth = bound(declared, "s(w; q(v; z.x))", q=nn.Linear(3, 2), s="mlp(4)").plan().plan
    assert smooth.guarantee != "nothing"


@pytest.mark.slow
def test_a_net_of_images_is_exported(tmp_path: Path) -> None:
    text = (
        "model m; dim c; dim h; dim v; data D : table(x: real[c, h, v], y: {0, 1});"
        "net s : real[c, h, v] -> real; var w = params(s); def score(x) = s(w; x);"
        "minimize risk: E[z ~ D] log1pexp(-(2 * z.y - 1) * score(z.x));"
    )
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 1, 4, 4)), np.arange(40) % 2
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ELU(), nn.Flatten(), nn.Linear(8, 1))
    result = fccomodel.compile(text).bind(D={"x": x, "y": y}, nets={"s": net}).solve(budget="10it")
    path = result.export(tmp_path / "score.pt2")
    again = torch.export.load(path).module()
    some = torch.as_tensor(x[:5])
    torch.testing.assert_close(again(some).flatten(), result.module("s").double()(some).flatten())
