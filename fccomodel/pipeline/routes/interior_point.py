"""The interior-point method on the problem as a conic program, before any step is taken."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fccomodel.core import options
from fccomodel.evaluation.sets import draws
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
#: Foreseen seconds of the method up to which it goes first on linear and quadratic programs, ...
QUICK_SECONDS = 0.05
#: ... and how many passes it may take longer.
QUICK_PASSES = 30
#: The cones of linear and quadratic programs.
LINEAR_CONES = {"zero", "nonneg"}


def before_steps(request: Request) -> Answer | None:
    """The method's answer, if it is foreseen to take less than passes over the rows; else None."""
    planned = request.planned
    if "algorithm" in planned.given or planned.checkpoints is not None:
        return None
    if not (_quick(request) or _sooner(request)):
        return None
    assert request.form is not None
    return alone(request, request.form)


def _quick(request: Request) -> bool:
    """Whether the problem is a small linear or quadratic program with constraints, and the run does not
    go on from another.

    Kinks alone are left to passes, whose proximal steps end at them exactly.
    """
    planned = request.planned
    if not planned.problem.constraints or planned.plan.start is not None:
        return False
    if draws.drawn(planned.problem) or request.form is None:
        return False
    kinds = {kind for kind, *_ in request.form.program.cones}
    passes = QUICK_PASSES * NUMBER_SECONDS * patience.numbers(planned)
    limit = min(QUICK_SECONDS + passes, EXPENSIVE_PASSES_SECONDS)
    return kinds <= LINEAR_CONES and request.form.seconds <= limit


def _sooner(request: Request) -> bool:
    """Whether the method takes less than the passes that rows with kinks of their own need."""
    if request.early_patience is not None or request.form is None or request.form.parts is None:
        return False
    passes = KINKED_PASSES * (PASS_SECONDS + NUMBER_SECONDS * request.form.parts.numbers)
    return passes > EXPENSIVE_PASSES_SECONDS and request.form.seconds < passes


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


def solved(form: conic.Conic, deadlines: Deadlines) -> tuple[conic.ConicAnswer | str, bool]:
    """The method's answer, or in a word why there is none; and whether Ctrl-C was pressed."""
    from fccomodel import conic
    from fccomodel.execution.run.machine import interruptible

    with interruptible() as asked:
        outcome = conic.solve(form, seconds=deadlines.seconds_for(patience.LONGEST))
    return outcome, asked.is_set()


def as_solution(answer: conic.ConicAnswer, before: Solution | None) -> Solution:
    """The method's answer as the end of the run ``before`` it, if there was one.

    What a converged run ended with is kept, for others to go on from.
    """
    from fccomodel.execution.run import without_steps
    from fccomodel.plan.starts import EndOfRun

    before = before or without_steps({})
    return replace(
        before,
        variables=answer.variables,
        multipliers=answer.multipliers,
        limits={},
        failure=None,
        kept=before.kept if before.status == "converged" else EndOfRun(),
        ended="converged",
        stopped=f"an interior-point method converged in {answer.iterations} iterations",
        interior=answer.iterations,
        paper=answer.paper,
    )
