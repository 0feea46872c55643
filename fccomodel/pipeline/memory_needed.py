"""The memory of a solve, foreseen part by part before any of it is taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fccomodel.core import ir
    from fccomodel.plan import Plan
    from fccomodel.structure import Analysis

#: Bytes that a first solve takes whatever the model: heaps of threads, and libraries that are loaded late.
LOADED_LATE = 1.0e8


@dataclass(frozen=True, kw_only=True)
class MemoryNeeded:
    """Bytes that the parts of a solve take at most, one after another.

    run       steps and full passes
    interior  the conic program, and the interior-point method if it may run; 0 without such a form
    report    the report on all rows; None if it is not known
    largest   the largest array of the run
    of        the expression that this array is the value of, if it is known
    """

    run: float
    interior: float
    report: float | None
    largest: float
    of: ir.Expr | None = None

    @property
    def total(self) -> float:
        """Bytes of the part that takes most, and what every solve takes."""
        return max(self.run, self.interior, self.report or 0.0) + LOADED_LATE


def memory_needed(analysis: Analysis, plan: Plan) -> MemoryNeeded:
    """The memory of a solve with the analysis' data. Raises the errors of a plan that cannot be lowered."""
    from fccomodel.program.lower import foreseen, lower
    from fccomodel.report.new_rows.memory_needed import bytes_needed

    bound = analysis.bound
    assert bound is not None, "memory is foreseen with data"
    run = foreseen(lower(analysis.problem, bound, plan))
    return MemoryNeeded(
        run=run.total,
        interior=_conic(analysis, plan),
        report=bytes_needed(bound),
        largest=run.largest,
        of=run.of,
    )


def _conic(analysis: Analysis, plan: Plan) -> float:
    """Bytes of the conic program, with its solution if that is foreseen to fit into the budget."""
    from fccomodel import conic
    from fccomodel.plan.conic_form import built_form

    seconds = plan.budget.seconds
    form = built_form(analysis, seconds) if plan.polish else None
    if form is None or seconds is None:
        return 0.0
    if conic.cost(form) <= seconds:
        return form.bytes_needed
    return form.bytes_built
