"""The interior-point method on the problem as a conic program, before any step is taken."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fccomodel.core import options
from fccomodel.pipeline.budget import Deadlines
from fccomodel.pipeline.routes import patience
from fccomodel.pipeline.routes.judging import judged, settled
from fccomodel.pipeline.routes.records import Answer, Request
from fccomodel.pipeline.stages import emit

if TYPE_CHECKING:
    from fccomodel import conic
    from fccomodel.execution.run import Solution

#: Passes that a run is foreseen to make over rows that have kinks of their own.
KINKED_PASSES = 300
#: Counted seconds of such a pass ...
PASS_SECONDS = 4e-4
#: ... and for each number of these rows.
NUMBER_SECONDS = 3e-9
#: Counted seconds of all these passes from which on the interior-point method goes first.
EXPENSIVE_PASSES_SECONDS = 0.25


def before_steps(request: Request) -> Answer | None:
    """The method's answer, if it is foreseen to take less than passes over rows with kinks; else None."""
    if request.early_patience is not None or request.form is None or not _sooner(request, request.form):
        return None
    return alone(request, request.form)


def _sooner(request: Request, form: conic.Conic) -> bool:
    """Whether the method takes less time than the passes, and the user did not ask for the algorithm."""
    planned = request.planned
    if form.parts is None or "algorithm" in planned.given or planned.checkpoints is not None:
        return False
    passes = KINKED_PASSES * (PASS_SECONDS + NUMBER_SECONDS * form.parts.numbers)
    return passes > EXPENSIVE_PASSES_SECONDS and form.seconds < passes


def alone(request: Request, form: conic.Conic) -> Answer | None:
    """The method's answer without a run; None if it finds none that the report bears out."""
    planned = request.planned
    outcome, interrupted = solved(form, request.deadlines)
    if isinstance(outcome, str):
        if interrupted:
            raise KeyboardInterrupt
        return None
    planned = planned.with_option("device", options.pick_device(planned.options["device"][0]))
    answer = judged(request, planned, emit(planned), as_solution(outcome, None))
    enough = settled(answer) or planned.plan.interior and answer.report.solved
    if enough or answer.solution.interrupted:
        return answer
    return None


def solved(form: conic.Conic, deadlines: Deadlines) -> tuple[conic.Answer | str, bool]:
    """The method's answer, or in a word why there is none; and whether Ctrl-C was pressed."""
    from fccomodel import conic
    from fccomodel.execution.run.machine import interruptible

    with interruptible() as asked:
        outcome = conic.solve(form, seconds=deadlines.seconds_for(patience.LONGEST))
    return outcome, asked.is_set()


def as_solution(answer: conic.Answer, before: Solution | None) -> Solution:
    """The method's answer as the end of the run ``before`` it, if there was one.

    What a converged run ended with is kept, for others to go on from.
    """
    from fccomodel.execution.run import without_steps
    from fccomodel.plan.starts import Kept

    before = before or without_steps({})
    return replace(
        before,
        variables=answer.variables,
        multipliers=answer.multipliers,
        limits={},
        failure=None,
        kept=before.kept if before.status == "converged" else Kept(),
        ended="converged",
        stopped=f"an interior-point method converged in {answer.iterations} iterations",
        interior=answer.iterations,
        paper=answer.paper,
    )
