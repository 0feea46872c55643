"""How a run ended, as far as advice on its answer depends on that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fccomodel.core import options

if TYPE_CHECKING:
    from fccomodel.execution.run import Solution
    from fccomodel.pipeline.records import Planned
    from fccomodel.report.advice import Ending

#: why a run ended that a larger budget lets go on; the emitted loops say so
SPENT = ("the budget is used up", "the time is used up")


def ending(planned: Planned, solution: Solution) -> Ending:
    """By its own words and by what came last."""
    from fccomodel.report.advice import Ending

    how = solution.ended
    if how == "stopped":
        how = "budget" if solution.stopped in SPENT else "stalled"
    if solution.interior:
        way = "interior"
    elif solution.way == "finish":
        way = "passes"
    else:
        way = "steps"
    if way == "steps":
        passes = _passes(planned)
    else:
        passes = ""
    sampled = _sampled(planned)
    biased = sampled and planned.plan.forgetful
    return Ending(
        how=how, way=way, tol=planned.options["tol"][0], sampled=sampled, biased=biased, passes=passes
    )


def _sampled(planned: Planned) -> bool:
    """Steps see some of the rows or blocks, or draws."""
    from fccomodel.plan import sizes

    normal, bound, batch = planned.plan.normal, planned.bound, planned.plan.batch
    blocks = sizes.counted(normal, bound, batch)
    return sizes.sampled(normal, bound, batch) or blocks["B1"] < blocks["n"]


def _passes(planned: Planned) -> str:
    """How to have passes over all rows, where an option left them out."""
    from fccomodel.plan.candidates import finishable

    if not finishable(planned.plan.algorithm_record) or any(
        v.net for v in planned.problem.variables.values()
    ):
        return ""
    if options.parse_budget(planned.options["budget"][0])[0] is None:
        return "a budget in seconds, which ends with passes over all rows"
    if planned.plan.polish:
        return ""
    return "passes over all rows at the end (without --no-polish)"
