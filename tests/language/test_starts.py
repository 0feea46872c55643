"""Where runs begin: ``var c start normal(0, 1)``, and the best of several starts."""

from __future__ import annotations

import numpy as np
import pytest
from support.notations import goes_both_ways

import fccomodel as fc
from fccomodel.core.source import Source
from fccomodel.data import bind
from fccomodel.evaluation import starts
from fccomodel.language import check, parse
from fccomodel.pipeline.routes import several_starts

TWO_WELLS = "minimize f: -exp(-(x - 8)^2) - 2 * exp(-(x + 8)^2) + 0.001 * x^2;"
LEAST = -1.936031984


def first(text: str, seed: int = 0, **data: object) -> dict[str, np.ndarray]:
    """The first values that a model says."""
    source = Source(text=text)
    return starts.declared(bind.bind(check.check(parse.parse(source), source), data=data), seed)


def test_numbers_and_arrays() -> None:
    text = "dim n; param a default 3; data c : real[n]; var x[n] start 2 * c + a; var y start -1; var z;"
    found = first(f"{text} minimize sumsq(x) + y^2 + z^2;", c=np.array([1.0, 2.0]))
    assert found.keys() == {"x", "y"}
    assert found["x"] == pytest.approx([5.0, 7.0])
    assert found["y"] == -1


def test_draws_follow_the_seed() -> None:
    text = (
        "var x[200, 50] start normal(1, 2); var y[200, 50] start normal(1, 2); minimize sumsq(x) + sumsq(y);"
    )
    found, again, other = first(text), first(text), first(text, 1)
    assert np.array_equal(found["x"], again["x"])
    assert not np.array_equal(found["x"], other["x"])
    assert not np.array_equal(found["x"], found["y"])
    assert found["x"].mean() == pytest.approx(1, abs=0.1)
    assert found["x"].std() == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize("side", [-1, 1])
def test_a_run_begins_there(side: int) -> None:
    found = fc.compile(f"var x start {side} * 0.9; minimize (x^2 - 1)^2;").bind().solve(seed=0)
    assert found.variables["x"] == pytest.approx(side, abs=1e-5)


def test_who_solves_may_say_another() -> None:
    model = fc.compile("var x start 0.9; minimize (x^2 - 1)^2;").bind()
    assert model.solve(start={"x": -0.9}).variables["x"] == pytest.approx(-1, abs=1e-5)


@pytest.mark.slow
def test_the_best_of_several_starts() -> None:
    model = fc.compile(f"var x start normal(0, 6); {TWO_WELLS}").bind()
    answers = [model.solve(seed=seed, starts=12, budget="2400it") for seed in (1, 2)]
    for answer in answers:
        assert answer.objective == pytest.approx(LEAST, rel=1e-6)
        assert "the best of 12 starts" in answer.outcome.solution.stopped


def test_several_starts_stand_alone(tmp_path) -> None:
    model = fc.compile(f"var x; {TWO_WELLS}").bind()
    with pytest.raises(fc.FccoError, match="F0712"):
        model.solve(starts=2, checkpoint=tmp_path / "kept")


def test_start_is_a_name_too() -> None:
    text = "var start[2] >= 0 start 1; minimize sum[i in 2 .. 2] start[i] + sumsq(start - 1);"
    assert goes_both_ways(text + "\n")
    assert first(text)["start"].tolist() == [1, 1]


def test_a_start_that_meets_the_constraints_comes_first() -> None:
    """Most starts end where a constraint is violated, and the objective is smaller."""
    text = "var x; minimize x + 0.01 * x^2 subject to c: 0.02 + x^2 - 1.5 * x^3 <= 0;"
    answer = fc.compile(text).bind().solve(starts=10, seed=0, budget="1000it")
    assert answer.status == "solved" and answer.variables["x"] == pytest.approx(0.6943, abs=1e-3)


def test_a_start_where_nothing_is_finite_is_left_out() -> None:
    text = "var w; minimize -log(0.01 - (w - 50)^2) - (w - 50)^2 + 0.001 * w^2;"
    answer = (
        fc.compile(text).bind().solve(starts=3, start={"w": 50.0}, seed=0, unverified=True, budget="60it")
    )
    assert "near 2 more the objective is not finite" in answer.outcome.stopped


def test_starts_from_one_point_are_refused() -> None:
    with pytest.raises(fc.FccoError, match="from one point several times"):
        fc.compile("var x start 3; minimize (x^2 - 1)^2;").bind().solve(starts=3)


def test_an_index_may_be_called_start() -> None:
    fc.compile("set K = {1, 2}; index start in K; var x[K]; minimize mean_start x[start]^2;")


def test_one_start_is_enough_only_where_convexity_is_not_assumed() -> None:
    text = "dim d; data D : table(x: real[d], y: real); {} minimize E[z ~ D] {};"
    net = text.format("net s : real[d] -> real assume convex; var v = params(s); var b;", "s(v; z.x) + b^2")
    linear = text.format("var w[d];", "(dot(w, z.x) - z.y)^2")
    data = {"D": {"x": np.ones((3, 2)), "y": np.zeros(3)}}
    counts = {}
    for name, model, nets in (("net", net, {"s": "mlp(2)"}), ("linear", linear, {})):
        planned = fc.compile(model).bind(data=data, nets=nets).plan(starts=5)
        counts[name] = several_starts.count(planned)
        assert planned.analysis.convex
    assert counts == {"net": 5, "linear": 1}
