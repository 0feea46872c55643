"""Convex functions of one number over many rows: cutting planes, each by one pass over the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fccomodel.core import ir, options
from fccomodel.core.diagnostics import FccoError
from fccomodel.evaluation.sets import draws
from fccomodel.numerics.one_variable import Minimum, minimised
from fccomodel.pipeline.routes import patience
from fccomodel.pipeline.routes.judging import judged, settled
from fccomodel.pipeline.routes.records import Answer, Request
from fccomodel.pipeline.stages import emit

if TYPE_CHECKING:
    from fccomodel.pipeline.records import Planned

#: Rows from which on this comes first.
MANY_ROWS = 2_000


class _OutOfTime(Exception):
    """The run's deadline is over."""


def before_steps(request: Request) -> Answer | None:
    """The answer by cutting planes, if the report finds it to be the optimum; None otherwise."""
    planned = request.planned
    if not _applies(planned):
        return None
    variable = next(iter(planned.problem.variables.values()))
    try:
        minimum = _minimised(request, variable)
    except (FccoError, _OutOfTime):
        return None
    if minimum is None:
        return None
    from fccomodel.execution.run import without_steps

    planned = planned.with_option("device", options.pick_device(planned.options["device"][0]))
    stopped = f"cutting planes of one variable met after {minimum.calls} passes"
    solution = without_steps({variable.name: np.array(minimum.x)}, stopped=stopped)
    solution = replace(solution, passes=minimum.calls, way="finish")
    answer = judged(request, planned, emit(planned), solution)
    if settled(answer) or answer.solution.interrupted:
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


def _minimised(request: Request, variable: ir.Variable) -> Minimum | None:
    """The minimum over the variable's bounds."""
    import torch

    from fccomodel.evaluation.interpret import evaluate

    planned = request.planned
    objective, sign = planned.problem.objective, 1.0
    if objective.sense == "maximize":
        sign = -1.0

    def value_and_slope(x: float) -> tuple[float, float]:
        """The minimised function and its slope at a number, by one pass."""
        if request.deadlines.run_is_over:
            raise _OutOfTime
        at = torch.tensor(x, dtype=torch.float64, requires_grad=True)
        value = evaluate(planned.bound, objective.expr, {variable.name: at})
        (slope,) = torch.autograd.grad(value, at)
        return sign * float(value.detach()), sign * float(slope)

    bounds = planned.analysis.see(ir.Var(name=variable.name)).interval.value
    start = planned.plan.start
    first = 0.0 if start is None else float(start.values.get(variable.name, 0.0))
    return minimised(value_and_slope, first, bounds.lo, bounds.hi)
