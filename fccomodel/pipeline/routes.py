"""From a plan to an answer with its report: which route goes first, what takes over where it stalls,
which answer is the better.

All of it is decided by counted work and by what the report finds, so that the same seed goes the
same way; the clock only ends what has no time left.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, NamedTuple

from fccomodel.core import options
from fccomodel.core.diagnostics import FccoError, quoting, refuse
from fccomodel.core.work import priced
from fccomodel.evaluation.sets import draws
from fccomodel.pipeline import Planned, emit, on, report, run, settled
from fccomodel.pipeline.endings import ending
from fccomodel.pipeline.interior import conic_form, convex
from fccomodel.plan.errors import not_conic

if TYPE_CHECKING:
    from fccomodel.conic import Answer, Conic
    from fccomodel.core.failure import Failure
    from fccomodel.execution.run import Progress, Solution
    from fccomodel.plan.start import Start
    from fccomodel.program.emit import Program
    from fccomodel.report import KKTReport

#: Counted seconds that a run has at least and at most to converge by itself, where an
#: interior-point method can take over: else so many times what that method costs.
SOON, PATIENCE, TIMES = 0.3, 3.0, 2.0
#: Passes that a run makes over rows that kinks ask for, foreseen; counted seconds of one, and for
#: each number of these rows; and from how many of all of them on another method goes first.
KINKED, PASS_S, NUMBER_S, DEAR = 300, 4e-4, 3e-9, 0.25
#: Elements times variables up to which a conic program costs less than the least patience is worth.
LIGHT = 20_000
#: By how much the report may find the residual of an answer above the tolerance.
NEAR = 10.0
#: So much more draws at once, and how often; the standard error of the objective that is small
#: enough, relative; numbers that the draws of one expectation may come to; passes over all draws
#: that a run from a near point takes.
GROWTH = 8
GROWTHS = 3
ACCURATE = 1e-3
MOST_NUMBERS = 1 << 24
PASSES = 60
#: A gap that does not count, relative to the objective or to this size of one.
CLOSE, LEAST = 1e-6, 1e-2
#: So often a run goes on beside a point that only conditions of first order call solved.
ESCAPES = 5
#: Failures that a run from a better point may show, which the point before did not.
ENDLESS = ("unbounded", "unattained")
#: The largest share of a budget in seconds that a run leaves for the report; by what share and how
#: many seconds more the report's search may go on beyond the budget.
KEPT, BEYOND, SLACK = 0.05, 0.15, 1.0
#: The share of a budget in seconds that a proof may take that constraints conflict.
PROOF = 0.1


#: Codes of what was asked for (files, a device, a backend) begin so: another method's answer does
#: not make up for it.
ASKED = "F08"


class Found(NamedTuple):
    """An answer: the plan with its device, the program that ran, where it ended, the report."""

    planned: Planned
    program: Program
    solution: Solution
    report: KKTReport


def answer(
    planned: Planned, progress: Callable[[Progress], None] | None = None, *, sensitive: bool = False
) -> Found:
    """The plan's program run and reported on; where it is a conic program too, with the interior-point
    method to take over, but of ranks, whose steps are all that they do together. Where the report
    knows a better point beside the answer, a run goes on from there."""
    until = _until(planned)
    if planned.plan.interior:
        return _by_interior_point(planned, sensitive, until)
    if planned.ranks:
        return _judged(*run(planned, progress, until=until.run), sensitive, until)
    found = _escaped(_routed(planned, progress, sensitive, until), progress, sensitive, until)
    if draws.drawn(planned.problem):
        return _on_more_draws(found, progress, sensitive, until)
    return found


def _on_more_draws(
    found: Found, progress: Callable[[Progress], None] | None, sensitive: bool, until: Until
) -> Found:
    """Passes that go on with more draws of the distributions, as long as the standard error of the
    objective counts and the budget in seconds has room: a point that is best for one sample is off
    by the error of that sample."""
    from fccomodel.pipeline.starts import begun
    from fccomodel.plan.start import Start
    from fccomodel.report.new_rows import intervals, subsample

    for k in range(GROWTHS):
        planned, solution, error = found.planned, found.solution, found.report.error
        asked = planned.plan.polish and options.parse_budget(planned.options["budget"][0])[0] is not None
        larger = replace(planned.bound, draws=GROWTH * planned.bound.draws)
        numbers = larger.draws * subsample.amount(planned.bound)
        exact_enough = error <= ACCURATE * max(abs(found.report.objective), LEAST)
        if not asked or solution.status != "converged" or exact_enough or numbers > MOST_NUMBERS:
            break
        once = priced(partial(intervals.values, planned.bound, solution.variables, planned.seed))[1]
        if time.perf_counter() + PASSES * GROWTH * once > until.run:
            break
        start = Start(values=solution.variables, multipliers=solution.multipliers, found=True)
        planned = begun(on(planned, larger), start)
        again = _judged(*run(planned, progress, until=until.run, part=f"draws {k + 1}"), sensitive, until)
        if again.report.failure or again.solution.interrupted:
            break
        found = again
    return found


def _routed(
    planned: Planned, progress: Callable[[Progress], None] | None, sensitive: bool, until: Until
) -> Found:
    """The answer of the run, or of the interior-point method where that takes over."""
    start = planned.plan.start
    if start is not None and start.answered:
        again = _judged(planned, emit(planned), _as_begun(planned, start), sensitive, until)
        if again.report.solved and _settled(again) or again.solution.interrupted:
            return again
    known, built = None if start is None else start.patience, None
    if known is None and _light(planned):
        known = SOON
    elif known is None and (built := interior(planned)) is not None:
        known = _patience(built)
    if known is None or not _open(planned):
        return _judged(*run(planned, progress, until=until.run), sensitive, until)
    if (
        built is not None
        and _sooner(planned, built)
        and (found := _first(planned, built, sensitive, until)) is not None
    ):
        return found
    route = (lambda: built) if built is not None else partial(interior, planned)
    return ended(planned, route, known, progress, sensitive=sensitive, until=until)


def _escaped(
    found: Found, progress: Callable[[Progress], None] | None, sensitive: bool, until: Until
) -> Found:
    """Passes over all rows that go on from a better point, where conditions of first order hold and
    the report knows one: at a saddle, at a kink that is bent downwards (as where two centres
    coincide), where gradients are small by scaling alone. The better answer; where no time is left,
    the better point itself."""
    from fccomodel.pipeline.starts import begun
    from fccomodel.plan.start import Start

    for k in range(ESCAPES):
        better, planned, solution = found.report.better, found.planned, found.solution
        asked = planned.plan.polish and options.parse_budget(planned.options["budget"][0])[0] is not None
        if better is None or not asked or solution.status != "converged":
            break
        if time.perf_counter() > until.run:
            there = replace(solution, variables={**solution.variables, **better}, timed=True)
            again = _judged(planned, found.program, there, sensitive, until)
            if _gains(again, found):
                return again
            return found._replace(solution=replace(solution, timed=True))
        planned = begun(planned, Start(values=better, multipliers=solution.multipliers, found=True))
        again = _judged(*run(planned, progress, until=until.run, part=f"escape {k + 1}"), sensitive, until)
        if again.report.failure in ENDLESS:
            return again
        if not _gains(again, found):
            break
        found = again
    return found


def _gains(again: Found, found: Found) -> bool:
    """Whether an answer has the better objective where constraints hold as well, or at the tolerance."""
    gain = found.report.objective - again.report.objective
    holds = again.report.feasibility <= max(found.report.feasibility, NEAR * _tol(found.planned))
    return holds and (gain if found.planned.problem.objective.sense == "minimize" else -gain) > 0


def _tol(planned: Planned) -> float:
    return float(planned.options["tol"][0])


def _light(planned: Planned) -> bool:
    """The interior-point method would cost less than the least patience, by the numbers of the data:
    it is looked at where the run does not converge so soon."""
    from fccomodel.evaluation.sets import elements
    from fccomodel.report.new_rows import subsample

    shapes = [
        elements.shape(planned.bound, variable.shape) for variable in planned.problem.variables.values()
    ]
    numbers = subsample.amount(planned.bound) * sum(map(math.prod, shapes))
    return _open(planned) and numbers <= LIGHT and all(len(shape) <= 1 for shape in shapes)


def _patience(route: Conic) -> float:
    """Counted seconds that a run has, where the interior-point method can take over."""
    from fccomodel import conic

    return min(max(SOON, TIMES * conic.cost(route)), PATIENCE)


def _sooner(planned: Planned, route: Conic) -> bool:
    """The interior-point method is foreseen to take less than passes over rows of which many have
    kinks of their own, of an algorithm that nobody asked for."""
    if route.parts is None or "algorithm" in planned.given or planned.checkpoints is not None:
        return False
    passes = KINKED * (PASS_S + NUMBER_S * route.parts.numbers)
    return passes > DEAR and route.seconds < passes


def _by_interior_point(planned: Planned, sensitive: bool, until: Until) -> Found:
    """The answer of a plan that rests on the interior-point method alone, or its proof that there is
    none; what no theorem covers is refused where this method finds neither, unless the report finds
    the answer of another to be one."""
    route = interior(planned)
    if route is not None:
        if (found := _first(planned, route, sensitive, until)) is not None:
            return found
        found = ended(planned, lambda: route, SOON, sensitive=sensitive, until=until)
        solution = found.solution
        if solution.interior or solution.failure is not None or solution.interrupted:
            return found
        if found.report.solved:
            return found._replace(
                planned=replace(found.planned, plan=settled(replace(planned.plan.choice, interior=None)))
            )
    refuse(*(planned.plan.choice.refusal or (not_conic(),)), source=planned.problem.source)


def _first(planned: Planned, route: Conic, sensitive: bool, until: Until) -> Found | None:
    """The answer of the interior-point method without a run, None where it has none that the report
    finds to be one."""
    from fccomodel import conic
    from fccomodel.execution.run.machine import interruptible

    left = until.run - time.perf_counter()
    with interruptible() as asked:
        found = conic.solve(route, seconds=None if math.isinf(left) else max(left, PATIENCE))
    if isinstance(found, str):
        if asked.is_set():
            raise KeyboardInterrupt
        return None
    device, origin = planned.options["device"]
    planned = replace(planned, options={**planned.options, "device": (options.pick_device(device), origin)})
    judged = _judged(planned, emit(planned), interiors(found, None), sensitive, until)
    enough = _settled(judged) or planned.plan.interior and judged.report.solved
    return judged if enough or judged.solution.interrupted else None


def _as_begun(planned: Planned, start: Start) -> Solution:
    """The start as the end of a run that makes no step."""
    from fccomodel.execution.run import Solution

    return Solution(
        variables={name: value for name, value in start.values.items() if name in planned.problem.variables},
        multipliers=start.multipliers,
        limits={},
        history=[],
        iterations=0,
        wall_s=0.0,
        ended="converged",
        stopped="it began at the answer, which the report finds to be one",
        kept=start.kept,
    )


class Until(NamedTuple):
    """When (``time.perf_counter``) the clock ends a run, and the report's search for multipliers."""

    run: float
    report: float


