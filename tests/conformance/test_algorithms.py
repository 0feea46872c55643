"""Every algorithm on every conformance problem that it admits, whole batches and small ones, against known optima."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest
import torch

from conformance.problems import PROBLEMS, Conformance
from fccomodel import algorithms, emit, interpret, pipeline, plan, run
from fccomodel.diagnostics import FccoError
from fccomodel.source import Source

SAMPLED = ("square_of_mean", "cvar", "entropic", "bounded_group")
needs_cvxpy = pytest.mark.skipif(importlib.util.find_spec("cvxpy") is None, reason="cvxpy gives the optima")


def solved(problem: Conformance, **options: Any) -> tuple[Any, Any, dict[str, torch.Tensor]]:
    """The bound problem, the solution and its point; options as from the command line."""
    compiled = pipeline.compile_model(Source(text=problem.text, name=problem.name))
    bound = pipeline.bind(compiled, pipeline.Binding(data=problem.data()))
    chosen = {name: (value, "command line") for name, value in {**problem.options, **options}.items()}
    made = plan.make(compiled.problem, bound=bound, options=chosen)
    program = emit.emit(compiled.problem, bound, made)
    solution = run.run(program, bound, seed=3, budget_it=8000, precision="float64")
    return bound, solution, {name: torch.as_tensor(value) for name, value in solution.variables.items()}


def judged(bound: Any, point: dict[str, torch.Tensor]) -> tuple[float, float]:
    """Objective and largest violation, by the interpreter."""
    objective = float(interpret.evaluate(bound, bound.problem.objective.expr, point))
    values = [(c.kind, float(interpret.evaluate(bound, c.body, point))) for c in bound.problem.constraints]
    return objective, max((abs(v) if kind == "eq" else v for kind, v in values), default=0.0)


@needs_cvxpy
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
@pytest.mark.parametrize("name", sorted(name for name, a in algorithms.all().items() if a.oracle == "blocks"))
def test_reaches_the_optimum(name: str, problem: Conformance) -> None:
    try:
        bound, solution, point = solved(problem, algorithm=name)
    except FccoError as error:
        assert {d.code for d in error.diagnostics} == {"F0604"}
        pytest.skip(f"{name}: {error.diagnostics[0].reason}")
    value, multipliers = problem.optimum(problem.data())
    objective, violation = judged(bound, point)
    assert abs(objective - value) <= problem.tolerance * max(1.0, abs(value))
    assert violation <= problem.tolerance
    if algorithms.all()[name].penalty == "hinge":
        return  # a subgradient of the hinge is 0 or rho: it tells no multiplier
    for label, multiplier in multipliers.items():
        assert abs(solution.multipliers[label]) == pytest.approx(abs(multiplier), rel=0.05, abs=0.02)


@needs_cvxpy
@pytest.mark.parametrize("problem", [p for p in PROBLEMS if p.name in SAMPLED], ids=lambda p: p.name)
def test_small_batches_reach_it_too(problem: Conformance) -> None:
    bound, _, point = solved(problem, outer_batch=3, inner_batch=6)
    value, _ = problem.optimum(problem.data())
    objective, violation = judged(bound, point)
    assert abs(objective - value) <= 0.03 * max(1.0, abs(value))
    assert violation <= 0.03


def test_the_same_seed_gives_the_same_run() -> None:
    problem = next(p for p in PROBLEMS if p.name == "cvar")
    runs = [solved(problem, outer_batch=5)[2]["w"].numpy() for _ in range(2)]
    np.testing.assert_array_equal(*runs)


def test_every_problem_has_an_algorithm() -> None:
    for problem in PROBLEMS:
        compiled = pipeline.compile_model(Source(text=problem.text, name=problem.name))
        assert plan.make(compiled.problem).algorithm in algorithms.all()
