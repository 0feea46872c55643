"""The least values that keep roots and logarithms from 0: right, said to be from the data, and of use."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import fccomodel
from fccomodel import report, structure
from fccomodel.core import ir
from fccomodel.library.atoms import Interval
from fccomodel.structure.facts import Standing

RANDOM = np.random.default_rng(7)
X = RANDOM.normal(size=(120, 3))
Y = X @ np.array([1.0, -2.0, 0.5]) + RANDOM.normal(size=120)
G = RANDOM.integers(0, 3, 120)
R = 0.05 * RANDOM.standard_t(4, size=(120, 3)) + 0.01
HEAD = (
    "model m; dim d; set G; data D : table(x: real[d], y: real, g: G, r: real[d]); var w[d]; var "
    "s[d] in simplex(d);\n"
)
SQUARES = "E[z ~ D] square(dot(w, z.x) - z.y)"


def bind(text: str, y: np.ndarray = Y) -> fccomodel.BoundModel:
    return fccomodel.compile(HEAD + text).bind(data={"D": {"x": X, "y": y, "g": G, "r": R}})


def squares(rows: np.ndarray) -> float:
    return float(np.mean((X[rows] @ np.linalg.lstsq(X[rows], Y[rows], rcond=None)[0] - Y[rows]) ** 2))


def downside() -> float:
    s = cp.Variable(3)
    falls = cp.pos(np.ones((120, 120)) @ R @ s / 120 - R @ s)
    return float(cp.Problem(cp.Minimize(cp.sum_squares(falls) / 120), [s >= 0, cp.sum(s) == 1]).solve())


def deviation() -> float:
    s = cp.Variable(3)
    return float(
        cp.Problem(cp.Minimize(cp.sum_squares((R - R.mean(0)) @ s) / 120), [s >= 0, cp.sum(s) == 1]).solve()
    )


EVERY = np.arange(120)
CASES = {
    "squares": (SQUARES, lambda: squares(EVERY)),
    "squares and a ridge": (f"{SQUARES} + 0 * sumsq(w) + 1e-9 * sumsq(w)", lambda: squares(EVERY)),
    "a family": (
        "E[z ~ D | z.g == k] (dot(w, z.x) - z.y)^2",
        lambda: min(squares(np.flatnonzero(G == k)) for k in range(3)),
    ),
    "variance": ("variance[z ~ D] dot(s, z.r)", deviation),
    "semi-variance": ("E[z ~ D] square(relu((E[v ~ D] dot(s, v.r)) - dot(s, z.r)))", downside),
}


@pytest.mark.parametrize("case", CASES)
def test_the_least_value(case: str) -> None:
    """Below the least value by CVXPY, or by least squares, and at least half of it."""
    text, exact = CASES[case]
    objective = f"mean[k in G] sqrt({text})" if "== k" in text else f"sqrt({text})"
    bound = bind(f"minimize f: {objective};")
    (root,) = (
        n for n in ir.walk(bound.bound.problem.objective.expr) if isinstance(n, ir.Apply) and n.op == "sqrt"
    )
    see = structure.analyse(bound.bound.problem, bound.bound).see
    argument, value = see(root.args[0]), exact()
    raised = see.raised(argument).interval
    assert argument.interval.value.lo == 0 and 0.49 * value <= raised.value.lo <= value
    assert raised.standing == Standing.BOUNDED and see(root).smooth


def test_the_text_alone_does_not_say_it() -> None:
    problem = bind(f"minimize f: sqrt({SQUARES});").bound.problem
    assert not structure.analyse(problem).objective.smooth


@pytest.mark.parametrize(
    ("text", "y"),
    [
        (f"sqrt({SQUARES})", X @ np.ones(3)),  # fits exactly
        ("sqrt(E[z ~ D] square(relu(dot(w, z.x) - z.y)))", Y),  # unbounded, and not quadratic
        ("sqrt(sumsq(w))", Y),
        ("sqrt(variance[z ~ D] dot(w, z.r))", Y),  # 0 at w = 0
    ],
)
def test_none_where_it_is_none(text: str, y: np.ndarray) -> None:
    bound = bind(f"minimize f: {text};", y)
    see = structure.analyse(bound.bound.problem, bound.bound).see
    argument = see(bound.bound.problem.objective.expr.args[0])  # type: ignore[attr-defined]
    assert see.raised(argument) is argument


def test_a_family_too_large_is_left_alone() -> None:
    bound = bind("minimize f: mean[i in D] sqrt(E[z ~ D] square(dot(w, z.x) - i.y));")
    (root,) = (
        n for n in ir.walk(bound.bound.problem.objective.expr) if isinstance(n, ir.Apply) and n.op == "sqrt"
    )
    see = structure.analyse(bound.bound.problem, bound.bound).see
    assert see.raised(see(root.args[0])).interval.value == Interval(0.0, float("inf"), False, True)


def test_the_square_root_lasso_is_solved() -> None:
    found = bind(f"minimize f: sqrt({SQUARES}) + 0.1 * norm1(w);").solve(seed=0, budget="60s")
    w = cp.Variable(3)
    best = cp.Problem(cp.Minimize(cp.norm(X @ w - Y) / np.sqrt(120) + 0.1 * cp.norm1(w))).solve()
    assert found.objective == pytest.approx(best, rel=1e-6) and found.report.epsilon <= 1e-6
    assert found.outcome.planned.plan.findings["outer smooth"].standing == Standing.BOUNDED


def test_groups_under_roots() -> None:
    found = bind("minimize f: mean[k in G] sqrt(E[z ~ D | z.g == k] square(dot(w, z.x) - z.y));").solve(
        seed=0, budget="60s"
    )
    w = cp.Variable(3)
    parts = [cp.norm(X[G == k] @ w - Y[G == k]) / np.sqrt((G == k).sum()) for k in range(3)]
    assert found.objective == pytest.approx(cp.Problem(cp.Minimize(sum(parts) / 3)).solve(), rel=1e-6)


def test_a_power_mean_of_groups() -> None:
    """Its root's argument, a mean of squares of the risks, is away from 0 since they are."""
    text = "pmean(p = 2)[k in G] E[z ~ D | z.g == k] square(dot(w, z.x) - z.y)"
    found = bind(f"minimize f: {text};").solve(seed=0, budget="60s")
    w = cp.Variable(3)
    risks = cp.hstack([cp.sum_squares(X[G == k] @ w - Y[G == k]) / (G == k).sum() for k in range(3)])
    best = cp.Problem(cp.Minimize(cp.norm(risks) / np.sqrt(3))).solve(solver="CLARABEL")
    assert found.objective == pytest.approx(best, rel=1e-6) and found.report.epsilon <= 1e-6