NEVER = Until(math.inf, math.inf)


def _until(planned: Planned) -> Until:
    """By the budget in seconds, less what binding and planning took and the report is foreseen to
    take; never, where it is one of steps or oracle calls."""
    from fccomodel.report.new_rows import subsample

    seconds = options.parse_budget(planned.options["budget"][0])[0]
    if seconds is None:
        return NEVER
    end = time.perf_counter() + seconds - planned.spent
    with quoting(planned.problem.source):
        kept = min(subsample.foreseen(planned.bound, seed=planned.seed), KEPT * seconds)
    return Until(end - kept, end + BEYOND * seconds + SLACK)


def _judged(planned: Planned, program: Program, solution: Solution, sensitive: bool, until: Until) -> Found:
    """With the report, whose search has some time in any case, and with what no point can meet; a
    failure that the report does not bear out is none. Ctrl-C ends the search, and what would come
    after it; after a run that it has ended, all."""
    from fccomodel import report as judging
    from fccomodel.execution.run.machine import interruptible

    least = time.perf_counter() + BEYOND * max(until.report - until.run, 0.0)
    with nullcontext(Event()) if solution.interrupted else interruptible() as asked:
        kkt = report(
            planned, solution, sensitive=sensitive, until=max(until.report, least), stop=asked.is_set
        )
    if asked.is_set():
        solution = replace(solution, ended="interrupted", stopped="interrupted")
    if (failure := judging.unmet(planned.bound, kkt)) is not None:
        solution, kkt = replace(solution, failure=failure), judging.failed(kkt, failure, convex=True)
    elif solution.failure is not None and kkt.failure != solution.failure.kind:
        if kkt.relative["feasibility"] > judging.FEASIBLE:
            failure = _disproved(planned, kkt)
        else:
            failure = None
        if failure is not None:
            solution, kkt = replace(solution, failure=failure), judging.failed(kkt, failure, convex=True)
        elif not kkt.failure:
            solution = replace(solution, failure=None)
    return Found(planned, program, solution, kkt)


