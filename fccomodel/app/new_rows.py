"""Solves with statements about new rows: margins of sampled constraints, and an interval of the gap.

Both come from the same answers on resampled rows (``report/new_rows/population.py``,
``report/new_rows/margins.py``). An answer is found as the first one is: by the interior-point
method where the problem is a conic program of moderate size, else by a run with its budget.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fccomodel import pipeline
from fccomodel.core import ir, options
from fccomodel.core.diagnostics import FccoError, quoting, refuse
from fccomodel.data import subsets
from fccomodel.data.bound import Bound
from fccomodel.evaluation.passes import values
from fccomodel.evaluation.values import lets
from fccomodel.execution import errors
from fccomodel.execution.run import Progress
from fccomodel.execution.run.machine import interruptible
from fccomodel.pipeline import conic_form
from fccomodel.report.new_rows import margins, population
from fccomodel.report.new_rows.intervals import FEWEST, deviations, difference, student
from fccomodel.report.new_rows.intervals import GROUPS as REPLICATED
from fccomodel.report.new_rows.margins import Margin, Margins

Point = Mapping[str, np.ndarray]
#: Groups of rows for the errors of constraints.
GROUPS = 100
#: Answers on resampled rows for margins.
ANSWERS = 99


def solve(
    planned: pipeline.Planned,
    progress: Callable[[Progress], None] | None = None,
    *,
    show: Iterable[str] = (),
    sensitive: bool = False,
) -> pipeline.Outcome:
    """``pipeline.solve`` with margins and an interval of the gap, where the options ask for them.

    ``show`` has the names of lets whose values are wanted.
    """
    shown = lets(planned.problem, show)
    level, asked = (planned.options.get(name, (None, ""))[0] for name in ("margin", "population"))
    if level is None and asked in (None, False):
        return pipeline.solve(planned, progress, show=shown, sensitive=sensitive)
    if planned.ranks:
        refuse(
            errors.of_one_process("A margin or an interval by answers on resampled rows"),
            source=planned.problem.source,
        )
    with quoting(planned.problem.source):
        subsets.sampled(planned.bound)
    if asked in (None, False, True):
        seconds = None
    else:
        seconds = options.parse_budget(asked).seconds
    seconds = seconds or options.POPULATION_SECONDS
    if level is None:
        outcome = pipeline.solve(planned, progress, show=shown, sensitive=sensitive)
        bag = bagged(planned, planned.bound, seconds)
        gap = interval(outcome.planned, outcome.solution.variables, bag)
        if gap.convex:
            most = replicated(planned, outcome.solution.variables, seconds)
        else:
            most = math.nan
        return dataclasses.replace(outcome, population=dataclasses.replace(gap, most=most))
    return _with_margins(planned, progress, level, seconds, show=shown, sensitive=sensitive, gap=bool(asked))


# ------------------------------------------------------------------------ answers on resampled rows
@dataclass(frozen=True, eq=False, kw_only=True)
class Bag:
    """Answers on resampled rows: the values of the objective and the constraints as written, (answers,
    1 + constraints), on the rows of each (``inside``) and on those at hand (``whole``)."""

    inside: np.ndarray
    whole: np.ndarray
    failed: int
    seconds: float


def bagged(
    planned: pipeline.Planned, written: Bound, seconds: float, count: int = population.DRAWS_FOR_LEVEL
) -> Bag:
    """Results on random draws of rows: this many draws, or as many as the seconds allow; ``failed``
    draws have no answer. ``written`` is the problem without margins."""
    began, rng = time.perf_counter(), np.random.default_rng([planned.seed, 1])
    inside: list[np.ndarray] = []
    whole: list[np.ndarray] = []
    failed = 0
    with interruptible() as interrupted:
        while len(inside) + failed < count and not interrupted.is_set():
            left = seconds - (time.perf_counter() - began)
            if left <= 0:
                break
            rows = subsets.drawn(planned.bound, rng)
            try:
                point = answer(planned, subsets.part(planned.bound, rows), left)
                if point is None:
                    values_there = None
                else:
                    values_there = [values(part, point)[0] for part in (subsets.part(written, rows), written)]
            except FccoError:
                values_there = None
            if (
                values_there is None
                or len(values_there[0]) != len(values_there[1])
                or not np.isfinite(values_there).all()
            ):
                failed += (
                    time.perf_counter() - began < seconds and not interrupted.is_set()
                )  # else it was not told whether
                continue
            inside.append(values_there[0])
            whole.append(values_there[1])
    if inside:
        shape = (len(inside), -1)
    else:
        shape = (0, 1)
    return Bag(
        inside=np.reshape(inside, shape),
        whole=np.reshape(whole, shape),
        failed=failed,
        seconds=time.perf_counter() - began,
    )


def answer(planned: pipeline.Planned, bound: Bound, seconds: float) -> Point | None:
    """The variables that solve a problem on other rows; None where there are none, or not in time."""
    from fccomodel import conic

    route = conic_form.planned_form(pipeline.on(planned, bound))
    if route is not None:
        outcome = conic.solve(route, seconds=seconds)
        if isinstance(outcome, str):
            return None
        return outcome.variables
    again = pipeline.plan(planned.compiled, planned.binding, planned.given, bound=bound)
    solution = pipeline.run(again, until=time.perf_counter() + seconds)[2]
    if solution.failure is not None:
        return None
    return solution.variables


def replicated(planned: pipeline.Planned, point: Point, seconds: float) -> float:
    """The one-sided bound by two replications on the rows held out; NaN where there are none, or few,
    or they make other constraints."""
    if planned.holdout is None or any(map(margins.of_rows, planned.problem.constraints)):
        return math.nan
    user_options = {
        name: entry for name, entry in planned.given.items() if name not in options.ABOUT_NEW_ROWS
    }
    sign, gaps = _sign(planned), []
    try:
        other = pipeline.elsewhere(planned)
        half = subsets.held(other, 0.5, planned.seed)
        for rows in (half, {name: ~mask for name, mask in half.items()}):
            part = subsets.part(other, rows)
            if min(part.tables[name].n for name in rows) < 2 * REPLICATED:
                return math.nan
            best = answer(
                pipeline.plan(planned.compiled, planned.binding, user_options, bound=part), part, seconds
            )
            if best is None:
                return math.nan
            gap, error = difference(part, point, best, seed=planned.seed)
            gaps.append((sign * gap, error))
    except FccoError:
        return math.nan
    return population.replicated(gaps, student(population.LEVEL, 2 * (REPLICATED - 1)))


def _sign(planned: pipeline.Planned) -> float:
    if planned.problem.objective.sense == "minimize":
        return 1.0
    return -1.0


def interval(planned: pipeline.Planned, best: Point, bag: Bag) -> population.Population:
    """The interval of the gap, ``best`` being optimal on the rows at hand."""
    sign = _sign(planned)
    if len(bag.whole):
        values_of_whole = bag.whole[:, 0]
    else:
        values_of_whole = np.zeros(0)
    least = values(planned.bound, best)[0][0]
    if len(values_of_whole):
        optimism = sign * (values_of_whole - bag.inside[:, 0])
    else:
        optimism = values_of_whole
    goal = planned.analysis.objective
    return population.population(
        sign * (values_of_whole - least),
        optimism,
        failed=bag.failed,
        seconds=bag.seconds,
        convex=(goal.convex if sign > 0 else goal.concave) and planned.analysis.convex_constraints,
        accuracy=population.ACCURACY * max(1.0, abs(float(least))),
        least=-math.inf if any(map(margins.of_rows, planned.problem.constraints)) else 0.0,
    )


# ------------------------------------------------------------------------------------------ margins
@dataclass(frozen=True, eq=False, kw_only=True)
class EstimatedMargins:
    """Margins before the problem is solved with them: ``factor`` times the ``errors`` by label;
    ``held`` as of ``Margin``."""

    factor: float
    errors: Mapping[str, float]
    untouched: Mapping[str, str]
    held: Mapping[str, float]
    bagged: bool
    bag: Bag


def estimated_margins(
    planned: pipeline.Planned, best: Point, level: float, seconds: float, count: int = ANSWERS
) -> EstimatedMargins:
    """The margins by the standard errors at the best point without any, and by answers on resampled
    rows with Bonferroni's."""
    with quoting(planned.problem.source):
        labels, untouched = margins.sampled(planned.bound)
        sure = deviations(planned.bound, best, seed=planned.seed, most=GROUPS)
        if sure.why:
            refuse(margins.no_errors(sure.why, planned.problem.objective.span))
    at = np.array([1 + sure.labels.index(label) for label in labels])
    errors = {label: float(sure.errors[k]) for label, k in zip(labels, at, strict=True)}
    at = at[sure.errors[at] > 0]
    single, first = (student(1 - (1 - level) / k, max(sure.groups, FEWEST) - 1) for k in (1, len(labels)))
    bag = bagged(tight(planned, first, errors), planned.bound, seconds, count)
    if len(bag.whole):
        missed = np.maximum(bag.whole[:, at] / sure.errors[at] + first, 0.0)
    else:
        missed = np.zeros((0, len(at)))
    missed = np.append(missed, np.full((bag.failed, len(at)), math.inf), axis=0)
    if len(at):
        together = population.above(missed.max(axis=1, initial=0.0), level)
    else:
        together = None
    if bag.failed > 1 if together is None else math.isinf(together):
        with quoting(planned.problem.source):
            refuse(margins.no_answers(bag.failed, len(missed), first, planned.problem.constraints[0].span))
    if together is None:
        factor = None
    else:
        factor = max(together, single)
    if factor is None:
        shares = {}
    else:
        shares = {sure.labels[k - 1]: float(p) for k, p in zip(at, (missed <= factor).mean(0), strict=True)}
    return EstimatedMargins(
        factor=first if factor is None else factor,
        errors=errors,
        untouched=untouched,
        held=shares,
        bagged=factor is not None,
        bag=bag,
    )


