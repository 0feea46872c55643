"""The choice of a method for an analysed problem, and the plan that settles it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fccomodel.core import options
from fccomodel.core.diagnostics import FccoError
from fccomodel.pipeline.boundary import quoted

if TYPE_CHECKING:
    from fccomodel.plan import Plan
    from fccomodel.plan.choice import Choice
    from fccomodel.structure import Analysis


@quoted
def decide(analysis: Analysis, given: options.Origins | None = None, like: Plan | None = None) -> Plan:
    """Decide how the problem is solved: the algorithm, its normal form, and all that the options leave
    open.

    ``like`` is the plan for other numbers: its algorithm is kept if it has the same guarantee.
    """
    from fccomodel.plan.methods import choose_method

    return settled(choose_method(analysis, given or {}, None if like is None else like.choice.chosen))


def settled(choice: Choice) -> Plan:
    """The plan of a choice. Raises F06xx if nothing was chosen.

    If the theorem of an algorithm that nobody named gives no schedule, the next algorithm with a schedule
    takes its place.
    """
    from fccomodel.plan import errors, settle
    from fccomodel.plan.choice import with_next_schedule

    try:
        return settle(choice, choice.chosen.normal)
    except FccoError as error:
        first = error.diagnostics[0]
        if first.code not in errors.WITHOUT_SCHEDULE:
            raise
        for other in with_next_schedule(choice, f"{first.message}: {first.reason}"):
            try:
                return settle(other, other.chosen.normal)
            except FccoError:
                continue
        raise


def bound_without_data(analysis: Analysis) -> Analysis | None:
    """The analysis with the model bound, if it needs no data and no values; None otherwise."""
    from fccomodel import structure
    from fccomodel.data import bind

    problem = analysis.problem
    if problem.tables or problem.nets or analysis.bound is not None:
        return None
    try:
        return structure.analyse(problem, bind.bind(problem))
    except FccoError:
        return None
