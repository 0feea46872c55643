"""Nets whose passes over all rows are dear: thrifty passes, smaller batches, budgets that are kept."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
import torch

import fccomodel
from fccomodel.data import net_costs

TEXT = (
    "model m; dim c; dim a; dim b; data D : table(x: real[c, a, b], y: {0, 1});"
    "set P = {z in D | z.y == 1}; set N = {z in D | z.y == 0};"
    "net s : real[c, a, b] -> real; var w = params(s);"
    "minimize auc: E[p ~ P] log(E[n ~ N] exp(square(max(1 - (s(w; p.x) - s(w; n.x)), 0))));"
    "subject to rate: E[p ~ P] sigmoid(-s(w; p.x)) <= 0.2;"
)


def net() -> torch.nn.Module:
    torch.manual_seed(0)
    nn = torch.nn
    layers = nn.Conv2d(1, 4, 3, padding=1), nn.ELU(), nn.AvgPool2d(4), nn.Flatten(), nn.Linear(16, 1)
    return nn.Sequential(*layers, nn.Flatten(-2))


@pytest.fixture
def problem(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(net_costs, "THRIFTY_PASS", 1e5)
    rng = np.random.default_rng(0)
    y = (rng.random(600) < 0.4).astype(int)
    x = rng.normal(size=(600, 1, 8, 8)).astype(np.float32)
    x[y == 1, :, 2:6, 2:6] += 0.8
    return fccomodel.compile(TEXT).bind(D={"x": x, "y": y}, nets={"s": net()})


@pytest.fixture
def grouped(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The same with a bound for each of three groups of unequal size."""
    monkeypatch.setattr(net_costs, "THRIFTY_PASS", 1e5)
    rng = np.random.default_rng(1)
    y = (rng.random(600) < 0.4).astype(int)
    x = rng.normal(size=(600, 1, 8, 8)).astype(np.float32)
    g = rng.choice(["a", "b", "c"], size=600, p=[0.6, 0.3, 0.1])
    text = TEXT.replace("y: {0, 1})", "y: {0, 1}, g: G)").replace("model m;", "model m; set G;")
    text = text.replace("rate: E[p ~ P]", "rate[k in G]: E[p ~ P | p.g == k]")
    return fccomodel.compile(text).bind(D={"x": x, "y": y, "g": g}, nets={"s": net()})


def test_blocks_share_their_rows_with_constraints(grouped: Any) -> None:
    """The rows p of the objective are those of the groups' constraints: one pass of the net for both."""
    text = grouped.emit(unverified=True, budget="5s")
    assert "E[p ~ P | p.g == k] sigmoid" in text
    assert "in_range(" not in text.partition("def gradient")[2].partition("def evaluate")[0]
    (strata,) = grouped.plan(unverified=True, budget="5s").plan.strata
    assert len(strata.cells) == 2
    assert 32 <= strata.size < 64


def test_ranks_share_blocks_in_place_of_rows(grouped: Any) -> None:
    assert not grouped.plan(unverified=True, budget="5s", ranks=True).plan.strata


def test_shared_rows_give_unbiased_means(grouped: Any) -> None:
    """Drawn uniformly within strata, the weighted mean of a batch has the mean over a set, or over each
    of its groups, as its expectation."""
    (strata,) = grouped.plan(unverified=True, budget="5s").plan.strata
    of_rows = np.random.default_rng(2).normal(size=600)
    begins = np.concatenate([[0], np.cumsum(strata.sizes)])
    means = [of_rows[strata.rows[a:b]].mean() for a, b in zip(begins[:-1], begins[1:], strict=True)]
    for binder, cells in strata.cells.items():
        expected = strata.per_row(np.array(means))[strata.taken(binder)] * strata.weights(binder)
        in_batch = strata.per_row(cells)[strata.taken(binder)]
        of_members = np.repeat(cells, strata.sizes)
        for cell in np.unique(cells[cells >= 0]):
            members = strata.rows[of_members == cell]
            assert expected[in_batch == cell].mean() == pytest.approx(of_rows[members].mean(), abs=1e-12)


