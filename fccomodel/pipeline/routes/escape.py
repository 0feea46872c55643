"""A run that goes on from a better point than the one that it ended at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from fccomodel.pipeline.endings import SPENT
from fccomodel.pipeline.routes.judging import better, judged
from fccomodel.pipeline.routes.records import Answer, Request
from fccomodel.pipeline.routes.steps import went_on
from fccomodel.pipeline.starts import begun
from fccomodel.plan.starts import Start

#: How often a run may restart from a better point found next to a first-order point.
MOST_ESCAPES = 5
#: Failures that a run from a better point may show although the run before did not.
WITHOUT_OPTIMUM = ("unbounded", "unattained")


def from_better_points(request: Request, answer: Answer) -> Answer:
    """The best answer of runs that go on from better points, while the report knows one.

    First-order conditions also hold at a saddle, at a kink that is bent downwards (two centres that
    coincide, say), and where gradients are small by scaling alone. If no time is left, the better
    point itself is judged.
    """
    for k in range(MOST_ESCAPES):
        point, planned, solution = answer.report.better, answer.planned, answer.solution
        out_of_time = solution.timed and request.deadlines.run_is_over
        if point is None or not planned.finishes or solution.status not in ("converged", "stopped"):
            break
        if solution.status == "stopped" and not out_of_time:
            moved = _at(point, request, answer)
            if moved is answer:
                break
            answer = moved
            continue
        if request.deadlines.run_is_over:
            there = replace(
                solution,
                variables={**solution.variables, **point},
                timed=True,
                ended="stopped",
                stopped=SPENT[-1],
            )
            answer_there = judged(request, planned, answer.program, there)
            if better(answer_there, answer, convex=False):
                return answer_there
            return replace(answer, solution=replace(solution, timed=True))
        planned = begun(planned, Start(values=point, multipliers=solution.multipliers, found=True))
        again = judged(request, *went_on(request, planned, f"escape {k + 1}"))
        if again.report.failure in WITHOUT_OPTIMUM:
            return again
        if not better(again, answer, convex=False):
            break
        answer = again
    return answer


def _at(point: Mapping[str, np.ndarray], request: Request, answer: Answer) -> Answer:
    """The better point itself as the answer, where the run gained nothing more, if the report bears it out:
    at a cusp such as sqrt(abs(x)) no step leads to the minimum."""
    there = replace(answer.solution, variables={**answer.solution.variables, **point})
    answer_there = judged(request, answer.planned, answer.program, there)
    return answer_there if better(answer_there, answer, convex=False) else answer
