"""Convex functions of one number over many rows: cutting planes, each by one pass over the rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fccomodel.core import ir, options
from fccomodel.core.diagnostics import FccoError
from fccomodel.evaluation.sets import draws
from fccomodel.numerics.one_variable import minimised
from fccomodel.pipeline.endings import SPENT
from fccomodel.pipeline.routes import patience
from fccomodel.pipeline.routes.judging import judged, settled
from fccomodel.pipeline.routes.records import Answer, Request
from fccomodel.pipeline.stages import emit

if TYPE_CHECKING:
    from fccomodel.pipeline.records import Planned

#: Rows from which on this comes first.
MANY_ROWS = 2_000


class _Stopped(Exception):
    """The run's deadline is over, or somebody pressed Ctrl-C."""


@dataclass
class _Best:
    """The best point so far, and the passes made."""

    x: float
    value: float = math.inf
    passes: int = 0

    def saw(self, x: float, value: float) -> None:
        """Count a pass, and keep its point if it is the best."""
        self.passes += 1
        if value < self.value:
            self.x, self.value = x, value


def before_steps(request: Request) -> Answer | None:
    """The answer by cutting planes, if the report finds it to be the optimum; None otherwise.

    If the time is over, or somebody asks for the end, it is the best point so far.
    """
    from fccomodel.execution.run import without_steps
    from fccomodel.execution.run.machine import interruptible

    planned = request.planned
    if not _applies(planned):
        return None
    variable = next(iter(planned.problem.variables.values()))
    best = _Best(_first(planned, variable))
    ended, stopped = "converged", ""
    with interruptible() as asked:
        try:
            if not _met(request, variable, best, asked.is_set):
                return None
            stopped = f"cutting planes of one variable met after {best.passes} passes"
        except _Stopped:
            ended, stopped = ("interrupted", "interrupted") if asked.is_set() else ("stopped", SPENT[-1])
        except FccoError:
            return None
    planned = planned.with_option("device", options.pick_device(planned.options["device"][0]))
    solution = without_steps({variable.name: np.array(best.x)}, stopped=stopped)
    solution = replace(solution, passes=best.passes, way="finish", ended=ended, timed=ended == "stopped")
    answer = judged(request, planned, emit(planned), solution)
    if settled(answer) or ended == "stopped" or answer.solution.interrupted:
        return answer
    return None


def _applies(planned: Planned) -> bool:
    """Whether the problem is a convex function with kinks, of one number, over many rows."""
    problem, analysis = planned.problem, planned.analysis
    if len(problem.variables) != 1 or problem.constraints or problem.nets or not planned.finishes:
        return False
    if "algorithm" in planned.given or planned.checkpoints is not None or draws.drawn(problem):
        return False
    single = all(not variable.shape for variable in problem.variables.values())
    kinked = analysis.minimised.convex and not analysis.minimised.smooth
    return single and kinked and patience.numbers(planned) >= MANY_ROWS


def _first(planned: Planned, variable: ir.Variable) -> float:
    """The number at which the planes begin."""
    start = planned.plan.start
    bounds = planned.analysis.see(ir.Var(name=variable.name)).interval.value
    first = 0.0 if start is None else float(start.values.get(variable.name, 0.0))
    return min(max(first, bounds.lo), bounds.hi)


def _met(request: Request, variable: ir.Variable, best: _Best, asked: Callable[[], bool]) -> bool:
    """Whether the planes met over the variable's bounds; the minimum is then the best point.

    Raises ``_Stopped`` if the time is over or somebody ``asked`` for the end.
    """
    import torch

    from fccomodel.evaluation.interpret import evaluate

    planned = request.planned
    objective, sign = planned.problem.objective, 1.0
    if objective.sense == "maximize":
        sign = -1.0

    def value_and_slope(x: float) -> tuple[float, float]:
        """The minimised function and its slope at a number, by one pass."""
        if asked() or request.deadlines.run_is_over:
            raise _Stopped
        at = torch.tensor(x, dtype=torch.float64, requires_grad=True)
        value = evaluate(planned.bound, objective.expr, {variable.name: at})
        (slope,) = torch.autograd.grad(value, at)
        minimised_value = sign * float(value.detach())
        best.saw(x, minimised_value)
        return minimised_value, sign * float(slope)

    bounds = planned.analysis.see(ir.Var(name=variable.name)).interval.value
    minimum = minimised(value_and_slope, best.x, bounds.lo, bounds.hi)
    if minimum is not None:
        best.x, best.value = minimum.x, minimum.value
    return minimum is not None
