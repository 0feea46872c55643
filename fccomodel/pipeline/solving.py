"""A whole solve: the answer by the routes, the report, the rows held out; or its steps under a microscope."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fccomodel.core import ir
from fccomodel.pipeline import budget
from fccomodel.pipeline.boundary import quoted
from fccomodel.pipeline.records import Outcome, Planned
from fccomodel.pipeline.rows import elsewhere
from fccomodel.pipeline.stages import report, run

if TYPE_CHECKING:
    from fccomodel.execution.run import Progress, Solution
    from fccomodel.report.new_rows.intervals import Intervals


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
        shown = _values(answer.planned, answer.solution, show)
    heldout = held_out(answer.planned, answer.solution)
    return Outcome(
        planned=answer.planned,
        program=answer.program,
        solution=answer.solution,
        report=answer.report,
        wall_s=time.perf_counter() - began,
        shown=shown,
        heldout=heldout,
        race=answer.race,
    )


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
    from fccomodel.report.new_rows import subsample

    if planned.holdout is None:
        return None
    seconds = budget.held_out_seconds(planned.budget, solution.worked)
    return subsample.sure(elsewhere(planned), solution.variables, seed=planned.seed, afford=seconds)
