"""Sentences on the method that gave the answer and on what ran before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fccomodel.execution.run import Solution
    from fccomodel.plan import Plan

INTERIOR = "interior-point method"
FINISH = "proximal L-BFGS"
RESTORATION = "restoration of feasibility"
START = "start"


@dataclass(frozen=True, kw_only=True)
class Answered:
    """The method whose point the answer is.

    method  title of an algorithm, ``interior-point method``, ``proximal L-BFGS``, ``restoration of
            feasibility`` or ``start``
    words   what ran, in order: ``SONEX, 165 steps, then 133 full passes of proximal L-BFGS, which
            gave the answer``
    """

    method: str
    words: str


def answered(plan: Plan, solution: Solution) -> Answered:
    """The method that gave the answer: the last one that ran, if it changed the point."""
    title, start = plan.algorithm_record.title, plan.start
    if plan.interior and solution.interior and not solution.iterations:
        return Answered(method=INTERIOR, words=f"{INTERIOR}, {_counted(solution.interior, 'iteration')}")
    steps = ""
    if plan.optimizer:
        steps = f"{plan.optimizer}, {_counted(solution.iterations, 'step')} by {title}'s gradient"
        return Answered(method=title, words=steps)
    if solution.iterations:
        steps = f"{title}, {_counted(solution.iterations, 'step')}"
    passes = solution.passes if solution.way == "finish" else 0
    through = f"{_counted(passes, 'full pass')} of {FINISH}"
    if solution.interior:
        before = ", ".join(filter(None, (steps, through if passes else "")))
        return Answered(
            method=INTERIOR,
            words=_last(before, f"{INTERIOR}, {_counted(solution.interior, 'iteration')}", title),
        )
    if passes and solution.moved:
        if not steps and start is not None and start.found:
            return Answered(method=FINISH, words=f"{through}, from the point of an earlier run")
        return Answered(method=FINISH, words=_last(steps, through, title))
    if passes and steps:
        return Answered(
            method=title, words=f"{steps}, which gave the answer; {through} found no better point"
        )
    if solution.way == "restore" and solution.passes and solution.moved:
        restored = f"{_counted(solution.passes, 'full pass')} to restore feasibility"
        return Answered(method=RESTORATION, words=_last(steps, restored, title))
    if steps or start is None:
        return Answered(method=title, words=steps or f"{title}, 0 steps")
    if passes:
        unchanged = f", which {through} did not change"
    else:
        unchanged = ""
    return Answered(method=START, words=f"the start{unchanged}")


def _last(before: str, last: str, planned: str) -> str:
    """The method that ran last and gave the answer, after those that ran before it; the planned one if
    nothing ran."""
    if before:
        return f"{before}, then {last}, which gave the answer"
    return f"{last} ({planned} was planned, not needed)"


def _counted(number: int, noun: str) -> str:
    """``1 step``, ``2 steps``, ``3 full passes``."""
    plural = "es" if noun.endswith("s") else "s"
    return f"{number:,} {noun}{'' if number == 1 else plural}"
