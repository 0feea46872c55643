"""Every algorithm on conformance problems that it admits, whole batches and small ones, against known
optima.

The table of all algorithms on all problems: ``tests/bench/conformance.py`` makes it,
``tests/bench/conformance.md`` keeps it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from conformance.problems import ALL, Conformance
from conformance.runs import bound_problem, needs_cvxpy, optimum, outcome, planned, refusal, solved
from fccomodel import algorithms

BY_NAME = {p.name: p for p in ALL}
#: problems that few steps solve; each algorithm runs the first two of a turn of this list that it
#: admits, else of the others
TURNS = (
    "square_of_mean", "absolute", "hinge_of_groups", "entropic", "inactive", "group_cvar", "stochastic_outer",
    "elastic_composition", "equality", "lasso", "worst_group", "sigmoid_losses", "variance", "simplex", "group_entropic",
    "planted_squares",
)  # fmt: skip
EACH = 2
#: steps by sampled blocks, and by whole passes over a vector; and the gap of penalties that keep
#: some of a violation
STEPS = {"blocks": 800, "vector": 300}
#: fewer of those whose every step solves a convex problem
DEAR = {"prox_linear": 30}
GAP = {"hinge": 2e-2, "squared_hinge": 2e-2}
SAMPLED = ("square_of_mean", "cvar", "entropic", "bounded_group")


def turn(name: str) -> list[Conformance]:
    """The problems that an algorithm runs."""
    first = sum(map(ord, name))
    found: list[Conformance] = []
    turned = [TURNS[(first + k) % len(TURNS)] for k in range(len(TURNS))]
    for problem in (BY_NAME[name] for name in (*turned, *(name for name in BY_NAME if name not in TURNS))):
        if (
            len(found) < EACH
            and not refusal(problem, name)
            and not planned(problem, algorithm=name).surrogates
        ):
            found.append(problem)
    return found


@needs_cvxpy
@pytest.mark.parametrize("name", sorted(algorithms.all()))
def test_reaches_the_optimum(name: str) -> None:
    problems = turn(name)
    assert len(problems) >= 2, "every algorithm has problems"
    record = algorithms.all()[name]
    gap = GAP.get(record.penalty or "", 5e-3)
    for problem in problems:
        found = outcome(problem, name, iterations=DEAR.get(name, STEPS[record.oracle]))
        assert found.gap <= gap, (problem.name, found)
        assert found.violation <= gap, (problem.name, found)


@needs_cvxpy
@pytest.mark.parametrize(
    "problem", [BY_NAME[name] for name in ("bounded_group", "absolute", "two_sided")], ids=lambda p: p.name
)
def test_multipliers_are_those_of_the_problem(problem: Conformance) -> None:
    found = outcome(problem, "sonex", iterations=8000)
    value, multipliers = optimum(problem)
    assert found.gap <= problem.tolerance and found.violation <= problem.tolerance
    assert found.multipliers is not None
    for label, multiplier in multipliers.items():
        assert abs(found.multipliers[label]) == pytest.approx(abs(multiplier), rel=0.05, abs=0.02)


@needs_cvxpy
@pytest.mark.parametrize("problem", [BY_NAME[name] for name in SAMPLED], ids=lambda p: p.name)
def test_small_batches_reach_it_too(problem: Conformance) -> None:
    chosen = planned(problem, outer_batch=3, inner_batch=6).algorithm
    found = outcome(problem, chosen, iterations=6000, outer_batch=3, inner_batch=6)
    assert found.gap <= 0.03
    assert found.violation <= 0.03


@needs_cvxpy
@pytest.mark.parametrize("name", ["entropic", "square_of_mean", "elastic_composition", "stochastic_outer"])
def test_msvr_reaches_it_with_few_of_the_blocks(name: str) -> None:
    """Its correction weighs n / B1 and more, which nothing else of it may."""
    assert outcome(BY_NAME[name], "msvr", iterations=4000, outer_batch=3, inner_batch=6).gap <= 5e-3


@pytest.mark.parametrize(
    "name, weights",
    [("sgd", lambda g: np.full(len(g), 1 / len(g))), ("sgd_uw", lambda g: 1 / (5 * np.bincount(g)[g]))],
)
def test_baselines_of_the_mean_reach_its_optimum(
    name: str, weights: Callable[[np.ndarray], np.ndarray]
) -> None:
    """SGD that of the mean over rows, SGD-UW that of the mean over groups, wherever the worst groups
    have theirs."""
    problem = BY_NAME["group_cvar"]
    x, y, g = (problem.data()["D"][k] for k in "xyg")
    p = weights(g.astype(int))[:, None]
    expected = np.linalg.solve(x.T @ (p * x) + 0.05 * np.eye(x.shape[1]), x.T @ (p[:, 0] * y))
    found = solved(problem, algorithm=name, iterations=2000, inner_batch=200).variables["w"]
    np.testing.assert_allclose(found, expected, atol=0.03)


@needs_cvxpy
@pytest.mark.parametrize(
    "problem", [BY_NAME[name] for name in ("inactive", "absolute", "equality")], ids=lambda p: p.name
)
def test_proximal_points_by_small_batches_reach_it_too(problem: Conformance) -> None:
    """Inner steps of noisy gradients stay stable, and the estimates follow from round to round."""
    found = outcome(problem, "alexr2", iterations=4000, outer_batch=3, inner_batch=6)
    assert found.gap <= 5e-3
    assert found.violation <= 5e-3


def test_the_same_seed_gives_the_same_run() -> None:
    runs = [solved(BY_NAME["cvar"], outer_batch=5, iterations=500).variables["w"] for _ in range(2)]
    np.testing.assert_array_equal(*runs)


@pytest.mark.parametrize("name", ["square_of_mean", "group_cvar"])
def test_without_extrapolation_the_point_before_is_not_asked(name: str) -> None:
    """theta = 0: two thirds of the oracle calls, and the limit of small theta."""
    batches = {"outer_batch": 3, "inner_batch": 4, "iterations": 300}
    without, small = (outcome(BY_NAME[name], "alexr", theta=theta, **batches) for theta in (0.0, 1e-12))
    assert without.oracles / small.oracles == pytest.approx(2 / 3)
    for label, value in without.variables.items():
        np.testing.assert_allclose(value, small.variables[label], atol=1e-6)


def test_every_problem_has_an_algorithm() -> None:
    for problem in ALL:
        assert planned(problem).algorithm in algorithms.all()
        assert bound_problem(problem).problem.objective is not None


@pytest.mark.parametrize(
    "name, problem", [("sox", "worst_group"), ("ascvrg", "bounded_group"), ("alexr", "sigmoid_losses")]
)
def test_what_an_algorithm_lacks_is_said(name: str, problem: str) -> None:
    """Non-smooth outer functions, constraints, what is not convex: refused with the theorem that asks
    for it."""
    reason = refusal(BY_NAME[problem], name)
    assert "asks for it" in reason or "needs" in reason