def _disproved(planned: Planned, kkt: KKTReport) -> Failure | None:
    """Multipliers by which the constraints are known to conflict everywhere, where a run has told it
    of points near by alone."""
    from fccomodel import conic

    seconds, see = options.parse_budget(planned.options["budget"][0])[0], planned.analysis.see
    if seconds is None or not planned.plan.polish:
        return None
    sides = {label: row.value for label, row in kkt.constraints.items()}
    with quoting(planned.problem.source):
        found = conic.disproved(planned.bound, lambda expr: see(expr).interval.value, sides, PROOF * seconds)
    return found if found is not None and math.isinf(found.radius) else None


def interior(planned: Planned) -> Conic | None:
    """A problem of a convex objective and a convex set as a conic program of moderate size, if it is
    one, where the plan asks for a finish in a time that this method is foreseen to take at most; a
    budget of steps or oracle calls is all that is used."""
    seconds = options.parse_budget(planned.options["budget"][0])[0]
    if planned.plan.polish:
        return conic_form(planned.analysis, seconds)
    return None


def _open(planned: Planned) -> bool:
    """The problem is convex, on a convex set, and its plan asks for a finish within a budget of seconds."""
    seconds = options.parse_budget(planned.options["budget"][0])[0]
    return planned.plan.polish and seconds is not None and convex(planned.analysis)


