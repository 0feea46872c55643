"""A solve by steps alone, under a microscope."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fccomodel.core.diagnostics import quoting
from fccomodel.pipeline import Outcome, Planned, held_out, report, run

if TYPE_CHECKING:
    from fccomodel.execution.run import Progress


def traced(
    planned: Planned,
    wanted: Sequence[str],
    at: Sequence[int] | None = None,
    progress: Callable[[Progress], None] | None = None,
    *,
    show: Iterable[str] = (),
) -> Outcome:
    """The steps of the algorithm chosen, with what was ``wanted`` of them at the steps ``at``; the
    report is as ever.

    The program has the passes over all rows that true gradients take; they come after the run.
    """
    from fccomodel.evaluation.values import lets, values
    from fccomodel.execution.run.microscope import Microscope

    began = time.perf_counter()
    shown = lets(planned.problem, show)
    microscope = Microscope(wanted, at)
    under = replace(planned, plan=replace(planned.plan, polish=True))
    under, program, solution = run(under, progress, microscope=microscope)
    kkt = report(under, solution)
    with quoting(planned.problem.source):
        known = values(planned.bound, solution.variables, shown, seed=planned.seed)
    apart, wall = held_out(under, solution), time.perf_counter() - began
    return Outcome(
        planned=planned,
        program=program,
        solution=solution,
        report=kkt,
        wall_s=wall,
        shown=known,
        heldout=apart,
    )
