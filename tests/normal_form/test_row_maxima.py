"""Maxima over rows of functions without an expectation: outer functions like any other, not parts that
no theorem speaks of."""

import cvxpy as cp
import numpy as np
import pytest

import fccomodel

RANDOM = np.random.default_rng(5)
X = RANDOM.normal(size=(200, 4))
Y = X @ RANDOM.normal(size=4) + RANDOM.standard_t(4, size=200)
HEAD = "model m; dim d; data D : table(x: real[d], y: real);\n"
CASES = {
    "Chebyshev": (
        "var w[d]; minimize f: max[z in D] abs(dot(w, z.x) - z.y);",
        lambda w: (cp.norm_inf(X @ w - Y), []),
    ),
    "one-sided": (
        "var w[d]; minimize f: max[z in D] (dot(w, z.x) - z.y);",
        lambda w: (cp.max(X @ w - Y), []),
    ),
    "curved": (
        "var w[d]; minimize f: max[z in D] square(dot(w, z.x) - z.y);",
        lambda w: (cp.max(cp.square(X @ w - Y)), []),
    ),
    "beside an expectation": (
        "var w[d]; minimize f: (E[z ~ D] square(dot(w, z.x) - z.y)) + max[z in D] abs(dot(w, z.x) - z.y);",
        lambda w: (cp.sum_squares(X @ w - Y) / 200 + cp.norm_inf(X @ w - Y), []),
    ),
    "a game": (
        "var w[d] in simplex(d); minimize f: -min[i in D] dot(w, i.x);",
        lambda w: (-cp.min(X @ w), [w >= 0, cp.sum(w) == 1]),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_optimum(case):
    text, exact = CASES[case]
    bound = fccomodel.compile(HEAD + text).bind(data={"D": {"x": X, "y": Y}})
    w = cp.Variable(4)
    value, inside = exact(w)
    found = bound.solve(seed=0, budget="60s")
    assert found.objective == pytest.approx(
        cp.Problem(cp.Minimize(value), inside).solve(solver="CLARABEL"), rel=1e-6
    )
    assert found.report.epsilon <= 1e-5


ROWS = np.tile(X, (25, 1)) + 0.1 * RANDOM.normal(size=(5000, 4))
MANY = {
    "a maximum": ("max[z in D] (dot(w, z.x) - z.y)", lambda w, y: cp.max(ROWS @ w - y)),
    "a minimum, maximised": ("-min[z in D] (z.y - dot(w, z.x))", lambda w, y: -cp.min(y - ROWS @ w)),
}


@pytest.mark.parametrize("case", MANY)
def test_of_more_rows_than_a_step_sees_together(case):
    text, exact = MANY[case]
    y = np.tile(Y, 25)
    found = (
        fccomodel.compile(f"{HEAD}var w[d]; minimize f: sumsq(w) + {text};")
        .bind(data={"D": {"x": ROWS, "y": y}})
        .solve()
    )
    w = cp.Variable(4)
    optimum = cp.Problem(cp.Minimize(cp.sum_squares(w) + exact(w, y))).solve(solver="CLARABEL")
    assert found.objective == pytest.approx(optimum, rel=1e-6) and "Solved" in found.report.verdict


def test_algorithms_for_smooth_functions_refuse_them():
    bound = fccomodel.compile(HEAD + CASES["Chebyshev"][0]).bind(data={"D": {"x": X, "y": Y}})
    with pytest.raises(fccomodel.FccoError, match=r"(?s)F0604.*not smooth: abs"):
        bound.plan(algorithm="sox")
