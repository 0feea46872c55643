"""The algorithm's own run, and nothing beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fccomodel.pipeline.conic_form import may_take_over
from fccomodel.pipeline.routes.judging import judged
from fccomodel.pipeline.routes.records import Answer, Request
from fccomodel.pipeline.stages import emit, run

if TYPE_CHECKING:
    from fccomodel.execution.run import Solution
    from fccomodel.pipeline.records import Planned
    from fccomodel.program.emit import Program


def of_ranks(request: Request) -> Answer | None:
    """The run of several ranks, whose steps are all that they do together. None in one process."""
    if request.planned.ranks:
        return judged(request, *ran(request, request.planned))
    return None


def alone(request: Request) -> Answer | None:
    """The run, if the interior-point method cannot take over. None otherwise.

    Raises the errors of a plan that cannot be lowered before a conic program is built, which takes longer.
    """
    if request.early_patience is None and may_take_over(request.planned):
        emit(request.planned)
    if request.patience is not None:
        return None
    return judged(request, *ran(request, request.planned))


def ran(
    request: Request, planned: Planned, *, patience: float | None = None, part: str = "run"
) -> tuple[Planned, Program, Solution]:
    """A run of a plan until the request's deadline (see ``stages.run``)."""
    return run(planned, request.progress, until=request.deadlines.run, patience=patience, part=part)


def went_on(request: Request, planned: Planned, part: str) -> tuple[Planned, Program, Solution]:
    """A run that goes on from an answer, in the time that is left until the request's deadline."""
    return run(planned, request.progress, until=request.deadlines.run, part=part, goes_on=True)
