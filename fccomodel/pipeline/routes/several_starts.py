"""Runs from several first points, each with an equal part of the budget; the best answer is kept."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

from fccomodel.core.diagnostics import FccoError, refuse
from fccomodel.core.options import Budget
from fccomodel.evaluation.starts import is_drawn
from fccomodel.execution.errors import NOTHING_FINITE
from fccomodel.pipeline import errors, starts
from fccomodel.pipeline.records import Planned
from fccomodel.pipeline.routes.judging import TOLERANCE_FACTOR, better
from fccomodel.pipeline.routes.records import Answer
from fccomodel.pipeline.stages import replan
from fccomodel.report.errors import NOT_FINITE

#: From a plan to its answer.
Answering = Callable[[Planned], Answer]
#: Digits of an objective in the report.
DIGITS = 6
#: By how much all runs may exceed the budget: a factor, ...
SLACK = 1.2
#: ... and seconds.
SLACK_SECONDS = 3.0


def count(planned: Planned) -> int:
    """The number of first points that are wanted: one where the problem is proved convex."""
    if planned.analysis.convex_for_sure:
        return 1
    return int(planned.options.get("starts", (1, ""))[0])


def best(planned: Planned, answering: Answering) -> Answer:
    """The best answer of runs from several first points; the first is that of a single run.

    Raises F0712 beside checkpoints or ranks, and for models whose runs all begin at one point.
    """
    if not any(map(is_drawn, planned.problem.variables.values())):
        refuse(errors.one_first_point())
    if planned.checkpoints is not None:
        refuse(errors.several_starts_beside("`checkpoint`"))
    if planned.ranks:
        refuse(errors.several_starts_beside("`ranks`"))
    runs, began = count(planned), time.perf_counter()
    part = _part_of_budget(planned, runs)
    best_answer = answering(part)
    objectives, number, failed = [best_answer.report.objective], 0, 0
    while number + 1 < runs and not best_answer.solution.interrupted:
        if _overdue(planned, time.perf_counter() - began, number + 1):
            break
        number += 1
        try:
            other = answering(starts.another(part, number))
        except FccoError as error:
            if error.diagnostics[0].code not in (NOTHING_FINITE.id, NOT_FINITE.id):
                raise
            failed += 1  # the objective is not finite near this start
            continue
        objectives.append(other.report.objective)
        if _preferred(other, best_answer):
            best_answer = other
        if other.solution.interrupted:
            break
    stopped = f"{best_answer.solution.stopped}; {_said(objectives, failed, runs)}"
    return replace(best_answer, solution=replace(best_answer.solution, stopped=stopped))


def _preferred(new: Answer, old: Answer) -> bool:
    """Whether an answer is better: one that meets the constraints before one that does not; of two that
    do not, the one with the smaller violation."""
    allowed = TOLERANCE_FACTOR * old.planned.tolerance
    met, was_met = (one.report.feasibility <= allowed for one in (new, old))
    if met != was_met:
        return met
    if not met:
        return new.report.feasibility < old.report.feasibility
    return better(new, old, convex=False)


def _overdue(planned: Planned, seconds: float, made: int) -> bool:
    """Whether another run, as long as those before, would end after the budget in seconds."""
    whole = planned.budget.seconds
    return whole is not None and seconds * (made + 1) / made > SLACK * whole + SLACK_SECONDS


def _said(objectives: list[float], failed: int, runs: int) -> str:
    """How many runs were made, and between which objectives they ended.

    failed   starts near which the objective is not finite
    runs     starts that were wanted
    """
    low, high = (f"{end(objectives):.{DIGITS}g}" for end in (min, max))
    between = f"all with objective {low}" if low == high else f"with objectives from {low} to {high}"
    starts = len(objectives)
    missing = []
    if failed:
        missing.append(f"near {failed} more the objective is not finite")
    if starts + failed < runs:
        missing.append(f"{runs} were wanted, and the budget is used up")
    words = f" ({'; '.join(missing)})" if missing else ""
    return f"the best of {starts} starts{words}, {between}"


def _part_of_budget(planned: Planned, runs: int) -> Planned:
    """The plan for one of several runs, with its part of the budget."""
    whole = planned.budget
    budget = Budget(
        seconds=None if whole.seconds is None else whole.seconds / runs,
        iterations=None if whole.iterations is None else max(1, whole.iterations // runs),
        oracles=None if whole.oracles is None else float(max(1, math.floor(whole.oracles / runs))),
    )
    asked, origin = planned.options["budget"]
    part = replan(planned, {"budget": (str(budget), origin)}, like=planned.plan)
    return part.with_option("budget", asked)
