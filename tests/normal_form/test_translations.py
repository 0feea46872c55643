# ruff: noqa: E501  (a case is easier to read on one line)
"""Regularisers and sets around a point, of an affine function of a variable: solved by prox and
projection, as CVXPY does."""

import cvxpy as cp
import numpy as np
import pytest

import fccomodel

RANDOM = np.random.default_rng(0)
X, Y = RANDOM.normal(size=(80, 6)), np.sign(RANDOM.normal(size=80))
PREV = 0.3 * RANDOM.normal(size=6)
HEAD = "model m; dim d; data D : table(x: real[d], y: {-1, 1}); data prev : real[d];\nvar x[d];\n"
LOSS = "minimize f: E[z ~ D] (dot(x, z.x) - z.y)^2"
#: the model's end; what CVXPY adds to the loss; its constraints; how the parts are treated
CASES = {
    "shrinks to a point": ("+ 0.1 * norm1(x - prev);", lambda x: 0.1 * cp.norm1(x - PREV), lambda x: [], ["prox"]),
    "scaled": ("+ 0.05 * norm1(prev - 2 * x);", lambda x: 0.05 * cp.norm1(2 * x - PREV), lambda x: [], ["prox"]),
    "a group to a point": ("+ 0.1 * norm2(x - prev);", lambda x: 0.1 * cp.norm(x - PREV), lambda x: [], ["prox"]),
    "groups to a point": ("+ 0.1 * group_norm(x - prev, 3) + 0.05 * norm1(x - prev);",
                          lambda x: 0.1 * (cp.norm(x[:3] - PREV[:3]) + cp.norm(x[3:] - PREV[3:])) + 0.05 * cp.norm1(x - PREV),
                          lambda x: [], ["prox", "prox"]),
    "one point": ("+ 0.1 * sumsq(x - prev) + 0.05 * norm1(x - prev);",
                  lambda x: 0.1 * cp.sum_squares(x - PREV) + 0.05 * cp.norm1(x - PREV), lambda x: [], ["prox"]),
    "two points": ("+ 0.1 * sumsq(x - prev) + 0.05 * norm1(x);",
                   lambda x: 0.1 * cp.sum_squares(x - PREV) + 0.05 * cp.norm1(x), lambda x: [], ["prox"]),
    "two kinks": ("+ 0.1 * norm1(x - prev) + 0.05 * norm1(x);",
                  lambda x: 0.1 * cp.norm1(x - PREV) + 0.05 * cp.norm1(x), lambda x: [], ["prox", "smoothed"]),
    "a ball": (";\nsubject to\n  near: norm2(2 * x - prev) <= 0.3;", lambda x: 0, lambda x: [cp.norm(2 * x - PREV) <= 0.3], ["projected"]),
    "a cross-polytope": (";\nsubject to\n  near: norm1(x - prev) <= 0.3;", lambda x: 0, lambda x: [cp.norm1(x - PREV) <= 0.3], ["projected"]),
    "a box": ("+ 0.02 * norm1(x - prev);\nsubject to\n  near: norminf(x - prev) <= 0.1;", lambda x: 0.02 * cp.norm1(x - PREV),
              lambda x: [cp.norm_inf(x - PREV) <= 0.1], ["prox", "projected"]),
    "bounds": (";\nsubject to\n  low: x >= prev - 0.1;\n  high: x <= prev;", lambda x: 0, lambda x: [x >= PREV - 0.1, x <= PREV], ["projected"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_around_a_point(name: str) -> None:
    end, added, limits, treated = CASES[name]
    problem = fccomodel.compile(HEAD + LOSS + end).bind(D={"x": X, "y": Y}, prev=PREV)
    result = problem.solve(seed=0, budget="20s")
    x = cp.Variable(6)
    loss = cp.sum_squares(X @ x - Y) / 80
    exact = cp.Problem(cp.Minimize(loss + added(x)), limits(x))
    exact.solve(solver=cp.CLARABEL)
    assert result.report.objective == pytest.approx(exact.value, abs=2e-6)
    assert result.variables["x"] == pytest.approx(x.value, abs=2e-3)
    assert sorted(how for _, how, _ in result.outcome.planned.plan.normal.treatment) == sorted(treated)


def test_entries_that_stay_are_exactly_the_point() -> None:
    """A prox around a point ends at it, as one around 0 ends at 0."""
    problem = fccomodel.compile(HEAD + LOSS + "+ 0.4 * norm1(x - prev);").bind(D={"x": X, "y": Y}, prev=PREV)
    result = problem.solve(seed=0, budget="20s")
    assert (result.variables["x"] == PREV).sum() >= 2 and result.report.epsilon < 1e-5
