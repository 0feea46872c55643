"""A race of a few algorithms: each lap is a run, and the winner goes on from the point it came to."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fccomodel.core.diagnostics import refuse
from fccomodel.core.options import Budget, Origins
from fccomodel.pipeline.stages import replan, report, run
from fccomodel.plan.starts import Start
from fccomodel.plan.used import RACE

if TYPE_CHECKING:
    from fccomodel.execution.race import Race
    from fccomodel.execution.run import Progress, Solution
    from fccomodel.pipeline.records import Planned
    from fccomodel.report import KKTReport


@dataclass(frozen=True, eq=False, kw_only=True)
class Won:
    """A race that has been held.

    winner    the winner's plan, with what is left of the budget
    solution  where the winner's lap ended; None if there was no other algorithm
    """

    race: Race
    winner: Planned
    solution: Solution | None


def hold(planned: Planned, progress: Callable[[Progress], None] | None) -> Won:
    """Hold the race that a plan asks for. Raises F0713 for a plan of several ranks."""
    from fccomodel.execution import errors, race

    if planned.ranks:
        refuse(errors.of_one_process("A race"), source=planned.problem.source)
    began, budget = time.perf_counter(), planned.budget

    def lap(name: str, share: Budget) -> tuple[Solution, KKTReport]:
        """Run one algorithm with its share of the budget, and report on where it ended."""

        def told(now: Progress) -> None:
            """Tell the progress with the name of the algorithm."""
            if progress is not None:
                progress(replace(now, message=f"race: {name}"))

        entrant, _, solution = run(_entrant(planned, name, share, polish=False), told, part=f"lap-{name}")
        return solution, report(entrant, solution)

    sign = -1 if planned.problem.objective.sense == "maximize" else 1
    held = race.hold(planned.plan.entrants, budget, lap, sign)
    rest = race.left(budget, held.race, time.perf_counter() - began + planned.spent)
    winner = replace(_entrant(planned, held.race.winner, rest, start=held.solution), spent=0.0)
    return Won(race=held.race, winner=winner, solution=held.solution)


def _entrant(
    planned: Planned,
    name: str,
    budget: Budget,
    *,
    polish: bool | None = None,
    start: Solution | None = None,
) -> Planned:
    """The plan of one algorithm with a part of the budget, from the point where ``start`` ended."""
    changed: Origins = {"algorithm": (name, RACE), "budget": (str(budget), RACE)}
    if polish is not None:
        changed["polish"] = (polish, RACE)
    entrant = replan(planned, changed)
    if start is None:
        return entrant
    return replace(entrant, plan=replace(entrant.plan, start=Start(values=start.kept.variables)))
