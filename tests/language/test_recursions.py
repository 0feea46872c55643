"""Recursions: their values against loops of NumPy, facts by induction, lengths that the data say, both notations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import torch

import fccomodel as fc
from fccomodel.core.diagnostics import FccoError
from fccomodel.evaluation.interpret import evaluate

SMOOTHING = """
dim n;
data y : real[n];
var a in box(0, 1);
let f[t in n] = if t == 1 then y[1] else a * y[t - 1] + (1 - a) * f[t - 1];
minimize error: sum[t in n] (y[t] - f[t])^2;
"""
STOCK = """
const n = 6;
data S : table(need: real[n]);
var a[n] >= 0;
let stock[s in S, t in n] = if t == 1 then a[1] - s.need[1] else max(stock[s, t - 1], a[t]) - s.need[t];
minimize cost: E[s ~ S] sum[t in n] (pos(stock[s, t]) + 4 * pos(-stock[s, t]));
"""
HIDDEN = """
const T = 7;
set K = 1 .. 3;
data y : real[T];
data a : real[K, K];
let alpha[t in T, k in K] = (if t == 1 then 1 / 3 else sum[j in K] alpha[t - 1, j] * a[j, k]) * exp(-(y[t] - m[k])^2);
minimize likelihood: -log(sum[k in K] alpha[T, k]);
""".replace("let", "var m[K];\nlet", 1)
BACKWARD = """
dim n;
data r : real[n];
var a;
let value[t in n] = if t == n then r[n] * a else max(r[t] * a, 0.9 * value[t + 1]);
minimize first: value[1];
"""
STEERED = """
const n = 5;
dim d, m;
data A : real[d, d];
data B : real[d, m];
data begin : real[d];
var u[n, m];
let x[t in n] = if t == 1 then begin else A @ x[t - 1] + B @ u[t - 1];
minimize effort: sum[t in n] (sum[i in d] x[t, i]^2 + 0.1 * sumsq(u[t]))
subject to
  there[i in d]: x[n, i] == 0;
"""
DRAWDOWN = """
dim n, a;
data r : real[n, a];
var x[a] in simplex(a);
let wealth[t in n] = if t == 1 then dot(r[1], x) else wealth[t - 1] + dot(r[t], x);
let peak[t in n] = if t == 1 then wealth[1] else max(peak[t - 1], wealth[t]);
maximize growth: wealth[n]
subject to
  drawdown[t in n]: peak[t] - wealth[t] <= 0.15;