def ended(
    planned: Planned,
    built: Callable[[], Conic | None],
    patience: float,
    progress: Callable[[Progress], None] | None = None,
    *,
    sensitive: bool = False,
    until: Until = NEVER,
) -> Found:
    """A run of no more work than its ``patience``, and where the report does not find it at the
    optimum, the interior-point method: the better of both, or a run with the whole budget where
    this method finds nothing."""
    failed: FccoError | None = None
    first: Found | None = None
    solution: Solution | None = None
    try:
        planned, program, solution = run(planned, progress, until=until.run, patience=patience)
    except FccoError as error:
        if any(one.code.startswith(ASKED) for one in error.diagnostics):
            raise
        failed, program = error, emit(planned)
    if solution is not None and solution.status in ("converged", "interrupted", "unattained"):
        try:
            first = _judged(planned, program, solution, sensitive, until)
        except FccoError as error:  # it ended where a function has no gradient
            failed, solution = error, None
    if first is not None and solution is not None:
        gap, solution = first.report.gap, first.solution
        near = _settled(first) and gap is not None and _small(first.report, gap.value)
        ended = solution.interrupted or draws.drawn(planned.problem)
        if ended or near and solution.failure is None:
            return first
    if (route := built()) is None:  # it was one for other numbers
        if first is not None and first.solution.failure is not None:
            return first
        return _judged(*run(planned, progress, until=until.run, part="again"), sensitive, until)
    from fccomodel import conic
    from fccomodel.execution.run.machine import interruptible

    with interruptible() as asked:
        left = until.run - time.perf_counter()
        found = conic.solve(route, seconds=None if math.isinf(left) else max(left, PATIENCE))
    if asked.is_set() and isinstance(found, str) and solution is not None:
        solution = replace(solution, ended="interrupted", stopped="interrupted")
        if first:
            return first._replace(solution=solution)
        return _judged(planned, program, solution, sensitive, until)
    if not isinstance(found, str):
        if (
            first is not None
            and _settled(first, 1)
            and _small(first.report, first.report.objective - found.objective)
        ):
            return first
        try:
            second = _judged(planned, program, interiors(found, solution), sensitive, until)
        except FccoError:  # by rounding, its answer is where a function is not defined
            if first is not None:
                return first
            return _judged(*run(planned, progress, until=until.run, part="again"), sensitive, until)
        if solution is not None and solution.status in ("unbounded", "unattained") and not _attained(second):
            first = first or _judged(planned, program, solution, sensitive, until)
            if first.report.failure:  # else the report finds no such fall
                return first
        if solution is None or _settled(second) or second.solution.interrupted:
            return second
        try:
            first = first or _judged(planned, program, solution, sensitive, until)
        except FccoError:
            return second
        if (
            not _better(second, first)
            and not first.report.solved
            and ending(planned, solution).how == "budget"
        ):
            longer = run(
                planned, progress, until=until.run, part="again"
            )  # its patience ended it, not the budget
            first = _judged(*longer, sensitive, until)
        return second if _better(second, first) else first
    if failed is not None or solution is None:
        raise failed or AssertionError(found)
    return _without_optimum(planned, program, solution, first, route, found, progress, sensitive, until)


