"""How a run ended. Advice on its answer depends on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fccomodel.execution.run import Solution
    from fccomodel.pipeline.records import Planned
    from fccomodel.report.advice import Ending

#: The reasons, in the words of the emitted loops, for which a larger budget lets a run go on.
SPENT = ("the budget is used up", "the time is used up")


def ending(planned: Planned, solution: Solution) -> Ending:
    """How a run ended, by its own words and by what came last."""
    from fccomodel.report.advice import Ending

    how = solution.ended
    if how == "stopped":
        how = "budget" if solution.stopped in SPENT else "stalled"
    way = _last_method(solution)
    sampled = _sampled(planned)
    return Ending(
        how=how,
        way=way,
        tol=planned.options["tol"][0],
        sampled=sampled,
        biased=sampled and planned.plan.forgetful,
        passes=_passes(planned) if way == "steps" else "",
    )


def _last_method(solution: Solution) -> str:
    """What came last: ``interior`` for the interior-point method, ``passes`` or ``steps``."""
    if solution.interior:
        return "interior"
    if solution.way == "finish":
        return "passes"
    return "steps"


def _sampled(planned: Planned) -> bool:
    """Whether steps see only some of the rows or blocks, or draws."""
    from fccomodel.plan import sizes

    normal, bound, batch = planned.plan.normal, planned.bound, planned.plan.batch
    blocks = sizes.counted(normal, bound, batch)
    return sizes.sampled(normal, bound, batch) or blocks["B1"] < blocks["n"]


def _passes(planned: Planned) -> str:
    """How to get passes over all rows, if an option left them out; else an empty text."""
    from fccomodel.plan.candidates import finishable

    if not finishable(planned.plan.algorithm_record) or any(
        v.net for v in planned.problem.variables.values()
    ):
        return ""
    if planned.budget.seconds is None:
        return "a budget in seconds, which ends with passes over all rows"
    if planned.plan.polish:
        return ""
    return "passes over all rows at the end (without --no-polish)"