"""
GROWTH = """
const n = 5;
data r : real[n];
var w[n] >= 0;
let best[t in n] = if t == 1 then r[1] * w[1] else max(best[t - 1], 2 * best[t - 1] + r[t] * w[t]);
minimize last: best[n] + exp(best[2]);
"""


def smoothing(data: Mapping[str, Any], at: Mapping[str, torch.Tensor]) -> torch.Tensor:
    y, a = data["y"], at["a"]
    level, error = torch.tensor(y[0]), torch.tensor(0.0)
    for before, value in zip(y, y[1:], strict=False):
        level = a * before + (1 - a) * level
        error = error + (value - level) ** 2
    return error


def stock(data: Mapping[str, Any], at: Mapping[str, torch.Tensor]) -> torch.Tensor:
    need, levels = torch.tensor(data["S"]["need"]), at["a"]
    held, cost = levels[0].expand(len(need)), torch.tensor(0.0)
    for t, level in enumerate(levels):
        held = torch.maximum(held, level) - need[:, t]
        cost = cost + (held.clamp(min=0) + 4 * (-held).clamp(min=0)).mean()
    return cost


def hidden(data: Mapping[str, Any], at: Mapping[str, torch.Tensor]) -> torch.Tensor:
    moves, share = torch.tensor(data["a"]), torch.full((3,), 1 / 3, dtype=torch.float64)
    for t, value in enumerate(data["y"]):
        share = (share @ moves if t else share) * torch.exp(-((value - at["m"]) ** 2))
    return -torch.log(share.sum())


def backward(data: Mapping[str, Any], at: Mapping[str, torch.Tensor]) -> torch.Tensor:
    value = data["r"][-1] * at["a"]
    for gain in data["r"][-2::-1]:
        value = torch.maximum(gain * at["a"], 0.9 * value)
    return value


CASES: dict[str, tuple[str, Callable[..., Any], Callable[..., torch.Tensor], dict[str, tuple[int, ...]]]] = {
    "smoothing": (SMOOTHING, lambda r: {"y": r.normal(size=8)}, smoothing, {"a": ()}),
    "stock": (STOCK, lambda r: {"S": {"need": r.random((20, 6))}}, stock, {"a": (6,)}),
    "hidden": (HIDDEN, lambda r: {"y": r.normal(size=7), "a": r.random((3, 3))}, hidden, {"m": (3,)}),
    "backward": (BACKWARD, lambda r: {"r": r.normal(size=6)}, backward, {"a": ()}),
}


def bound(text: str, data: Mapping[str, Any]) -> Any:
    return fc.Model.parse(text).bind(**data)


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_a_loop(name: str) -> None:
    text, draw, loop, shapes = CASES[name]
    random = np.random.default_rng(7)
    data = draw(random)
    model = bound(text, data).bound
    for _ in range(3):
        values = {key: torch.tensor(random.random(shape)).requires_grad_() for key, shape in shapes.items()}
        ours = evaluate(model, model.problem.objective.expr, values)
        theirs = loop(data, values)
        assert ours.item() == pytest.approx(theirs.item(), rel=1e-12)
        mine, other = (torch.autograd.grad(value, list(values.values())) for value in (ours, theirs))
        for one, two in zip(mine, other, strict=True):
            torch.testing.assert_close(one, two, rtol=1e-10, atol=1e-12)


def test_facts_hold_by_induction() -> None:
    random = np.random.default_rng(0)
    steered = {"A": random.normal(size=(2, 2)), "B": random.normal(size=(2, 1)), "begin": np.ones(2)}
    assert "convex" in str(bound(STEERED, steered).explain()).splitlines()[2]
    assert "convex" in str(bound(GROWTH, {"r": np.ones(5)}).explain()).splitlines()[2]
    assert "weakly convex" in str(bound(SMOOTHING, {"y": np.arange(5.0)}).explain()).splitlines()[2]


def test_the_data_say_the_length() -> None:
    model = fc.Model.parse(SMOOTHING)
    assert model.compiled.compiled.problem.counting == {"n"}
    assert "how many steps" in str(model.explain())
    for length in (2, 9):
        problem = model.bind(y=np.arange(float(length))).bound.problem
        assert not problem.counting
        assert len(list(problem.lets["f"].body.children[0].children)) == length
    with pytest.raises(FccoError, match="F0438"):
        model.bind(y=np.arange(1000.0))


def test_python_writes_a_recursion_as_a_function_of_itself() -> None:
    m = fc.Model("r")
    m.n = fc.const(5)
    m.y = fc.array(m.n)
    m.a = fc.var(domain=fc.box(0, 1))
    m.let(f=lambda f: (fc.if_else(t == 1, m.y[1], m.a * m.y[t - 1] + f[t - 1]) for t in m.n))
    m.minimize(fc.sum((m.y[t] - m.f[t]) ** 2 for t in m.n))
    assert "let f[t in n] = if t == 1 then y[1] else a * y[t - 1] + f[t - 1];" in str(m)
    scope: dict[str, Any] = {}
    exec(m.to_python(), scope)
    assert str(scope["m"]) == str(m)
    with pytest.raises(FccoError, match="lambda f: "):
        m.let(f=lambda f, g: f[1])


def test_an_index_may_have_the_name_of_its_own_quantity() -> None:
    text = "set K = 1 .. 3; var x[K]; let k = sum[k in K] x[k]; minimize k^2;"
    assert fc.Model.parse(text).compiled.compiled.problem.lets["k"].body.binders


def test_latex_has_the_step_as_a_subscript() -> None:
    assert r"f_{2} = a\, y_{1}" in fc.Model.parse(SMOOTHING).latex()


@pytest.mark.slow
def test_optimum_is_that_of_cvxpy() -> None:
    random = np.random.default_rng(1)
    data = {
        "A": 0.6 * random.normal(size=(3, 3)),
        "B": random.normal(size=(3, 2)),
        "begin": random.normal(size=3),
    }
    u, x, cost = cp.Variable((5, 2)), data["begin"], 0
    for t in range(5):
        x = data["A"] @ x + data["B"] @ u[t - 1] if t else x
        cost = cost + cp.sum_squares(x) + 0.1 * cp.sum_squares(u[t])
    best = cp.Problem(cp.Minimize(cost), [x == 0]).solve()
    assert bound(STEERED, data).solve(budget="20s").objective == pytest.approx(best, rel=1e-5)


@pytest.mark.slow
def test_a_bound_on_the_drawdown_is_met_as_by_cvxpy() -> None:
    gains = np.random.default_rng(3).normal(0.01, 0.06, size=(8, 3))
    x = cp.Variable(3, nonneg=True)
    wealth = [gains[: t + 1].sum(axis=0) @ x for t in range(8)]
    falls = [before - after <= 0.15 for t, after in enumerate(wealth) for before in wealth[:t]]
    best = cp.Problem(cp.Maximize(wealth[-1]), [cp.sum(x) == 1, *falls]).solve()
    assert bound(DRAWDOWN, {"r": gains}).solve(budget="20s").objective == pytest.approx(best, rel=1e-6)