def test_where_nothing_keeps_a_root_from_0_it_is_assumed() -> None:
    """A chi-squared ball of distributions, by its dual: t may be so large that nothing is left below
    the root."""
    text = "var t; minimize f: t + sqrt(5 * (E[z ~ D] square(relu(square(dot(w, z.x) - z.y) - t))));"
    found = bind(text).solve(seed=0, budget="60s")
    w, t, losses = cp.Variable(3), cp.Variable(), cp.Variable(120)
    worst = t + np.sqrt(5 / 120) * cp.norm(cp.pos(losses - t))
    best = cp.Problem(cp.Minimize(worst), [losses >= cp.square(X @ w - Y)]).solve(solver="CLARABEL")
    assert found.objective == pytest.approx(best, rel=1e-6) and found.report.epsilon <= 1e-5
    assert found.outcome.planned.plan.findings["outer smooth"].standing == Standing.ASSUMED
    assert "stay away from 0" in " ".join(str(bind(text).explain()).split())


def test_at_a_root_of_0_the_report_finds_a_subgradient() -> None:
    """The assumption is false here: the optimum is where the root's argument is 0, and its
    subgradients are a ball."""
    found = bind(f"minimize f: sqrt({SQUARES});", X @ np.ones(3)).solve(seed=0, budget="3000it")
    assert (
        found.objective < 1e-3 and found.report.epsilon < 1e-3 and found.report.verdict.startswith("Solved")
    )
    bound = bind(f"minimize f: sqrt({SQUARES});", X @ np.ones(3)).bound
    near = report.report(bound, {"w": np.ones(3) + 1e-9, "s": np.ones(3) / 3})
    assert near.objective < 1e-8 and near.epsilon < 1e-8
