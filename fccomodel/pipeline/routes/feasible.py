"""A run that goes on from a point that meets all constraints, if it ended at a stationary point of
the violation."""

from __future__ import annotations

import math
from dataclasses import replace

from fccomodel.core import options
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.work import Meter
from fccomodel.pipeline.budget import REPORT_SECONDS
from fccomodel.pipeline.records import Planned
from fccomodel.pipeline.routes.judging import judged
from fccomodel.pipeline.routes.records import Answer, Request
from fccomodel.pipeline.routes.steps import went_on
from fccomodel.pipeline.starts import begun
from fccomodel.plan.starts import Start

#: Factors of the largest multiplier that the penalty allows, in the order in which they are tried. A
#: weak penalty is left for the point where the violation is stationary, if the objective is less there.
PENALTIES = (10.0, 1e3)


def from_a_feasible_point(request: Request, answer: Answer) -> Answer:
    """The answer of a run from a feasible point, if the answer violates constraints that are not convex.

    At a stationary point of the violation (``x*y >= 1`` at 0) no step leads to where the constraints hold,
    and every run from nearby ends there. The new run begins at the best of a few feasible points. The
    answer is unchanged if none is found, or if no run stays feasible.
    """
    from fccomodel import report

    if not _stuck(answer):
        return answer
    planned = answer.planned
    meter = Meter(REPORT_SECONDS, until=request.deadlines.run)
    sign = 1.0 if planned.problem.objective.sense == "minimize" else -1.0
    points = report.feasible_points(planned.bound, meter, planned.seed)
    defined = (one for one in points if math.isfinite(one.objective))
    best = min(defined, key=lambda one: sign * one.objective, default=None)
    if best is None:
        return answer
    for k, factor in enumerate(PENALTIES):
        if request.deadlines.run_is_over:
            break
        start = Start(values=best.point, found=True)
        stronger = begun(_with_penalty(planned, factor), start)
        try:
            again = judged(request, *went_on(request, stronger, f"feasible {k + 1}"))
        except FccoError:  # nothing finite from there
            continue
        if again.report.relative["feasibility"] <= report.FEASIBLE:
            return again
        if again.solution.interrupted:
            solution = replace(answer.solution, ended="interrupted", stopped="interrupted")
            return replace(answer, solution=solution)
    return answer


def _stuck(answer: Answer) -> bool:
    """Whether a run of passes ended outside constraints that are not convex, and not because they were
    proved to conflict or because somebody asked."""
    from fccomodel import report

    planned, solution = answer.planned, answer.solution
    if not planned.finishes or planned.problem.nets or solution.interrupted:
        return False
    if answer.report.relative.get("feasibility", 0.0) <= report.FEASIBLE:
        return False
    proved = solution.failure is not None and (solution.failure.proved or solution.failure.fixed)
    return not proved and not planned.analysis.convex_constraints


def _with_penalty(planned: Planned, factor: float) -> Planned:
    """The plan with a penalty of so many times the strength; the same if somebody gave the strength."""
    value, origin = planned.options.get("rho", (None, options.AUTOMATIC))
    if origin in options.GIVEN or "rho" not in planned.plan.hyper:
        return planned
    rho = factor * planned.plan.hyper["rho"]
    plan = replace(planned.plan, hyper={**planned.plan.hyper, "rho": rho})
    stronger = replace(planned, plan=plan)
    return stronger if value is None else stronger.with_option("rho", rho)