def _with_margins(
    planned: pipeline.Planned,
    progress: Callable[[Progress], None] | None,
    level: float,
    seconds: float,
    *,
    show: Sequence[ir.Let],
    sensitive: bool,
    gap: bool,
) -> pipeline.Outcome:
    """Solve without margins, find them there, and solve with them."""
    with quoting(planned.problem.source):
        margins.sampled(planned.bound)
    plain = pipeline.solve(planned, progress)
    best = plain.solution.variables
    estimate = estimated_margins(planned, best, level, seconds)
    outcome = pipeline.solve(
        tight(planned, estimate.factor, estimate.errors),
        progress,
        show=show,
        sensitive=sensitive,
    )
    reached, labels, _ = values(planned.bound, outcome.solution.variables)
    at = dict(zip(labels, reached[1:], strict=True))
    rows = {
        label: Margin(
            value=float(at[label]),
            error=error,
            margin=estimate.factor * error,
            held=estimate.held.get(label),
        )
        for label, error in estimate.errors.items()
    }
    sign = _sign(planned)
    record = Margins(
        level=level,
        factor=estimate.factor,
        how="bagging" if estimate.bagged else "Bonferroni",
        rows=rows,
        untouched=estimate.untouched,
        plain=plain.report.objective,
        cost=sign * (outcome.report.objective - plain.report.objective),
        solves=len(estimate.bag.whole),
        failed=estimate.bag.failed,
        seconds=estimate.bag.seconds,
    )
    every = {**outcome.planned.options, **_kept(planned)}
    named = dataclasses.replace(outcome.planned, compiled=planned.compiled, options=every, held=planned.held)
    return dataclasses.replace(
        outcome,
        planned=named,
        heldout=pipeline.held_out(planned, outcome.solution),
        margins=record,
        population=interval(planned, best, estimate.bag) if gap else None,
    )


def tight(planned: pipeline.Planned, factor: float, errors: Mapping[str, float]) -> pipeline.Planned:
    """The problem with margins, on the same rows, planned anew."""
    bound = margins.tightened(planned.bound, {label: factor * error for label, error in errors.items()})
    compiled = dataclasses.replace(planned.compiled, problem=bound.problem)
    user_options = {name: entry for name, entry in planned.given.items() if name not in _kept(planned)}
    return pipeline.plan(compiled, planned.binding, user_options, bound=bound)


def _kept(planned: pipeline.Planned) -> options.Origins:
    """The options that are about new rows."""
    return {name: entry for name, entry in planned.options.items() if name in options.ABOUT_NEW_ROWS}
