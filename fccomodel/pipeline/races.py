"""A race held for an answer: its laps are runs of the pipeline, and its winner's plan goes on from the
point that it came to."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from fccomodel.core import options
from fccomodel.core.diagnostics import refuse
from fccomodel.pipeline import Planned, decide, emit, report, routes, run, with_origins
from fccomodel.plan.start import Start

if TYPE_CHECKING:
    from fccomodel.execution.race import Race
    from fccomodel.execution.run import Progress, Solution
    from fccomodel.report import KKTReport

#: the origin of options that a race sets
RACE = "race"


def answer(
    planned: Planned, progress: Callable[[Progress], None] | None = None, *, sensitive: bool = False
) -> tuple[routes.Found, Race | None]:
    """The answer of a plan; where this asks for a race, that of the winner with what is left of the
    budget, and the race. Of one that is interrupted it is the best point so far."""
    from fccomodel.execution import errors, race

    if not planned.plan.entrants:
        return routes.answer(planned, progress, sensitive=sensitive), None
    if planned.ranks:
        refuse(errors.of_one_process("A race"), source=planned.problem.source)
    began, budget = time.perf_counter(), options.parse_budget(planned.options["budget"][0])

    def lap(name: str, share: options.Budget) -> tuple[Solution, KKTReport]:
        def told(now: Progress) -> None:
            if progress is not None:
                progress(replace(now, message=f"race: {name}"))

        one, _, solution = run(_entered(planned, name, share, polish=False), told, part=f"lap-{name}")
        return solution, report(one, solution)

    held = race.hold(
        planned.plan.entrants, budget, lap, -1 if planned.problem.objective.sense == "maximize" else 1
    )
    rest = race.left(budget, held.race, time.perf_counter() - began + planned.spent)
    winner = replace(_entered(planned, held.race.winner, rest, start=held.solution), spent=0.0)
    if held.solution is None or not held.race.interrupted:
        return routes.answer(winner, progress, sensitive=sensitive), held.race
    found = routes.Found(
        winner, emit(winner), held.solution, report(winner, held.solution, sensitive=sensitive)
    )
    return found, held.race


def _entered(
    planned: Planned,
    name: str,
    budget: options.Budget,
    *,
    polish: bool | None = None,
    start: Solution | None = None,
) -> Planned:
    """The plan of one that takes part, with a part of the budget; ``start``: from where a run ended."""
    given = {key: entry for key, entry in planned.options.items() if entry[1] in options.GIVEN}
    given |= {"algorithm": (name, RACE), "budget": (str(budget), RACE)}
    if polish is not None:
        given["polish"] = (polish, RACE)
    made = decide(planned.analysis, given)
    made = replace(made, start=planned.plan.start if start is None else Start(values=start.kept.variables))
    return replace(planned, plan=made, options=with_origins(made, given))
