"""How the parts of a solve share a budget in seconds: the run, the report, the rows held out.

A budget of steps or oracle calls is for the run alone, and leaves no deadline.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fccomodel.core.work import Meter

if TYPE_CHECKING:
    from collections.abc import Callable

    from fccomodel.core.options import Budget
    from fccomodel.execution.run import Solution
    from fccomodel.pipeline.records import Planned

#: The least share of a budget in seconds that a run gets, however long the stages before it took.
LEAST_RUN_SHARE = 0.6
#: That share for a run that goes on from an answer.
LEAST_SHARE_TO_GO_ON = 0.1
#: The largest share of a budget in seconds that a run leaves for the report.
LARGEST_REPORT_SHARE = 0.05
#: The share of a budget in seconds by which the report's search may exceed the budget.
SEARCH_BEYOND_SHARE = 0.15
#: Seconds that the report's search may take beyond that share.
SEARCH_BEYOND_SECONDS = 1.0
#: Counted seconds that the search for multipliers and bounds may take in any case.
REPORT_SECONDS = 1.0
#: The share of a run's counted seconds that this search may take.
SEARCH_SHARE = 0.5
#: The share of a budget in seconds that a report's passes over all rows may take (counted seconds).
REPORT_PASSES_SHARE = 0.25
#: The same share if passes of nets are expensive: of a part of the rows, where all take more.
EXPENSIVE_NETS_SHARE = 0.07
#: The share of the budget that a run then leaves for its last look. (The report may end after the
#: budget, as others do.)
LEFT_BY_EXPENSIVE_NETS = 0.06
#: What a report may take beyond a budget in seconds: a share of it ...
REPORT_BEYOND_SHARE = 0.3
#: ... and so many counted seconds. With the start of a command (some 3 s) and the budget itself this
#: is the promise of at most 1.3 times the budget and 5 s.
REPORT_BEYOND_SECONDS = 1.0
#: The least number of counted seconds in a second of the clock that a report reckons with.
SLOWEST_PACE = 0.2
#: Counted seconds for intervals on rows held out, if the budget is not in seconds.
HELD_OUT_SECONDS = 120.0
#: The least share of a budget in seconds for these intervals.
HELD_OUT_SHARE = 0.15


@dataclass(frozen=True, kw_only=True)
class Deadlines:
    """The times (``time.perf_counter``) at which the clock ends a run, and the report's search for
    multipliers."""

    run: float = math.inf
    report: float = math.inf

    @property
    def run_is_over(self) -> bool:
        """Whether the time for runs is used up."""
        return time.perf_counter() > self.run

    def seconds_for(self, least: float) -> float | None:
        """Seconds until the run's deadline, but at least the given number; None without a deadline."""
        left = self.run - time.perf_counter()
        if math.isinf(left):
            return None
        return max(left, least)

    def for_report(self) -> float:
        """The time at which the report's search ends. It gets some time in any case."""
        least = time.perf_counter() + SEARCH_BEYOND_SHARE * max(self.report - self.run, 0.0)
        return max(self.report, least)


NEVER = Deadlines()


def deadlines(planned: Planned) -> Deadlines:
    """The deadlines that the budget sets; none for a budget of steps or oracle calls.

    What binding and planning took counts, and so does what the report is foreseen to take. With expensive
    nets the report comes after the budget: its passes have a share of their own.
    """
    from fccomodel.report.new_rows import subsample

    seconds = planned.budget.seconds
    if seconds is None:
        return NEVER
    end = time.perf_counter() + seconds - planned.spent
    for_report = 0.0
    if not planned.plan.thrifty:
        for_report = min(subsample.foreseen(planned.bound, seed=planned.seed), LARGEST_REPORT_SHARE * seconds)
    return Deadlines(run=end - for_report, report=end + SEARCH_BEYOND_SHARE * seconds + SEARCH_BEYOND_SECONDS)


def run_room(planned: Planned) -> float | None:
    """Counted seconds that the stages of a run share; None if the budget is not in seconds."""
    seconds = planned.budget.seconds
    if seconds is None or not planned.plan.thrifty:
        return seconds
    return seconds * (1.0 - LEFT_BY_EXPENSIVE_NETS)


def run_seconds(planned: Planned, until: float, *, goes_on: bool = False) -> float | None:
    """Seconds of the clock for a run that ends at ``until``; None if the budget is not in seconds.

    A run that ``goes_on`` from an answer gets what is left, and a small share in any case. Any other gets
    a larger share, without which there would be no answer.
    """
    seconds = run_room(planned)
    if seconds is None:
        return None
    if goes_on:
        share = LEAST_SHARE_TO_GO_ON
    else:
        share = LEAST_RUN_SHARE
    return max(min(seconds, until - time.perf_counter()), share * seconds)


def training_seconds(planned: Planned, until: float) -> float | None:
    """Seconds of the clock for a training loop that ends at ``until`` with its last look; None if the
    budget is not in seconds."""
    seconds = planned.budget.seconds
    if seconds is None:
        return None
    return max(until - time.perf_counter(), LEAST_RUN_SHARE * seconds)


def search_meter(solution: Solution, until: float, stop: Callable[[], bool]) -> Meter:
    """The work that the report's search may do: half the run's, or ``REPORT_SECONDS``."""
    return Meter(pace(solution) * max(REPORT_SECONDS, solution.worked * SEARCH_SHARE), until, stop)


def pace(solution: Solution) -> float:
    """Counted seconds that this machine does in a second, as a run that the clock ended has shown.

    It is 1 for other runs, so that their reports are the same on every machine.
    """
    if not solution.timed or not solution.wall_s:
        return 1.0
    return min(max(solution.worked / solution.wall_s, SLOWEST_PACE), 1.0)


def report_passes_seconds(planned: Planned, solution: Solution) -> float:
    """Counted seconds that the report's passes over all rows may take: fewer on a machine where the
    run's counted seconds took longer by the clock."""
    seconds = planned.budget.seconds
    if seconds is None:
        return math.inf
    if planned.plan.thrifty:
        share = EXPENSIVE_NETS_SHARE
    else:
        share = REPORT_PASSES_SHARE
    return pace(solution) * share * seconds


def report_beyond_seconds(budget: Budget) -> float:
    """Counted seconds that a report may take beyond the budget; 0 if the budget is not in seconds."""
    if budget.seconds is None:
        return 0.0
    return REPORT_BEYOND_SHARE * budget.seconds + REPORT_BEYOND_SECONDS


def held_out_seconds(budget: Budget, worked: float) -> float:
    """Counted seconds for intervals on rows held out, after a run that took ``worked`` ones."""
    seconds = budget.seconds
    if seconds is None:
        return HELD_OUT_SECONDS
    return max(seconds - worked, HELD_OUT_SHARE * seconds, REPORT_SECONDS)
