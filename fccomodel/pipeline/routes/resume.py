"""A solve that begins at the answer to the same problem."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fccomodel.pipeline.routes.judging import judged, settled
from fccomodel.pipeline.routes.records import Answer, Request
from fccomodel.pipeline.stages import emit

if TYPE_CHECKING:
    from fccomodel.execution.run import Solution
    from fccomodel.pipeline.records import Planned
    from fccomodel.plan.start import Start


def at_the_answer(request: Request) -> Answer | None:
    """The start itself, if it is the answer of another run and the report bears it out; else None."""
    planned, start = request.planned, request.planned.plan.start
    if start is None or not start.answered:
        return None
    answer = judged(request, planned, emit(planned), _without_steps(planned, start))
    if answer.report.solved and settled(answer) or answer.solution.interrupted:
        return answer
    return None


def _without_steps(planned: Planned, start: Start) -> Solution:
    """The start as the end of a run that makes no step."""
    from fccomodel.execution.run import Solution

    return Solution(
        variables={name: value for name, value in start.values.items() if name in planned.problem.variables},
        multipliers=start.multipliers,
        limits={},
        history=[],
        iterations=0,
        wall_s=0.0,
        ended="converged",
        stopped="it began at the answer, which the report finds to be one",
        kept=start.kept,
    )
