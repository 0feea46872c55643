"""How a run ended. Advice on its answer depends on it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fccomodel.execution.run import Solution
    from fccomodel.pipeline.records import Planned
    from fccomodel.report.advice import Ending

#: The reasons, in the words of the emitted loops, for which a larger budget lets a run go on.
SPENT = ("the budget is used up", "the time limit was reached")


#: How to give larger batches to the steps of an optimizer of torch.
BATCHES_OF_AN_OPTIMIZER = "`batch=` in Python"


def ending(planned: Planned, solution: Solution) -> Ending:
    """The way in which a run ended, by its own words and by its last method."""
    from fccomodel.report.advice import Ending

    how = solution.ended
    if how == "stopped":
        how = "budget" if solution.stopped in SPENT else "stalled"
    way = _last_method(solution)
    rows_seen = planned.plan.seen(planned.bound)
    passes = ""
    if way == "steps" and rows_seen.finishable:
        passes = _passes(planned)
    words: dict[str, str] = {}
    if planned.plan.optimizer:
        words = {"batches": BATCHES_OF_AN_OPTIMIZER}
    return Ending(
        how=how,
        way=way,
        tol=planned.options["tol"][0],
        sampled=rows_seen.sampled,
        biased=rows_seen.biased,
        passes=passes,
        **words,
    )


def last_look(solution: Solution) -> tuple[float, float]:
    """The objective and the largest violation that a run saw last; not a number if it saw none."""
    if not solution.history:
        return math.nan, math.nan
    entry = solution.history[-1]
    return entry["objective"], entry["violation"]


def _last_method(solution: Solution) -> str:
    """The last method of a run: ``interior`` for the interior-point method, ``passes`` or ``steps``."""
    if solution.interior:
        return "interior"
    if solution.way == "finish":
        return "passes"
    return "steps"


def _passes(planned: Planned) -> str:
    """The advice how to get passes over all rows, if an option left them out; else an empty text."""
    if planned.budget.seconds is None:
        return "a budget in seconds, which ends with passes over all rows"
    if planned.plan.polish:
        return ""
    return "passes over all rows at the end (without --no-polish)"
