"""Constraint qualification, and how optima move, against optima solved again."""

import numpy as np
import pytest
from test_gap import LOGISTIC, logistic
from test_kkt import FIT, D, bound, fit, solved

from fccomodel import report


# ------------------------------------------------------------------------- constraint qualification
@pytest.mark.parametrize(
    "constraints, w, said, dependent",
    [
        ("a: w[1] <= 1; b: w[2] <= 1;", [1, 1, 0, 0], "regular: the active gradients are independent", ()),
        (
            "a: w[1] <= 1; b: w[2] <= 1;",
            [0, 0, 0, 0],
            "not told yet: `a`, with a multiplier, is away from the bound",
            (),
        ),
        ("a: w[1] >= -1; b: w[2] <= 1;", [0, 0, 0, 0], "regular: no constraint is active", ()),
        (
            "a: w[1] <= 1; b: 2 * w[1] <= 2; c: w[2] <= 0;",
            [1, 0, 0, 0],
            "a direction leads into all",
            ("a", "b"),
        ),
        ("a: w[1] <= 1; b: w[1] >= 1;", [1, 0, 0, 0], "no direction leads into all", ("a", "b")),
        ("a: sumsq(w) <= 0;", [0, 0, 0, 0], "gradient of `a` vanishes", ("a",)),
        (
            "a: w[1] + w[2] == 1; b: w[1] - w[2] == 0; c: w[1] <= 0.5;",
            [0.5, 0.5, 0, 0],
            "no direction",
            ("a", "b", "c"),
        ),
    ],
)
def test_constraint_qualification(constraints, w, said, dependent):
    found = report.report(
        bound(f"var w[d]; minimize {FIT}; subject to {constraints}"), {"w": np.array(w, float)}
    ).qualification
    assert said in str(found) and found.dependent == dependent


def test_the_smallest_singular_value():
    text = f"var w[d]; minimize {FIT}; subject to a: w[1] <= 1; b: w[1] + w[2] <= 1;"
    found = report.report(bound(text), {"w": np.array([1.0, 0, 0, 0])}).qualification
    assert found.least == pytest.approx(np.linalg.svd(np.array([[1, 0], [0.5**0.5, 0.5**0.5]]))[1][-1])


def test_variables_at_their_bounds_do_not_move():
    text = f"var w[d] >= 0; minimize {FIT}; subject to a: w[1] <= 0;"
    assert report.report(bound(text), {"w": np.zeros(D)}).qualification.dependent == ("a",)


@pytest.mark.parametrize(
    "domain, constraint, w, dependent",
    [
        ("simplex(d)", "a: sum(w) <= 1;", [0.5, 0.5, 0, 0], ("a", "w in simplex")),
        ("simplex(d)", "a: w[1] <= 0.5;", [0.5, 0.5, 0, 0], ()),
        ("simplex(d)", "a: w[1] <= 1;", [1, 0, 0, 0], ("a", "w in simplex")),
        ("capped_simplex(d, 0.5)", "a: w[1] - w[2] <= 0;", [0.25, 0.25, 0.5, 0], ()),
        ("ball(1)", "a: w[1] <= 1;", [1, 0, 0, 0], ("a", "w in ball")),
        ("ball(2)", "a: w[1] <= 1;", [1, 0, 0, 0], ()),
    ],
)
def test_conditions_of_sets_count(domain, constraint, w, dependent):
    text = f"var w[d] in {domain}; minimize {FIT}; subject to {constraint}"
    assert report.report(bound(text), {"w": np.array(w, float)}).qualification.dependent == dependent


def test_no_constraints_no_qualification():
    assert report.report(bound(f"var w[d]; minimize {FIT};"), {"w": np.zeros(D)}).qualification is None


# -------------------------------------------------------------------------------------- sensitivity
T = 1e-3
MOVED = {
    "ball": ("b: sumsq(w) <= 0.5;", [lambda c, w, t: c.sum_squares(w) <= 0.5 + t]),
    "two": (
        "b: sumsq(w) <= 0.5; e: sum(w) == 0.1;",
        [lambda c, w, t: c.sum_squares(w) <= 0.5, lambda c, w, t: c.sum(w) == 0.1 + t],
    ),
    "logistic": (f"b: {LOGISTIC} <= 0.3;", [lambda c, w, t: logistic(c, w) <= 0.3 + t]),
    "idle": (
        "b: sumsq(w) <= 0.5; i: w[1] <= 9;",
        [lambda c, w, t: c.sum_squares(w) <= 0.5 + t, lambda c, w, t: w[0] <= 9],
    ),
}


@pytest.mark.parametrize("name", MOVED)
def test_sensitivity_against_optima_solved_again(name):
    text, forms = MOVED[name]
    which = 1 if name == "two" else 0

    def best(t):
        return solved(fit, [lambda c, w, form=form: form(c, w, t) for form in forms])[0]

    made = bound(f"var w[d]; minimize {FIT}; subject to {text}")
    ends = [best(t) for t in (T, -T)]
    values = [report.report(made, {"w": w}).objective for w in ends]
    found = report.report(made, {"w": best(0.0)}, sensitive=True).sensitivity
    label = list(found.objective)[which]
    assert found.objective[label] == pytest.approx((values[0] - values[1]) / (2 * T), rel=1e-3)
    np.testing.assert_allclose(
        found.variables[label]["w"], (ends[0] - ends[1]) / (2 * T), rtol=2e-3, atol=2e-3
    )
    if name == "idle":
        assert found.objective["i"] == pytest.approx(0.0, abs=1e-6) and "i" not in found.variables


def test_bounds_stay_and_a_maximum_is_not_negated():
    text = f"var w[d] >= 0; maximize 1 - {FIT}; subject to b: sum(w) <= 0.6;"

    def best(t):
        w, _ = solved(fit, [lambda c, w: w >= 0, lambda c, w: c.sum(w) <= 0.6 + t])
        return np.where(w < 1e-7, 0.0, w)

    made = bound(text)
    found = report.report(made, {"w": best(0.0)}, sensitive=True).sensitivity
    values = [report.report(made, {"w": best(t)}).objective for t in (T, -T)]
    assert (
        found.objective["b"] == pytest.approx((values[0] - values[1]) / (2 * T), rel=1e-3)
        and found.objective["b"] > 0
    )
    np.testing.assert_allclose(found.variables["b"]["w"], (best(T) - best(-T)) / (2 * T), atol=2e-3)


def test_kinks_leave_the_objectives_derivative():
    w, duals = solved(lambda c, w: fit(c, w) + 0.1 * c.norm1(w), [lambda c, w: c.sum_squares(w) <= 0.3])
    made = bound(f"var w[d]; minimize {FIT} + 0.1 * norm1(w); subject to b: sumsq(w) <= 0.3;")
    found = report.report(made, {"w": w}, sensitive=True).sensitivity
    assert found.objective["b"] == pytest.approx(-duals[0], rel=1e-3)
    assert not found.variables and found.why == "a function has a kink"
