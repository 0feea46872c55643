"""One algorithm on one conformance problem: how far its answer is from what is known, or why it was
refused."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from conformance.problems import Conformance
from fccomodel import pipeline, plan, report
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.source import Source
from fccomodel.data.bound import Bound
from fccomodel.evaluation import interpret
from fccomodel.execution import run
from fccomodel.program import emit
from fccomodel.program.lower import lower

needs_cvxpy = pytest.mark.skipif(importlib.util.find_spec("cvxpy") is None, reason="cvxpy gives the optima")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """``gap``: of the objective, relative above 1; of a problem without known optimum the epsilon of
    its KKT report.

    ``missing`` is the reason of a refusal, '' where the algorithm ran.
    """

    gap: float = float("nan")
    violation: float = float("nan")
    multipliers: dict[str, float] | None = None
    variables: dict[str, np.ndarray] = field(default_factory=dict)
    oracles: float = 0.0
    missing: str = ""


@cache
def bound_problem(problem: Conformance) -> Bound:
    """The problem with its data."""
    compiled = pipeline.compile_model(Source(text=problem.text, name=problem.name))
    return pipeline.bind(compiled, pipeline.Binding(data=problem.data()))


@cache
def optimum(problem: Conformance) -> tuple[float, dict[str, float]]:
    """Value and multipliers by other means."""
    assert problem.optimum is not None
    return problem.optimum(problem.data())


def planned(problem: Conformance, **options: Any) -> plan.Plan:
    """The plan, with options that are said, not refused, where it does not use them: every problem is
    given the same."""
    bound = bound_problem(problem)
    chosen = {name: (value, "test") for name, value in {**problem.options, **options}.items()}
    return pipeline.decide(pipeline.analyse(bound.problem, bound), chosen)


def solved(
    problem: Conformance,
    *,
    iterations: int | None = 8000,
    oracles: float | None = None,
    seconds: float | None = None,
    seed: int = 3,
    **options: Any,
) -> Any:
    """The solution of a run in double precision."""
    bound = bound_problem(problem)
    program = emit.emit(lower(bound.problem, bound, planned(problem, **options)))
    settings = run.RunSettings(
        seed=seed, precision="float64", seconds=seconds, iterations=iterations, oracles=oracles
    )
    return run.run(program, bound, settings)


def judged(bound: Bound, point: dict[str, torch.Tensor]) -> tuple[float, float]:
    """Objective and largest violation, by the interpreter."""
    objective = float(interpret.evaluate(bound, bound.problem.objective.expr, point))
    values = [(c.kind, float(interpret.evaluate(bound, c.body, point))) for c in bound.problem.constraints]
    return objective, max((abs(v) if kind == "eq" else v for kind, v in values), default=0.0)


def refusal(problem: Conformance, algorithm: str) -> str:
    """What an algorithm lacks on a problem; '' where it applies."""
    try:
        planned(problem, algorithm=algorithm)
    except FccoError as error:
        codes = {d.code for d in error.diagnostics}
        assert codes == {"F0604"}, error
        return error.diagnostics[0].reason
    return ""


def outcome(problem: Conformance, algorithm: str, **options: Any) -> Outcome:
    """What became of one algorithm on one problem."""
    if missing := refusal(problem, algorithm):
        return Outcome(missing=missing)
    found = solved(problem, algorithm=algorithm, **options)
    bound = bound_problem(problem)
    point = {name: torch.as_tensor(value) for name, value in found.variables.items()}
    objective, violation = judged(bound, point)
    if problem.optimum is None:
        gap = float(report.report(bound, found.variables).epsilon)
    else:
        value = optimum(problem)[0]
        gap = abs(objective - value) / max(1.0, abs(value))
    oracles = found.history[-1]["oracles"] if found.history else 0.0
    known = {"multipliers": found.multipliers, "variables": found.variables}
    return Outcome(gap=gap, violation=violation, oracles=oracles, **known)
