"""A whole solve: the answer by the routes, the report, the rows held out; or its steps under a microscope."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from fccomodel.core import ir
from fccomodel.core.diagnostics import FccoError
from fccomodel.pipeline import budget
from fccomodel.pipeline.boundary import quoted
from fccomodel.pipeline.records import Outcome, Planned
from fccomodel.pipeline.rows import elsewhere
from fccomodel.pipeline.stages import report, run

if TYPE_CHECKING:
    from fccomodel.execution.run import Progress, Solution
    from fccomodel.report.new_rows.intervals import Intervals

Result = TypeVar("Result")
#: The note of a result without values that were asked for.
LEFT_OUT = "memory ran out for what was asked for beside the answer: values to show, or the rows held out"


def solve(
    planned: Planned,
    progress: Callable[[Progress], None] | None = None,
    *,
    show: Sequence[ir.Let] = (),
    sensitive: bool = False,
) -> Outcome:
    """Emit, run, and report on the original problem over all bound rows, and on those held out.

    show        lets whose values are wanted
    sensitive   report how the optimum moves with the constraints' right sides
    """
    from fccomodel.execution import ranks
    from fccomodel.pipeline import routes

    began = time.perf_counter()
    with ranks.apart() if planned.ranks else nullcontext():
        answer = routes.answer(planned, progress, sensitive=sensitive)
        shown = _if_it_fits(lambda: _values(answer.planned, answer.solution, show)) or {}
    heldout = _if_it_fits(lambda: held_out(answer.planned, answer.solution))
    kkt = answer.report
    if len(shown) < len(show) or heldout is None and answer.planned.holdout is not None:
        kkt = replace(kkt, notes=(*kkt.notes, LEFT_OUT))
    return Outcome(
        planned=answer.planned,
        program=answer.program,
        solution=answer.solution,
        report=kkt,
        wall_s=time.perf_counter() - began,
        shown=shown,
        heldout=heldout,
        race=answer.race,
    )


def _if_it_fits(work: Callable[[], Result]) -> Result | None:
    """The result of ``work()``, or None if it needs more memory than there is."""
    from fccomodel.evaluation.checks.sizes import beyond_memory

    try:
        return work()
    except FccoError as error:
        if not beyond_memory(error):
            raise
    return None


def traced(
    planned: Planned,
    wanted: Sequence[str],
    at: Sequence[int] | None = None,
    progress: Callable[[Progress], None] | None = None,
    *,
    show: Sequence[ir.Let] = (),
) -> Outcome:
    """The chosen algorithm's steps alone, with the traces ``wanted`` of them at the steps ``at``.

    The program has the passes over all rows that true gradients take; they come after the run.
    """
    from fccomodel.execution.run.microscope import Microscope

    began = time.perf_counter()
    microscope = Microscope(wanted, at)
    planned = replace(planned, plan=replace(planned.plan, polish=True))
    planned, program, solution = run(planned, progress, microscope=microscope)
    kkt = report(planned, solution)
    shown = _values(planned, solution, show)
    heldout = held_out(planned, solution)
    return Outcome(
        planned=planned,
        program=program,
        solution=solution,
        report=kkt,
        wall_s=time.perf_counter() - began,
        shown=shown,
        heldout=heldout,
    )


@quoted
def _values(planned: Planned, solution: Solution, wanted: Sequence[ir.Let]) -> Mapping[str, Any]:
    """The values of lets at a solution, by name."""
    from fccomodel.evaluation.values import values

    return values(planned.bound, solution.variables, wanted, seed=planned.seed)


@quoted
def held_out(planned: Planned, solution: Solution) -> Intervals | None:
    """Intervals of a solution's values on the rows held out; None if there are none.

    Scaling and categories are those of the rows solved on. See ``budget.held_out_seconds`` for the
    time that it may take.
    """
    from fccomodel.report.new_rows import chances, subsample

    if planned.holdout is None:
        return None
    seconds = budget.held_out_seconds(planned.budget, solution.worked)
    rows, point = elsewhere(planned), solution.variables
    estimates = subsample.sure(rows, point, seed=planned.seed, afford=seconds)
    return replace(estimates, events=tuple(chances.on_new_rows(rows, point, seed=planned.seed)))
