"""Saddles, poles and flat directions: what the report says of points that meet first-order conditions."""

from __future__ import annotations

import numpy as np
import pytest

import fccomodel
from fccomodel import report

SADDLE = "A saddle point"
BEATEN = "Stationary, but not best"


def judged(text: str, point: dict[str, object], **data: object) -> report.KKTReport:
    bound = fccomodel.compile(text).bind(**data).bound
    return report.report(bound, {name: np.asarray(value, dtype=float) for name, value in point.items()})


SADDLES = {
    "product": ("var x; var y; minimize (x - 1) * (y - 1) + (x - 1)^4 + (y - 1)^4;", {"x": 1, "y": 1}),
    "maximum": ("var x; var y; maximize -((x - 1) * (y - 1) + (x - 1)^4 + (y - 1)^4);", {"x": 1, "y": 1}),
    "monkey": ("var x; var y; minimize x^3 - 3 * x * y^2 + 0.1 * (x^2 + y^2)^2;", {"x": 0, "y": 0}),
    "three_factors": ("var a; var b; var c; minimize (a * b * c - 1)^2;", {"a": 0, "b": 0, "c": 0}),
    "on_a_sphere": (
        "var x[3]; minimize x[1]^2 + 2 * x[2]^2 + 3 * x[3]^2; subject to on: sumsq(x) == 1;", {"x": [0, 1, 0]},
    ),
    "on_a_plane": (
        "var x[3]; minimize x[1] * x[2] + (x[3] - 1)^2; subject to c: x[1] + x[2] + x[3] == 1;", {"x": [0, 0, 1]},
    ),
    "on_a_ball": (
        "var x; var y; var z; minimize -z + 2 * x * y; subject to c: x^2 + y^2 + z^2 <= 1;", {"x": 0, "y": 0, "z": 1},
    ),
    "in_a_corner": ("var x >= 0; var y >= 0; minimize -x * y + x^4 + y^4;", {"x": 0, "y": 0}),
    "on_a_simplex": ("set I = 1 .. 4; var p[I] in simplex(I); minimize -sumsq(p);", {"p": [0.25] * 4}),
}  # fmt: skip


@pytest.mark.parametrize("name", SADDLES)
def test_a_saddle_is_called_one(name: str) -> None:
    text, point = SADDLES[name]
    found = judged(text, point)
    assert found.verdict.startswith(SADDLE) and not found.solved and found.better is not None
    assert ("the objective rises by" if text.count("maximize") else "the objective falls by") in found.verdict


MINIMA = {
    "on_a_ball": (
        "var x; var y; var z; minimize -z + 0.5 * x * y; subject to c: x^2 + y^2 + z^2 <= 1;", {"x": 0, "y": 0, "z": 1},
    ),
    "flat": ("var x; var y; minimize (x * y - 1)^2;", {"x": 2, "y": 0.5}),
    "of_fourth_order": ("var x; var y; minimize x^4 + (x * y - 1)^2 * y^2;", {"x": 0, "y": 0}),
    "at_a_corner": ("var x in box(-1, 1); var y in box(-1, 1); minimize x * y;", {"x": 1, "y": -1}),
}  # fmt: skip


@pytest.mark.parametrize("name", MINIMA)
def test_a_minimum_of_no_convex_function_is_solved(name: str) -> None:
    found = judged(*MINIMA[name])
    said = ("Solved to high accuracy", "Solved locally to high accuracy")
    assert found.verdict.startswith(said), found.verdict


def test_a_saddle_of_many_variables_is_found_by_a_few_products() -> None:
    """Lanczos' method: one negative eigenvalue of 400."""
    values = np.linspace(1.0, 2.0, 400)
    values[7] = -1.0
    text = "dim d; data q : real[d]; var x[d]; minimize sum[i in d] (q[i] * x[i]^2 + x[i]^4);"
    found = judged(text, {"x": np.zeros(400)}, q=values)
    assert found.verdict.startswith(SADDLE) and "`x[8]` +1.00" in found.verdict


def test_gradients_that_are_small_by_scaling_alone() -> None:
    """Collinear least squares: a slope of 1e-6 beside an objective far from its optimum, which
    Newton's step reaches."""
    random = np.random.default_rng(0)
    x = random.normal(size=(200, 1)) + 1e-6 * random.normal(size=(200, 5))
    w = 1e6 * random.normal(size=5)
    t = x @ w + 0.5 * random.normal(size=200)
    data = {"D": {"x": x, "t": t}}
    text = (
        "dim d; data D : table(x: real[d], t: real); var w[d]; minimize mean[z in D] (dot(w, z.x) - z.t)^2;"
    )
    least = float(np.mean((x @ np.linalg.lstsq(x, t, rcond=1e-14)[0] - t) ** 2))
    ridge = np.linalg.solve(x.T @ x + 1e-8 * np.eye(5), x.T @ t)
    found = judged(text, {"w": ridge}, **data)
    assert (
        found.objective > 1.5 * least
        and found.verdict.startswith(BEATEN)
        and "by Newton's step" in found.verdict
    )
    result = fccomodel.compile(text).bind(**data).solve(seed=0, budget="5s")
    assert result.report.solved and result.objective <= least * (1 + 1e-4)


