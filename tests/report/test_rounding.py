"""What rounding hides is part of a certified gap: truth is known in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import fccomodel
from fccomodel import report
from fccomodel.core.work import Meter
from fccomodel.report.certificates.rounding import SUM_ROUNDINGS, UNIT, rounding
from fccomodel.report.point.system import System
from fccomodel.structure import analyse
from fccomodel.structure.facts import Standing


def bound(text, data=None):
    return fccomodel.compile(text).bind(data=data or {}).bound


def at(text, point, data=None):
    return report.report(
        bound(text, data), {name: np.asarray(value, dtype=float) for name, value in point.items()}
    )


# ------------------------------------------------------------------------------------ nearly convex
FORM = "data S : real[{n}, {n}]; var x[{n}] >= -{r}, <= {r}; minimize f: dot(x, S @ x);"


@pytest.mark.parametrize(
    ("matrix", "radius", "truth"),
    [
        (np.diag([1e6, 1.0, -1e-6]), 1000.0, -1.0),
        (np.array([[1.0, 1 + 3e-13], [1 + 3e-13, 1.0]]), 1e6, -0.6),
        (np.diag([1.0, *[0.0] * 20, -1e-15]), 1e6, -1e-3),
    ],
)
def test_an_eigenvalue_that_rounding_forgives_is_part_of_the_gap(matrix, radius, truth):
    found = at(FORM.format(n=len(matrix), r=radius), {"x": np.zeros(len(matrix))}, {"S": matrix})
    assert found.gap.value is None or found.gap.value >= -truth


def test_without_a_radius_a_forgiven_eigenvalue_leaves_no_gap():
    text = "data S : real[2, 2]; var x[2]; minimize f: dot(x, S @ x);"
    found = at(text, {"x": np.zeros(2)}, {"S": np.array([[1.0, 1 + 1e-15], [1 + 1e-15, 1.0]])})
    assert found.gap.value is None


@pytest.mark.parametrize("matrix", [np.ones((3, 3)), np.array([[4.0, 6.0], [6.0, 9.0]]), np.zeros((2, 2))])
def test_few_rows_that_are_semidefinite_are_so_exactly(matrix):
    text = "data S : real[{n}, {n}]; var x[{n}]; minimize f: dot(x, S @ x);".format(n=len(matrix))
    found = at(text, {"x": np.zeros(len(matrix))}, {"S": matrix})
    assert found.gap.value == 0


def test_a_function_of_a_forgiven_form_forgives_without_end():
    text = "data S : real[2, 2]; var x[2] >= -1, <= 1; minimize f: exp(dot(x, S @ x));"
    made = bound(text, {"S": np.array([[1.0, 1 + 1e-15], [1 + 1e-15, 1.0]])})
    facts = analyse(made.problem, made).minimised
    assert facts.below.value.rounding > 0
    assert (
        at(text, {"x": np.zeros(2)}, {"S": made.arrays["S"]}).gap.value is None
        or facts.below.value.rounding < np.inf
    )


def test_a_least_value_along_what_may_be_flat_is_estimated():
    text = "var x; var y; minimize f: log((x - 1)^2 + (0.9e-8 * y - 1)^2 + 1e-5);"
    made = bound(text)
    interval = analyse(made.problem, made).minimised.interval
    assert interval.value.lo <= np.log(1e-5) or interval.standing > Standing.BOUNDED


def test_a_slope_that_leaves_the_rows_of_an_affine_set_has_no_support():
    text = "data A : real[1, 2]; var x[2]; minimize f: 1e-10 * x[1]; subject to c: A @ x == 0;"
    assert at(text, {"x": np.zeros(2)}, {"A": np.array([[0.0, 1.0]])}).gap.value is None


# -------------------------------------------------------------------------------- terms that cancel
def exactly(t, y, w, b):
    """The mean of squares in exact arithmetic."""
    terms = [
        Fraction(w) * Fraction(a) + Fraction(b) - Fraction(c)
        for a, c in zip(t.tolist(), y.tolist(), strict=True)
    ]
    return float(sum(u * u for u in terms) / len(terms))


DATES = "data D : table(t: real, y: real); var w; var b; minimize f: E[z ~ D] (w * z.t + b - z.y)^2;"


def test_a_gap_covers_what_rounding_hides_of_terms_that_cancel():
    random = np.random.default_rng(0)
    t, y = 1.6e18 + 256.0 * random.integers(0, 4, 50), random.normal(size=50)
    w, b = 1.0 + 2**-40, -1.6e18 * (1.0 + 2**-40)
    found = at(DATES, {"w": w, "b": b}, {"D": {"t": t, "y": y}})
    truth = exactly(t, y, w, b) - y.var()
    assert found.gap.value is None or found.gap.value >= truth
    assert not found.solved and any("`t` of D" in note for note in found.notes)


def test_dates_in_nanoseconds_at_an_objective_that_rounds_to_0():
    t = 1.6e18 + np.random.default_rng(0).integers(0, 100, 50)
    found = at(DATES, {"w": 1.0, "b": -1.6e18}, {"D": {"t": t, "y": np.zeros(50)}})
    assert found.gap.value >= exactly(t, np.zeros(50), 1.0, -1.6e18)
    assert not found.solved and "rounding" in str(found.gap) and "Rounding" in found.advice


FORMS = [
    "E[z ~ D] (dot(w, z.x) + b - z.y)^2",
    "E[z ~ D] log(1 + exp(-z.y * dot(w, z.x)))",
    "E[z ~ D] abs(dot(w, z.x) - b) + 0.1 * norm1(w) + norm2(w)",
    "cvar(tail = 0.1)[z ~ D] huber(dot(w, z.x), delta = 1)",
    "log(E[z ~ D] exp(dot(w, z.x)))",
    "sqrt(E[z ~ D] (dot(w, z.x) - z.y)^2)",
    "max[z in D] dot(w, z.x)^3 / (2 + b^2)",
    "E[z ~ D] pos(dot(w, z.x))^1.5 + b^4",
    "variance[z ~ D] dot(w, z.x) + sumsq(w) + sum(w) + w[1] * b",
]


@pytest.mark.parametrize("form", FORMS)
def test_bounds_of_rounding_hold_and_are_small(form):
    """Against a value that is made less exact: each variable moved by its own rounding, many times over."""
    random = np.random.default_rng(1)
    text = f"dim d; data D : table(x: real[d], y: real); var w[d]; var b; minimize f: {form};"
    made = bound(text, {"D": {"x": random.normal(size=(200, 3)), "y": random.normal(size=200)}})
    point = {"w": np.array([1.0, -2.0, 0.5]), "b": np.array(0.3)}
    system = System(made, point)
    found = rounding(system, Meter(60.0))
    assert found is not None and 0 < found.objective < 1e-10 * (1 + abs(system.objective))
    slope = found.slope(np.zeros(0)) / (UNIT * SUM_ROUNDINGS)
    off = 0.0
    for _ in range(20):
        signs = {name: random.choice([-1, 1], size=value.shape) for name, value in point.items()}
        moved = {name: value * (1 + 2.0**-40 * signs[name]) for name, value in point.items()}
        off = max(off, abs(System(made, moved).objective - system.objective))
    size = np.abs(np.concatenate([point["w"], [0.3]]))
    assert off <= 1.01 * 2.0**-40 * float(slope @ size) + found.objective


# ----------------------------------------------------------------------------- what a gap is beside
LEAST_SQUARES = (
    "dim d; data D : table(x: real[d], y: real); var w[d]; minimize f: {} * E[z ~ D] "
    "(dot(w, z.x) - z.y)^2 + {};"
)


@pytest.mark.parametrize("share", [0.0, 1e-4, 0.05, 1.0])
@pytest.mark.parametrize("units", [1e-8, 1e-3, 1e3, 1e8])
def test_the_verdict_does_not_change_with_units_factors_and_constants(share, units):
    """A point whose objective is above the optimum by some share, in other units of a column, and of
    the objective."""
    random = np.random.default_rng(3)
    x, y = random.normal(size=(50, 3)), random.normal(size=50)
    best = np.linalg.lstsq(x, y, rcond=None)[0]
    least = ((x @ best - y) ** 2).mean()
    along = np.linalg.eigh(x.T @ x / 50)[1][:, 0]
    point = best + np.sqrt(share * least / (x @ along @ (x @ along) / 50)) * along
    scale = np.array([units, 1.0, 1 / units])
    data = {"D": {"x": x, "y": y}}
    plain = at(LEAST_SQUARES.format(1.0, 0.0), {"w": point}, data)
    turned = at(LEAST_SQUARES.format(1.0, 0.0), {"w": point / scale}, {"D": {"x": x * scale, "y": y}})
    larger = at(LEAST_SQUARES.format(units, 0.0), {"w": point}, data)
    shifted = at(LEAST_SQUARES.format(1.0, 1e4), {"w": point}, data)
    assert [found.solved for found in (plain, turned, larger, shifted)] == [share < 1e-2] * 4


def test_a_step_of_least_squares_with_large_features_is_not_solved():
    random = np.random.default_rng(1)
    x = 1e6 * random.normal(size=(200, 3))
    y = x @ random.normal(size=3) / 1e6 + 0.6 * random.normal(size=200)
    gradient, hessian = -2 * x.T @ y / 200, 2 * x.T @ x / 200
    first = -(gradient @ gradient) / (gradient @ hessian @ gradient) * gradient
    found = at(LEAST_SQUARES.format(1.0, 0.0), {"w": first}, {"D": {"x": x, "y": y}})
    assert not found.solved


def test_the_origin_of_a_logistic_loss_with_large_features_is_not_solved():
    random = np.random.default_rng(1)
    x = 1e10 * random.normal(size=(200, 3))
    text = (
        "dim d; data D : table(x: real[d], y: real); var w[d]; minimize f: E[z ~ D] log1pexp(-z.y * "
        "dot(w, z.x));"
    )
    found = at(
        text, {"w": np.zeros(3)}, {"D": {"x": x, "y": np.sign(x[:, 0] + 1e10 * random.normal(size=200))}}
    )
    assert not found.solved


def test_a_loose_gap_is_said_beside_the_grade():
    """Two equal columns, at their optimum: no curvature holds their difference, and only the range is
    proved."""
    random = np.random.default_rng(2)
    one, y = random.normal(size=40), random.normal(size=40)
    best, data = np.full(2, one @ y / (one @ one) / 2), {"D": {"x": np.stack([one, one], 1), "y": y}}
    found = at(LEAST_SQUARES.format(1.0, 0.0), {"w": best}, data)
    assert found.gap.value < 1e-6 or "proved" in found.verdict or not found.solved


# -------------------------------------------------------------------------------------------- draws
TAILED = "var w; minimize f: (log(E[e ~ normal(0, 1)] exp(w + 3 * e)) - 3)^2;"


def test_what_draws_say_is_estimated():
    found = fccomodel.compile(TAILED).bind(data={}).solve(budget="5s")
    report_of, truth = found.report, (float(found.variables["w"]) + 4.5 - 3) ** 2
    said = report_of.verdict + str(report_of.gap)
    assert "estimated" in report_of.verdict and "proved" not in said and "high accuracy" not in said
    assert not report_of.exact and report_of.gap.bound is None
    assert report_of.gap.value + 4 * report_of.gap.error >= truth or not report_of.solved


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("var q >= 0; minimize f: E[d ~ normal(100, 10)] (2 * q - 5 * min(q, d));", {"q": 102.5}),
        (
            "var q >= 0, <= 300; minimize f: 2 * q; subject to c: E[d ~ normal(100, 10)] pos(d - q) <= 2;",
            {"q": 104.9},
        ),
        ("var w; minimize f: cvar(tail = 0.1)[e ~ normal(0, 1)] (w - e)^2;", {"w": 0.0}),
        ("var w; minimize f: (w - 1)^2; subject to c: prob[e ~ normal(0, 1)] (e > 3) <= 0.1;", {"w": 1.0}),
    ],
)
def test_constraints_tails_and_expectations_of_draws_are_estimated(text, names):
    found = at(text, names)
    assert "estimated" in found.verdict and "proved" not in found.verdict + str(found.gap)


def test_means_over_rows_alone_are_not_estimated():
    text = "data D : table(y: real); var w; minimize f: E[z ~ D] (w - z.y)^2;"
    found = at(text, {"w": 1.5}, {"D": {"y": np.array([1.0, 2.0])}})
    assert "estimated" not in found.verdict and found.verdict.startswith("Solved to high accuracy")


def test_a_bound_that_would_form_too_many_pairs_is_not_made():
    """The value comes from sums over sorted rows, the bound of its rounding from all pairs of rows."""
    text = """
data D : table(x: real);
var w >= -3, <= 3;
minimize f: mean[i in D, j in D] sqhinge(1 - w * (i.x - j.x)) + (w - 1)^2;
"""
    rows = bound(text, {"D": {"x": np.linspace(-1, 1, 2000)}})
    system = System(rows, {"w": np.array(0.5)})
    assert rounding(system, Meter(60.0)) is not None and not system.unrounded
    meter = Meter(0.5)
    assert rounding(system, meter) is None and system.unrounded
    assert meter.left == 0.5
    found = report.report(rows, {"w": np.array(0.5)}, work=Meter(0.5))
    assert "in exact arithmetic" in str(found.gap)