def _attained(found: Found) -> bool:
    """The report finds a solution, and proves that there is one."""
    from fccomodel import report as judging

    return found.report.solved and bool(
        judging.excluded(found.planned.analysis, found.report.gap, "unattained")
    )


def _without_optimum(
    planned: Planned,
    program: Program,
    solution: Solution,
    first: Found | None,
    route: Conic,
    found: str,
    progress: Callable[[Progress], None] | None,
    sensitive: bool,
    until: Until,
) -> Found:
    """Where the interior-point method finds no optimum: what it has proved, or else where a run with
    the whole budget ends."""
    from fccomodel import conic

    if found == "infeasible" and (failure := conic.conflict(route)) is not None:
        return _judged(planned, program, replace(solution, failure=failure), sensitive, until)
    if found == "unbounded" and (way := conic.endless(route)) is not None:
        solution = replace(solution, variables=way[0], multipliers={}, limits={}, failure=way[1])
        return _judged(planned, program, solution, sensitive, until)
    if found == "unbounded" and (failure := conic.empty(route)) is not None:
        return _judged(planned, program, replace(solution, failure=failure), sensitive, until)
    if first is not None:
        return first
    if solution.failure is None:
        planned, program, solution = run(planned, progress, until=until.run, part="again")
    if solution.status in ("stopped", "infeasible") and (failure := conic.conflict(route)) is not None:
        if solution.failure is None or solution.failure.radius < failure.radius:
            solution = replace(solution, failure=failure)
    return _judged(planned, program, solution, sensitive, until)


def interiors(answer: Answer, solution: Solution | None) -> Solution:
    """The interior-point method's answer as the end of a run, if there was one; of one that converged
    near by, what it ended with is kept for others to go on from."""
    from fccomodel.execution.run import Solution
    from fccomodel.plan.start import Kept

    if solution is None:
        solution = Solution(
            variables={},
            multipliers={},
            limits={},
            history=[],
            iterations=0,
            wall_s=0.0,
            stopped="",
            ended="converged",
        )
    return replace(
        solution,
        variables=answer.variables,
        multipliers=answer.multipliers,
        limits={},
        failure=None,
        kept=solution.kept if solution.status == "converged" else Kept(),
        ended="converged",
        stopped=f"an interior-point method converged in {answer.iterations} iterations",
        interior=answer.iterations,
        paper=answer.paper,
    )


def _settled(found: Found, near: float = NEAR) -> bool:
    """The report finds a point at the tolerance, or near, by the problem's scales."""
    return _residual(found.report) <= found.planned.options["tol"][0] * near


def _residual(kkt: KKTReport) -> float:
    return kkt.relative.get("epsilon", kkt.epsilon)


def _small(kkt: KKTReport, gap: float | None) -> bool:
    """A difference of objectives is none that counts."""
    return gap is not None and abs(gap) <= CLOSE * max(abs(kkt.objective), LEAST)


def _better(first: Found, second: Found) -> bool:
    """Of two answers to a convex problem: the smaller residual, or the better objective where
    constraints hold as well."""
    one, other = first.report, second.report
    gain = other.objective - one.objective
    gain = gain if first.planned.problem.objective.sense == "minimize" else -gain
    holds = one.feasibility <= max(other.feasibility, first.planned.options["tol"][0])
    return _residual(one) <= _residual(other) or (holds and gain > 0 and not _small(other, gain))