def test_what_a_pass_costs() -> None:
    """A convolution of 4 x 9 weights at 64 places, and a layer of 16 weights."""
    assert net_costs.multiply_adds(net(), [torch.zeros(1, 1, 8, 8)]) == 4 * 9 * 64 + 16


def test_passes_are_thrifty(problem: Any) -> None:
    planned = problem.plan(unverified=True, budget="5s")
    assert planned.plan.thrifty
    assert planned.plan.hyper["gamma_prime"] == 0.0
    text = problem.emit(unverified=True, budget="5s")
    assert "net_in_blocks(net_s, w, data.D_x, PRECISION)" in text
    assert "epochs('n', " in text
    assert "def whole(" not in text
    assert "looking: float = 0.15" in text


def test_values_are_those_of_the_problem(problem: Any) -> None:
    """The report's values in the precision of the steps are those by hand in float64."""
    result = problem.solve(unverified=True, budget="300it", seed=0)
    table = problem.bound.tables["D"].columns
    x, y = torch.from_numpy(np.asarray(table["x"], dtype=np.float64)), np.asarray(table["y"])
    s = result.module("s").double()(x).detach().numpy()
    p, n = s[y == 1], s[y == 0]
    objective = np.log(np.exp(np.maximum(1 - (p[:, None] - n), 0) ** 2).mean(1)).mean()
    assert result.objective == pytest.approx(objective, rel=1e-4)
    assert result.constraints["rate"] == pytest.approx((1 / (1 + np.exp(p))).mean() - 0.2, abs=1e-5)
    assert result.objective < 0.6


@pytest.mark.slow
def test_a_budget_in_seconds_is_kept(problem: Any) -> None:
    """In seconds of the processor, of one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    began = time.process_time()
    try:
        result = problem.solve(unverified=True, budget="4s", seed=0)
    finally:
        torch.set_num_threads(threads)
    assert time.process_time() - began < 1.3 * 4 + 5
    assert result.outcome.solution.iterations > 200
    assert max(result.constraints.values()) < 0.02


def test_looks_are_at_a_sample_where_a_pass_is_too_dear(
    problem: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quarter of the rows decides between points; the report is of all rows."""
    whole = net_costs.pass_cost(problem.bound)
    monkeypatch.setattr(net_costs, "SAMPLED_PASS", whole / 2)
    monkeypatch.setattr(net_costs, "SAMPLE_PASS", whole / 4)
    planned = problem.plan(unverified=True, budget="400it")
    assert any("sample of 25% of the rows" in line for line in planned.plan.practice)
    result = problem.solve(unverified=True, budget="400it", seed=0)
    assert "data.D_x_2" in result.solver
    table = problem.bound.tables["D"].columns
    x, y = torch.from_numpy(np.asarray(table["x"], dtype=np.float64)), np.asarray(table["y"])
    s = result.module("s").double()(x).detach().numpy()
    assert result.constraints["rate"] == pytest.approx((1 / (1 + np.exp(s[y == 1]))).mean() - 0.2, abs=1e-5)
    assert result.objective < 0.6


def test_looks_take_fewer_rows_of_a_short_budget(problem: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(net_costs, "LEAST_LOOKED_AT", 60)
    seconds = net_costs.Rates().product * net_costs.pass_cost(problem.bound)
    assert net_costs.looked_at(problem.bound, seconds / net_costs.LOOK_SHARE / 2) == pytest.approx(0.5)
    assert net_costs.looked_at(problem.bound, 1e-9) == pytest.approx(0.1)
    assert net_costs.looked_at(problem.bound, 1e9) == 1.0


def test_the_price_of_a_net_needs_no_compiler() -> None:
    """Layers of transformers count, which torch may run as one operation."""
    conv = torch.nn.Conv2d(2, 4, 3, padding=1)
    assert net_costs.multiply_adds(conv, [torch.zeros(1, 2, 5, 5)]) == 2 * 9 * 4 * 25
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
    assert net_costs.multiply_adds(layer, [torch.zeros(1, 7, 16)]) == 7 * (4 * 16 * 16 + 2 * 16 * 32)
