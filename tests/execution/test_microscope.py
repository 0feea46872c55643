"""Algorithms under the microscope: estimates beside true values, the bias of gradients, multipliers;
the run goes on as ever."""

from __future__ import annotations

import numpy as np
import pytest

import fccomodel
from fccomodel.core.diagnostics import FccoError

SQUARE = "data D : table(x: real); var w; minimize ((E[z ~ D] w * z.x) - 1)^2;"
GROUPS = """dim d; set G;
data D : table(x: real[d], y: {-1, 1}, g: G);
var w[d];
minimize mean[k in G] (E[z ~ D | z.g == k] log1pexp(-z.y * dot(w, z.x)))^2;
subject to small[k in G]: E[z ~ D | z.g == k] abs(dot(w, z.x)) <= 0.6;
"""
ALL = ("u", "g", "gradient", "y")


@pytest.fixture(scope="module")
def square():
    return fccomodel.compile(SQUARE).bind(D={"x": np.array([0.0, 2.0])})


X = np.random.default_rng(0).normal(size=(90, 2))
Y = np.where(X[:, 0] + np.random.default_rng(1).normal(size=90) > 0, 1, -1)
GROUP = np.arange(90) % 3


@pytest.fixture(scope="module")
def groups():
    return fccomodel.compile(GROUPS).bind(D={"x": X, "y": Y, "g": np.array(list("abc"))[GROUP]})


def test_the_bias_of_plain_sgd_is_what_theory_says(square):
    given = {"algorithm": "bsgd", "inner_batch": 1, "budget": "300it", "seed": 0}
    trace = square.solve(trace=("gradient",), trace_at=[0, 20, 100], **given).trace
    for look in trace.looks:
        w, G = float(look.variables["w"]), look.gradient
        assert G.true == pytest.approx([2 * (w - 1)], abs=1e-5)
        assert (
            abs(G.mean[0] - (4 * w - 2)) <= 5 * G.error + 1e-6
        )  # E of 2 x (w x - 1), with E x = 1 and E x^2 = 2
        assert G.bias == pytest.approx(abs(G.mean[0] - G.true[0]))


def test_with_all_rows_estimates_are_exact_and_gradients_unbiased(groups):
    given = {"algorithm": "sonex", "precision": "float64", "budget": "40it", "seed": 0, "outer_batch": 3}
    trace = groups.solve(trace=ALL, trace_at=[0, 1, 10, 39], inner_batch=90, **given).trace
    assert trace.trace.blocks == {name: ["[a]", "[b]", "[c]"] for name in trace.trace.estimates}
    assert all(np.isnan(u).all() for u in trace.looks[0].u.values())
    for look in trace.looks:
        assert look.gradient.bias <= 1e-9 * (1 + look.gradient.size) and look.gradient.noise <= 1e-6
    w = trace.looks[2].variables["w"]
    for name, text in trace.trace.estimates.items():
        loss = np.abs(X @ w) if "abs" in text else np.logaddexp(0, -Y * (X @ w))
        assert trace.looks[2].g[name] == pytest.approx([loss[GROUP == k].mean() for k in range(3)])


def test_estimates_follow_the_true_values(groups):
    trace = groups.solve(trace=("u", "g"), algorithm="sonex", inner_batch=8, budget="400it", seed=0).trace
    frame = trace.to_pandas()
    assert list(frame["step"][:3]) == [0, 1, 2] and (np.diff(frame["step"]) > 0).all()
    for name in trace.trace.estimates:
        assert frame[f"off {name}"].iloc[-5:].mean() < 0.2


def test_a_trace_does_not_disturb_the_run(groups):
    given = {"algorithm": "sonex", "inner_batch": 8, "budget": "200it", "seed": 3, "polish": False}
    traced, plain = groups.solve(trace=ALL, trace_at=range(0, 200, 50), **given), groups.solve(**given)
    assert np.array_equal(traced.variables["w"], plain.variables["w"]) and plain.trace is None
    assert [look.step for look in traced.trace.looks] == [0, 50, 100, 150]
    assert traced.trace.looks[-1].multipliers.keys() == {"small[a]", "small[b]", "small[c]"}


@pytest.mark.parametrize("algorithm", ["bsgd", "soap", "sox", "msvr", "alexr", "alexr2", "sonex"])
def test_all_block_algorithms_can_be_traced(groups, algorithm):
    free = algorithm in ("bsgd", "soap", "sox", "msvr", "alexr")  # those that take no constraints
    problem = (
        fccomodel.compile(GROUPS.partition("subject")[0]).bind(**groups.binding.data) if free else groups
    )
    result = problem.solve(
        trace=ALL, trace_at=[0, 5], algorithm=algorithm, inner_batch=8, budget="20it", unverified=True
    )
    assert len(result.trace.rows) == 2 and all(
        np.isfinite(look.gradient.mean).all() for look in result.trace.looks
    )


def test_pictures(groups):
    pytest.importorskip("matplotlib")
    trace = groups.solve(trace=ALL, algorithm="sonex", inner_batch=8, budget="60it", seed=0).trace
    for figure in (trace.plot.tracking(), trace.plot.bias(), trace.plot.multipliers()):
        assert figure.axes and all(panel.lines for panel in figure.axes)


def test_what_cannot_be_traced_is_refused(groups, square):
    with pytest.raises(FccoError, match="no trace of `z`"):
        groups.solve(trace=["u", "z"])
    with pytest.raises(FccoError, match="cannot be traced"):
        square.solve(trace=["u"], algorithm="hscg")
    with pytest.raises(FccoError, match="one run"):
        groups.solve(trace=["u"], margin=0.95)


def test_the_dual_of_an_outer_function_is_seen():
    text = GROUPS.partition("minimize")[0]
    text += (
        "minimize cvar(tail = 0.5)[k in G] (E[z ~ D | z.g == k] log1pexp(-z.y * dot(w, z.x))) + 0.1 "
        "* sumsq(w);"
    )
    problem = fccomodel.compile(text).bind(D={"x": X, "y": Y, "g": np.array(list("abc"))[GROUP]})
    given = {"trace_at": [0, 200, 399], "algorithm": "alexr", "budget": "400it", "seed": 0}
    trace = problem.solve(trace=["y"], inner_batch=30, **given).trace
    (name,) = trace.trace.duals
    assert trace.trace.blocks[name] == ["[a]", "[b]", "[c]"] and "cvar" in trace.trace.duals[name]
    first, *_, last = (look.y[name] for look in trace.looks)
    assert (first == 0).all() and (last >= 0).all() and (last <= 1).all()
    assert last.sum() == pytest.approx(0.5 * 3, abs=0.1)  # weights y / (tail n) of a mean
    w = trace.looks[-1].variables["w"]
    loss = np.logaddexp(0, -Y * (X @ w))
    assert last[np.argmax([loss[GROUP == k].mean() for k in range(3)])] == last.max()
    assert trace.rows[-1][f"y {name}[a]"] == last[0]
    pytest.importorskip("matplotlib")
    assert len(trace.plot.multipliers().axes[0].lines) == 3
