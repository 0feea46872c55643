"""Nets of rows with draws beside them: how many draws there are, and what of them is held at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import fccomodel
from fccomodel.data import draw_counts, net_costs
from fccomodel.evaluation import interpret
from fccomodel.evaluation.interpret import evaluator

ROWS, WIDTH = 600, 40
TEXT = f"""model m; data D : table(x: real[{WIDTH}], y: real);
net s : real[{WIDTH + 1}] -> real; var w = params(s);
minimize nested: E[z ~ D] (z.y - E[e ~ uniform(0, 1)] s(w; concat(z.x, e)))^2;"""


@pytest.fixture
def bound() -> Any:
    rng = np.random.default_rng(0)
    data = {"x": rng.normal(size=(ROWS, WIDTH)), "y": rng.normal(size=ROWS)}
    return fccomodel.compile(TEXT).bind(D=data, nets={"s": "mlp(64)"}).bound


def test_a_draw_that_a_net_sees_counts_what_the_net_works_on(bound: Any) -> None:
    """41 x 64 + 64 products, at 16 a number; so 20,000 draws for each row become a few hundred."""
    weight = net_costs.numbers_of_a_row(bound, "s")
    numbers = WIDTH + 1 + 64 + 64 + 1 + 1
    assert weight == max(numbers, -(-(41 * 64 + 64) // net_costs.PRODUCTS_OF_A_NUMBER))
    each = draw_counts.MOST_NUMBERS // (ROWS * weight)
    assert 256 < each < 1000
    assert net_costs.evaluations(bound, "s") == ROWS * each


def test_inputs_are_made_in_parts(bound: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """All inputs at once would be 600 x 600 x 41 numbers; value and gradient are those of autograd."""
    monkeypatch.setattr(net_costs, "THRIFTY_PASS", float("inf"))
    seen: list[int] = []
    plain = evaluator.net_apply

    def counted(module: Any, weights: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        seen.append(rows.numel())
        return plain(module, weights, rows)

    monkeypatch.setattr(evaluator, "net_apply", counted)
    objective = bound.problem.objective.expr
    size = sum(p.numel() for p in bound.nets["s"].parameters())
    w = 0.1 * torch.randn(size, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    leaf = w.clone().requires_grad_()
    value = interpret.evaluate(bound, objective, {"w": leaf}, draws=100)
    (slope,) = torch.autograd.grad(value, leaf)
    assert max(seen) <= evaluator.CHUNK
    whole_leaf = w.clone().requires_grad_()
    whole = interpret.evaluate(bound, objective, {"w": whole_leaf}, draws=100, chunk=1 << 40)
    (whole_slope,) = torch.autograd.grad(whole, whole_leaf)
    torch.testing.assert_close(value, whole, rtol=1e-12, atol=0)
    torch.testing.assert_close(slope, whole_slope, rtol=1e-9, atol=1e-12)
