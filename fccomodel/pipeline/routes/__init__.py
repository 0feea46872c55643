"""From a plan to an answer with its report: the routes, in the order in which they are tried.

Each route is a file. It takes a request and gives an answer, or None if it does not apply or finds
none. What follows an answer (a feasible start, a better point beside it, more draws) takes the answer
and gives one. Answers are compared by ``judging.better``.

Everything is decided by counted work and by what the report finds, so that the same seed takes the
same way. The clock only ends what has no time left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from fccomodel.core.diagnostics import FccoError
from fccomodel.evaluation.checks.sizes import beyond_memory
from fccomodel.pipeline import budget
from fccomodel.pipeline.boundary import quoted
from fccomodel.pipeline.routes import (
    escape,
    feasible,
    interior_point,
    more_draws,
    one_variable,
    race,
    resume,
    several_starts,
    steps,
    takeover,
)
from fccomodel.pipeline.routes.records import Answer, Request
from fccomodel.pipeline.stages import emit, report

if TYPE_CHECKING:
    from fccomodel.execution.run import Progress
    from fccomodel.pipeline.records import Planned

#: Tried in this order until one gives an answer; the last always does, or raises why there is none.
ROUTES: tuple[Callable[[Request], Answer | None], ...] = (
    takeover.planned,
    steps.of_ranks,
    resume.at_the_answer,
    one_variable.before_steps,
    steps.alone,
    interior_point.before_steps,
    takeover.after_steps,
)
#: What goes on from an answer, in this order.
AFTERWARDS: tuple[Callable[[Request, Answer], Answer], ...] = (
    feasible.from_a_feasible_point,
    escape.from_better_points,
    more_draws.with_more_draws,
)


#: A note on an answer from which no run could go on.
NO_ROOM = "memory ran out in a run that was to go on from this answer"


@quoted
def answer(
    planned: Planned, progress: Callable[[Progress], None] | None = None, *, sensitive: bool = False
) -> Answer:
    """The answer of a plan, with its report: the best one if runs from several first points are wanted.

    ``sensitive``: report how the optimum moves with the right sides of the constraints.
    """
    if several_starts.count(planned) > 1:
        return several_starts.best(planned, lambda part: _answer(part, progress, sensitive))
    return _answer(planned, progress, sensitive)


def _answer(planned: Planned, progress: Callable[[Progress], None] | None, sensitive: bool) -> Answer:
    """The answer of one plan. If it asks for a race, its winner gives the answer."""
    if not planned.plan.entrants:
        return _by_routes(planned, progress, sensitive)
    won = race.hold(planned, progress)
    if won.solution is None or not won.race.interrupted:
        return replace(_by_routes(won.winner, progress, sensitive), race=won.race)
    return Answer(
        planned=won.winner,
        program=emit(won.winner),
        solution=won.solution,
        report=report(won.winner, won.solution, sensitive=sensitive),
        race=won.race,
    )


def _by_routes(planned: Planned, progress: Callable[[Progress], None] | None, sensitive: bool) -> Answer:
    """The answer of the first route that gives one, and what goes on from it."""
    request = Request(
        planned=planned, progress=progress, sensitive=sensitive, deadlines=budget.deadlines(planned)
    )
    current = next(filter(None, (route(request) for route in ROUTES)))
    if planned.plan.interior or planned.ranks:
        return current
    for go_on in AFTERWARDS:
        try:
            current = go_on(request, current)
        except FccoError as error:
            if not beyond_memory(error):
                raise
            notes = (*current.solution.notes, NO_ROOM)
            current = replace(current, solution=replace(current.solution, notes=notes))
    return current
