"""Nets in bfloat16 in steps: weights, estimates and reports keep their precision."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

import fccomodel
from fccomodel import FccoError
from fccomodel.program.emit.flatnet import FlatNet, HalfNet

TEXT = (
    "model m; dim d; data D : table(x: real[d], y: {0, 1}); net s : real[d] -> real; var w = params(s);"
    "minimize E[z ~ D] log1pexp(-(2 * z.y - 1) * s(w; z.x)); subject to c: E[z ~ D] sigmoid(s(w; z.x)) <= 0.6;"
)


def net() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1), torch.nn.Flatten(0)
    )


def problem() -> Any:
    x = np.random.default_rng(0).normal(size=(80, 3))
    return fccomodel.compile(TEXT).bind(D={"x": x, "y": (x[:, 0] > 0).astype(int)}, nets={"s": net()})


@pytest.mark.parametrize(
    "how", [{}, {"optimizer": lambda p: torch.optim.Adam(p, lr=0.01)}], ids=["own", "adam"]
)
def test_steps_in_bfloat16_learn_as_well(how: dict[str, Any]) -> None:
    """The report is of the weights as they are, by the module in float64."""
    made = problem()
    single = made.solve(budget="80it", **how)
    half = made.solve(budget="80it", precision="bfloat16", **how)
    assert half.objective != single.objective
    assert half.objective == pytest.approx(single.objective, abs=0.1)
    rows = torch.from_numpy(made.bound.tables["D"].columns["x"])
    labels = torch.from_numpy(np.asarray(made.bound.tables["D"].columns["y"]))
    scores = half.module("s").double()(rows)
    exact = torch.nn.functional.softplus(-(2 * labels - 1) * scores).mean()
    assert half.objective == pytest.approx(exact.item(), rel=1e-6)
    assert all(p.dtype in (torch.float32, torch.float64) for p in half.module("s").parameters())


def test_a_program_runs_its_net_in_bfloat16_in_steps_alone() -> None:
    module = net()
    half, plain = HalfNet(copy.deepcopy(module), 1), FlatNet(copy.deepcopy(module), 1)
    w = torch.cat([p.detach().reshape(-1) for p in module.parameters()])
    x = torch.randn(16, 3, generator=torch.Generator().manual_seed(1))
    rough, exact = half.taped(w, x), plain.taped(w, x)
    assert rough.dtype == torch.float32 and 1e-5 < float((rough - exact).abs().max()) < 0.05
    ones = torch.ones(16)
    found, expected = half.vjp(ones), plain.vjp(ones)
    assert found.dtype == torch.float32 and float((found - expected).abs().max()) < 0.3
    torch.testing.assert_close(half.exact(w, x), plain(w, x))
    torch.testing.assert_close(half(w.double(), x.double()), plain(w.double(), x.double()))


def test_without_nets_it_is_refused() -> None:
    with pytest.raises(FccoError, match="F0606"):
        fccomodel.compile("var x; minimize x^2;").bind().solve(precision="bfloat16")
