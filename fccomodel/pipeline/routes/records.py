"""What a route is asked, and what it answers.

A ``Request`` has the plan and its deadlines. An ``Answer`` has a program, a solution and the report on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from fccomodel.pipeline.budget import Deadlines
from fccomodel.pipeline.conic_form import may_take_over, planned_form
from fccomodel.pipeline.routes import patience

if TYPE_CHECKING:
    from fccomodel.conic import Conic
    from fccomodel.execution.race import Race
    from fccomodel.execution.run import Progress, Solution
    from fccomodel.pipeline.records import Planned
    from fccomodel.program.emit import Program
    from fccomodel.report import KKTReport


@dataclass(frozen=True, eq=False, kw_only=True)
class Request:
    """A plan to answer.

    progress   hears how far a run is
    sensitive  report how the optimum moves with the right sides of the constraints
    deadlines  when the clock ends runs, and the report's search
    """

    planned: Planned
    progress: Callable[[Progress], None] | None
    sensitive: bool
    deadlines: Deadlines

    @cached_property
    def form(self) -> Conic | None:
        """The conic program that the interior-point method may solve, or None."""
        return planned_form(self.planned)

    @cached_property
    def early_patience(self) -> float | None:
        """The steps' patience, if it is known without the conic program; None otherwise.

        A run that goes on from another keeps that one's patience. A light problem gets the least.
        """
        start = self.planned.plan.start
        if start is not None and start.patience is not None:
            return start.patience
        if patience.light(self.planned):
            return patience.SHORTEST
        return None

    @cached_property
    def patience(self) -> float | None:
        """Counted seconds for steps before the interior-point method takes over; None if it cannot."""
        known = self.early_patience
        if known is None and self.form is not None:
            known = patience.of_form(self.form)
        if known is not None and may_take_over(self.planned):
            return known
        return None


@dataclass(frozen=True, eq=False, kw_only=True)
class Answer:
    """The plan with its device, the program that ran, where it ended, the report on that point.

    race  the race that was held for it, or None
    """

    planned: Planned
    program: Program
    solution: Solution
    report: KKTReport
    race: Race | None = None
