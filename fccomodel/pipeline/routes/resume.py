"""A solve that begins at the answer to the same problem."""

from __future__ import annotations

from fccomodel.pipeline.routes.judging import judged, settled
from fccomodel.pipeline.routes.records import Answer, Request
from fccomodel.pipeline.stages import emit

#: Why such a run ended, in words.
UNMOVED = "it began at the answer, which the report finds to be one"


def at_the_answer(request: Request) -> Answer | None:
    """The start itself, if it is the answer of another run and the report bears it out; else None."""
    from fccomodel.execution.run import without_steps

    planned, start = request.planned, request.planned.plan.start
    if start is None or not start.answered:
        return None
    point = {name: value for name, value in start.values.items() if name in planned.problem.variables}
    answer = judged(request, planned, emit(planned), without_steps(point, start, stopped=UNMOVED))
    if answer.report.solved and settled(answer) or answer.solution.interrupted:
        return answer
    return None