def test_collinear_columns_within_bounds() -> None:
    """Newton's step is that of the quadratic model within the bounds of the variables."""
    from scipy.optimize import lsq_linear

    random = np.random.default_rng(1)
    x = random.normal(size=(150, 1)) + 1e-5 * random.normal(size=(150, 6))
    t = x @ (1e5 * random.normal(size=6)) + 0.5 * random.normal(size=150)
    text = (
        "dim d; data D : table(x: real[d], t: real); var w[d] in box(-5e4, 5e4); "
        "minimize mean[z in D] (dot(w, z.x) - z.t)^2;"
    )
    least = 2 * lsq_linear(x, t, (-5e4, 5e4), method="bvls", tol=1e-14).cost / 150
    result = fccomodel.compile(text).bind(D={"x": x, "t": t}).solve(seed=0, budget="5s")
    assert result.report.solved and result.objective <= least * (1 + 1e-4)


POLES = {
    "logarithm": ("var x; minimize log(abs(x - 1)) + 4 * x^2;", {"x": (8 - 32**0.5) / 16}),
    "quotient": ("var x; minimize 1 / x + x^2;", {"x": 0.5 ** (1 / 3)}),
    "power": ("var x; minimize x^-3 + x^3;", {"x": 1}),
}


@pytest.mark.parametrize("name", POLES)
def test_a_pole_beside_a_stationary_point(name: str) -> None:
    text, point = POLES[name]
    found = judged(text, point)
    assert (
        not found.solved and "the objective falls without end where" in found.verdict and found.better is None
    )


def test_poles_of_rows_are_looked_at() -> None:
    text = "data D : table(x: real); var m; minimize mean[z in D] log(abs(z.x - m)) + m^2;"
    result = fccomodel.compile(text).bind(D={"x": np.array([-1.0, 0.5, 2.0])}).solve(seed=0, budget="1s")
    assert not result.report.solved


@pytest.mark.parametrize("text", ["var x >= 0; minimize x * log(x);", "var x; minimize x - log(x);"])
def test_logarithms_that_do_not_fall_have_no_pole(text: str) -> None:
    assert fccomodel.compile(text).bind().solve(seed=0, budget="1s").report.solved


def test_a_solve_leaves_a_saddle_that_it_begins_at() -> None:
    text = "var x; var y; minimize (x - 1) * (y - 1) + (x - 1)^4 + (y - 1)^4;"
    result = fccomodel.compile(text).bind().solve(seed=0, budget="2s", start={"x": 1.0, "y": 1.0})
    assert result.report.solved and result.objective == pytest.approx(-1 / 8, rel=1e-6)


def test_where_curvature_is_not_known_the_words_say_stationary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "BESIDE_S", 0.0)
    monkeypatch.setattr(report, "BESIDE_SHARE", 0.0)
    found = judged("var x; var y; minimize (x * y)^2 - 2 * x * y;", {"x": 2, "y": 0.5})
    assert (
        found.verdict.startswith("Stationary to high accuracy")
        and "whether it is a saddle is not known" in found.verdict
    )


def test_an_underflowing_weight_is_reported_inside_its_bound() -> None:
    text = (
        "dim d; data c : real[d]; var w[d] in simplex(d); minimize dot(c, w) + 0.001 * sum[i in d] "
        "w[i] * log(w[i]);"
    )
    result = fccomodel.compile(text).bind(c=np.arange(4.0)).solve(seed=0, budget="2s")
    assert result.report.solved and abs(result.objective) < 1e-8
    found = judged(text, {"w": [1, 0, 0, 0]}, c=np.arange(4.0))
    assert np.isfinite(found.objective) and any("nearest numbers inside" in note for note in found.notes)


@pytest.mark.parametrize("far", [1e3, 1e8, 1e9], ids=str)
def test_columns_that_nearly_cancel_hide_no_better_point(far: float) -> None:
    """Slope and intercept of a column far from 0 nearly cancel: beyond 1e8 rounding hides the curvature."""
    text = "data D : table(x: real, y: real); var a; var b; minimize mean[z in D] (a * z.x + b - z.y)^2;"
    x = np.arange(20.0)
    y = x + np.sin(7 * x)
    data = {"D": {"x": far + x, "y": y}}
    centred = float(((y - np.polyval(np.polyfit(x, y, 1), x)) ** 2).mean())
    slope = float(y @ data["D"]["x"] / (data["D"]["x"] @ data["D"]["x"]))
    found = judged(text, {"a": slope, "b": 0.0}, **data)
    assert not found.verdict.startswith("Solved") and found.objective > 10 * centred
    assert found.better is not None
    better = judged(text, {name: float(value) for name, value in found.better.items()}, **data)
    assert better.objective < 1.1 * centred


def test_columns_that_cancel_are_no_alarm() -> None:
    text = (
        "data D : table(x: real, y: real); var a; var b; minimize mean[z in D] (a * z.x + b * z.x - z.y)^2;"
    )
    x = np.arange(20.0) + 1
    y = x + np.sin(7 * x)
    found = judged(text, {"a": y @ x / (x @ x), "b": 0.0}, D={"x": x, "y": y})
    assert found.verdict.startswith("Solved to high accuracy")


@pytest.mark.parametrize("slope", ["0.5", "1"])
def test_a_gain_by_underflow_is_none(slope: str) -> None:
    """The norm of a vector of entries of 1e-200 is 0 in double precision, and a slope is not."""
    result = fccomodel.compile(f"var x[2]; minimize norm2(x) - {slope} * x[1];").bind().solve(seed=0)
    assert result.report.solved and result.objective == 0
