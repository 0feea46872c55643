"""Runs that go on with more draws of the distributions.

A point that is best for one sample is off by the sampling error of that sample.
"""

from __future__ import annotations

import time
from dataclasses import replace

from fccomodel.evaluation.sets import draws
from fccomodel.pipeline.routes.judging import SMALLEST_OBJECTIVE, judged
from fccomodel.pipeline.routes.records import Answer, Request
from fccomodel.pipeline.routes.steps import went_on
from fccomodel.pipeline.rows import on
from fccomodel.pipeline.starts import begun
from fccomodel.plan.starts import Start

#: By how many times the draws grow at once.
GROWTH = 8
#: How often they grow.
MOST_GROWTHS = 3
#: The standard error of the objective that is small enough, relative to the objective.
SMALL_ERROR = 1e-3
#: Numbers that the draws of one expectation may come to.
MOST_NUMBERS = 1 << 24
#: Passes over all draws that a run from a nearby point takes.
FORESEEN_PASSES = 60


def with_more_draws(request: Request, answer: Answer) -> Answer:
    """The answer with more draws, as long as its standard error counts and the budget has room."""
    if not draws.drawn(request.planned.problem):
        return answer
    for k in range(MOST_GROWTHS):
        if not _worthwhile(answer) or not _in_time(request, answer):
            break
        planned, solution = answer.planned, answer.solution
        start = Start(values=solution.variables, multipliers=solution.multipliers, found=True)
        larger = replace(planned.bound, draws=GROWTH * planned.bound.draws)
        planned = begun(on(planned, larger), start)
        again = judged(request, *went_on(request, planned, f"draws {k + 1}"))
        if again.report.failure or again.solution.interrupted:
            break
        answer = again
    return answer


def _worthwhile(answer: Answer) -> bool:
    """Whether the sampling error counts, and more draws fit into memory."""
    from fccomodel.evaluation import passes

    bound, report = answer.planned.bound, answer.report
    if not answer.planned.finishes or answer.solution.status != "converged":
        return False
    if report.error <= SMALL_ERROR * max(abs(report.objective), SMALLEST_OBJECTIVE):
        return False
    return GROWTH * bound.draws * passes.amount(bound) <= MOST_NUMBERS


def _in_time(request: Request, answer: Answer) -> bool:
    """Whether a run with more draws, and the report on it, are foreseen to end before the deadline."""
    from fccomodel.evaluation import passes

    planned = answer.planned
    once = passes.seconds(planned.bound, answer.solution.variables, planned.seed)
    foreseen = GROWTH * (FORESEEN_PASSES * once + answer.report.wall_s)
    return time.perf_counter() + foreseen <= request.deadlines.run
