"""How good is a point? The Karush-Kuhn-Tucker conditions of the problem as the user wrote it, over all
bound rows, in float64.

For ``minimise f(w) s.t. c_k(w) <= 0, w in X`` a point is epsilon-KKT (sonex-alexr2-2025,
Proposition 5.2) if there are multipliers nu_k >= 0 with ``dist(0, df + sum nu_k dc_k + N_X) <=
epsilon``, ``c_k <= epsilon`` and ``|nu_k c_k| <= epsilon``. The multipliers, and the subgradients
of functions with kinks, are those that make the residual least. Nothing here knows how the point
was found.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from fccomodel.core.diagnostics import FccoError
from fccomodel.core.work import Meter
from fccomodel.data.bound import Bound
from fccomodel.data.nets.cost import dear
from fccomodel.evaluation import memory
from fccomodel.evaluation.interpret import Evaluator
from fccomodel.evaluation.interpret.reductions import one_thread
from fccomodel.evaluation.sets import members
from fccomodel.evaluation.values import sides
from fccomodel.library import identities
from fccomodel.library.identities.comonotone import comonotone_tails
from fccomodel.report.advice import Ending as Ending
from fccomodel.report.around import poles
from fccomodel.report.around.local_search import better
from fccomodel.report.around.local_search import somewhere_feasible as somewhere_feasible
from fccomodel.report.around.second_order import ACCURATE, examined
from fccomodel.report.certificates.gap import Gap, certify
from fccomodel.report.certificates.reach import excluded as excluded
from fccomodel.report.certificates.reach import of_feasible as of_feasible
from fccomodel.report.certificates.rounding import rounding
from fccomodel.report.errors import NOT_FINITE
from fccomodel.report.kkt.active import Qualification, Sensitivity, qualification, sensitivity
from fccomodel.report.kkt.optimality import Optimum, optimum
from fccomodel.report.new_rows import subsample
from fccomodel.report.new_rows.sampling import ERRORS, Noise, fresh, noise
from fccomodel.report.point.rows import constraint_rows, gradients
from fccomodel.report.point.scales import Scales, scales
from fccomodel.report.point.system import System, inward, norm
from fccomodel.report.verdicts import FEASIBLE as FEASIBLE
from fccomodel.report.verdicts import (
    GOOD,
    at_bound,
    cancelling,
    counted,
    counting,
    judge,
    loose,
    notes_of,
    verdict,
)
from fccomodel.report.verdicts import failed as failed
from fccomodel.report.verdicts import unfinished as unfinished
from fccomodel.report.verdicts import unmet as unmet
from fccomodel.structure import Analysis, analyse

#: Counted seconds of a report by itself; what is said of one that the clock has cut short, or a person.
BUDGET_S = 60.0
#: The share of a report's work that each search for better points beside a point may take, and
#: counted seconds in any case.
BESIDE_SHARE = 0.25
BESIDE_S = 0.05
AT_BOUNDS = (
    "A function has no value or gradient on a variable's bound: entries there are taken to be "
    "the nearest numbers inside"
)
LATE = "the time for this report was used up: multipliers that leave less may exist"
CUT = "this report was interrupted: multipliers that leave less may exist"


class Row(NamedTuple):
    """One constraint: its value (left minus right side), its multiplier, and ``|multiplier * value|``;
    both sides as written and the relation between them, where one of them has no expectation, sum
    or net."""

    value: float
    multiplier: float
    complementarity: float
    left: float | None = None
    relation: str = ""
    right: float | None = None


@dataclass(frozen=True, kw_only=True)
class KKTReport:
    """What holds at a point.

    objective         as the user wrote it (of a ``maximize`` too)
    constraints       by label: value (feasible when <= 0, of an equality when 0), best multiplier,
                      complementarity
    stationarity      the least norm of a (sub)gradient of the Lagrangian less the normals of simple
                      sets, with what its
                      subgradients miss of the functions' values (``slack``)
    feasibility       the largest violation, of the variables' simple sets too
    complementarity   the largest ``|nu_k c_k|``
    residual          the Euclidean norm of stationarity and complementarities, or the violation
                      where that is larger
    epsilon           the least number for which the point is known to be epsilon-KKT
    relative          stationarity, feasibility, complementarity and epsilon relative to the scales
                      of objective, constraints and
                      variables (``report/point/scales.py``): by these the verdict judges
    solved            the verdict is that the point is a solution, at least roughly
    failure           why the problem has no solution, where the solver found so and the point bears it out
    own               stationarity and complementarity with the solver's own multipliers, and those;
                      None where some are not given
    gradient          the norm of the objective's gradient (or of the subgradient that attains it)
                      alone, for scale
    exact             every expectation is over all rows of its table; else ``notes`` say which are
                      sampled, and how accurately
    gap               how far the objective can be from the optimum, where the problem is convex;
                      None on other rows
    qualification     whether the active constraints' gradients are independent; None without constraints
    sensitivity       how the optimum moves with the constraints' right sides, where it was asked for
    error             the standard error of the objective, by draws of distributions; 0 where nothing is drawn
    better            a better point, where one was found beside this one; not written
    """

    objective: float
    constraints: Mapping[str, Row] = field(default_factory=dict)
    stationarity: float
    feasibility: float
    complementarity: float
    slack: float
    residual: float
    epsilon: float
    verdict: str
    relative: Mapping[str, float] = field(default_factory=dict)
    solved: bool = False
    failure: str = ""
    advice: str = ""
    own: Mapping[str, Any] | None = None
    gradient: float = 0.0
    gap: Gap | None = None
    qualification: Qualification | None = None
    sensitivity: Sensitivity | None = None
    better: Mapping[str, np.ndarray] | None = field(default=None, repr=False)
    exact: bool = True
    error: float = 0.0
    notes: tuple[str, ...] = ()
    wall_s: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Plain numbers, texts and mappings."""
        written = dataclasses.asdict(dataclasses.replace(self, better=None)) | {
            "constraints": {label: row._asdict() for label, row in self.constraints.items()},
            "notes": list(self.notes),
        }
        del written["better"]
        return written


def report(
    bound: Bound,
    point: Mapping[str, np.ndarray],
    *,
    multipliers: Mapping[str, float] | None = None,
    limits: Mapping[str, float] | None = None,
    work: Meter | None = None,
    afford: float = math.inf,
    most: float = 0.0,
    seed: int = 0,
    judging: bool = False,
    ended: Ending | None = None,
    analysis: Analysis | None = None,
    sensitive: bool = False,
) -> KKTReport:
    """The KKT report of a point (variables by the model's names; a net's parameters flat).

    multipliers   the solver's own, by constraint label; they are judged separately
    limits        the largest multipliers that the solver's penalties allow, by constraint (a family
                  as a whole)
    judging       the rows are not those that the point was found on: the verdict states epsilon,
                  and advises nothing
    ended         how the run ended that found the point; None: nothing ran
    analysis      the problem's structure with the same data, where it is known already
    sensitive     find how the optimum moves with the constraints' right sides too
    afford        counted seconds that passes over all rows may take: where they would take more,
                  and where the rows cannot be
                  held together, the report is on a random part of them, with its error
    most          counted seconds that the passes alone which it needs may take (see ``estimated.part_for``)
    work          what the search for the best multipliers may take (60 counted seconds unless
                  given); then, the best found so far

    Where a value is not finite on a bound (w log w, of a weight that has underflowed to 0), entries
    at their bounds are taken to be the nearest numbers inside.

    Raises F0701 where the objective, a constraint or a gradient is not finite, F0702 for a point
    that does not fit.
    """

    def at(point: Mapping[str, np.ndarray]) -> KKTReport:
        return _reported(
            bound,
            point,
            multipliers,
            limits or {},
            work or Meter(BUDGET_S),
            afford,
            most,
            seed,
            judging,
            ended,
            analysis,
            sensitive,
        )

    try:
        return at(point)
    except FccoError as error:
        if (
            not any(d.code == NOT_FINITE.id for d in error.diagnostics)
            or (inside := inward(bound, point)) is None
        ):
            raise
        found = at(inside)
        return dataclasses.replace(found, notes=(*found.notes, AT_BOUNDS))


def _reported(
    bound: Bound,
    point: Mapping[str, np.ndarray],
    multipliers: Mapping[str, float] | None,
    limits: Mapping[str, float],
    meter: Meter,
    afford: float,
    most: float,
    seed: int,
    judging: bool,
    ended: Ending | None,
    analysis: Analysis | None,
    sensitive: bool,
) -> KKTReport:
    threads = (
        nullcontext() if bound.nets else one_thread()
    )  # many small operations: a second thread costs more than it gives
    with threads, np.errstate(all="ignore"):  # residuals beyond double precision are infinite
        began, written = time.perf_counter(), bound
        bound = memory.remember(written, "report", lambda: _ordered(written)) or written
        analysis = analysis if bound is written else None

        def on(rows: Bound, judging: bool, exact: np.ndarray | None = None) -> KKTReport:
            system = System(rows, point, seed=fresh(rows.problem, seed), multipliers=multipliers)
            try:
                if exact is not None and len(exact) == len(system.values) + 1:
                    system.state(float(exact[0]), exact[1:])
                return _report(system, multipliers, limits, meter, judging, ended, analysis, sensitive)
            finally:
                vars(
                    system
                ).clear()  # its graphs refer to it, and the data would be held until they are collected

        part = subsample.part_for(bound, point, seed=seed, afford=afford, most=most)
        try:
            if part is None:
                found = on(bound, judging)
            else:
                found = on(part.bound, True, part.values)
        except FccoError as error:
            if part is not None or (part := subsample.part_after(bound, error, seed=seed)) is None:
                raise
            found = on(part.bound, True)
        if part is not None:
            room = afford if dear(bound) else max(afford, most)
            errors = () if part.values is not None else (subsample.errors_of(part.bound, point, seed, room),)
            found = dataclasses.replace(found, exact=False, notes=(part.why, *errors, *found.notes))
        return dataclasses.replace(found, wall_s=time.perf_counter() - began)


def _ordered(bound: Bound) -> Bound | None:
    """The same functions, with one tail of means for means of tails in one order: kinks that all
    change at once are one kink. None where there is nothing of this kind."""
    problem = identities.after(bound.problem, comonotone_tails)
    if problem is bound.problem:
        return None
    return memory.akin(dataclasses.replace(bound, problem=problem), bound)


def _report(
    system: System,
    multipliers: Mapping[str, float] | None,
    limits: Mapping[str, float],
    meter: Meter,
    judging: bool,
    ended: Ending | None,
    analysis: Analysis | None,
    sensitive: bool,
) -> KKTReport:
    shared = gradients(system, meter)
    complete = bool(system.labels) and set(system.labels) <= (multipliers or {}).keys()
    if complete:
        solvers = optimum(system, shared, meter, multipliers)
    else:
        solvers = None
    optimal = optimum(
        system, shared, meter, start=None if solvers is None or shared.c is not None else solvers.unknowns
    )
    if solvers is not None and _residual(system, solvers) < _residual(system, optimal):
        # Many dependent gradients: the search ended early.
        optimal = solvers
    rows = {
        label: Row(float(value), float(nu), float(abs(value * nu)), *written)
        for label, value, nu, written in zip(
            system.labels, system.values, optimal.multipliers, _written(system), strict=True
        )
    }
    complementarity = max((row.complementarity for row in rows.values()), default=0.0)
    feasibility = max([0.0, *system.violations, system.outside])
    stationarity, size = math.hypot(optimal.gradient, optimal.slack), _residual(system, optimal)
    epsilon = max(stationarity, feasibility, complementarity)
    parts = {"stationarity": stationarity, "feasibility": feasibility, "complementarity": complementarity}
    gradients_of_constraints = constraint_rows(system, shared)
    scale = scales(system, gradients_of_constraints, optimal.plain)
    relative, errors, drawn = _relative(system, optimal, scale), None, noise(system, optimal.multipliers)
    if drawn is not None:
        errors = _errors(system, optimal, scale, drawn)
    gap, convex, rounded = None, False, rounding(system, meter)
    if not judging:
        if solvers is None:
            candidates = [optimal]
        else:
            candidates = [optimal, solvers]
        analysis = analysis or analyse(system.problem, system.bound)
        convex = analysis.minimised.convex and analysis.convex_constraints
        gap = certify(system, shared, analysis, candidates, meter, drawn, rounded)
    judged = judge(
        relative, gap, scale.size, _beyond(system, optimal) / scale.objective, drawn, errors, convex=convex
    )
    lost = 0.0 if rounded is None else rounded.objective
    judged = judged.rounded(counted(lost) / max(scale.size, abs(system.objective)))
    if drawn is None:
        least_gain = 0.0
    else:
        least_gain = max(GOOD * scale.objective, ERRORS * drawn.objective)
    gain = max(GOOD * scale.ordinary_size, least_gain)
    counts = max(counting(scale.objective, system.objective), least_gain)
    if not judging and judged.unsure(gap, scale.size):
        pole = poles.beside(system, counts, _beside(meter))
        judged = judged.beside(pole or better(system, optimal.lagrangian, gain, meter))
    if not judging and judged.better is None and judged.unsure(gap, counts * ACCURATE / GOOD):
        seen = examined(system, optimal, gradients_of_constraints, counts, _beside(meter), convex=convex)
        judged = judged.after(seen, counts, convex=convex)
    sentence, advice = verdict(
        system,
        rows,
        parts,
        relative,
        judged,
        solvers,
        judging=judging,
        ended=ended,
        convex=convex,
        loose=loose(system, optimal, meter),
        noise=drawn,
    )
    return KKTReport(
        objective=system.objective,
        constraints=rows,
        stationarity=stationarity,
        feasibility=feasibility,
        complementarity=complementarity,
        slack=optimal.slack,
        residual=max(size, feasibility),
        epsilon=epsilon,
        relative={**relative, "epsilon": max(relative.values())},
        verdict=sentence,
        solved=judged.solved,
        advice=advice,
        own=None if solvers is None else _with_solvers(system, solvers),
        gradient=optimal.plain,
        gap=gap,
        qualification=qualification(system, gradients_of_constraints, optimal) if system.labels else None,
        sensitivity=sensitivity(system, gradients_of_constraints, optimal, meter)
        if sensitive and system.labels
        else None,
        better=None if judged.better is None or judged.better.pole is not None else judged.better.point,
        exact=drawn is None,
        error=0.0 if drawn is None else drawn.objective,
        notes=(
            *at_bound(multipliers or {}, limits),
            *notes_of(system, optimal, drawn),
            *cancelling(system, lost),
            *_cut(meter),
        ),
    )


def _beside(meter: Meter) -> Meter:
    """A share of the work left for one of the searches beside a point, and a little in any case, also
    after the clock's end."""
    return Meter(max(BESIDE_SHARE * meter.left, BESIDE_S), stop=meter.stop)


def _cut(meter: Meter) -> list[str]:
    """That the search has not come to its end, and why."""
    if meter.timed:
        return [CUT if meter.stop() else LATE]
    return []


def _written(system: System) -> Iterator[tuple[float | None, str, float | None]]:
    """Both sides of every constraint with the relation between them."""
    evaluator, start = Evaluator(system.bound, system.point, seed=system.seed), 0
    for constraint in system.problem.constraints:
        values = system.values[start : start + len(members.of(system.bound, constraint))]
        start += len(values)
        found = sides(evaluator, constraint, values)
        if found is None:
            yield from ((None, "", None) for _ in values)
        else:
            yield from (
                (left, found[0], right)
                for left, right in zip(found[1].tolist(), found[2].tolist(), strict=True)
            )


def _residual(system: System, optimal: Optimum) -> float:
    """Stationarity and complementarity in one number."""
    products = (float(v * nu) for v, nu in zip(system.values, optimal.multipliers, strict=True))
    return norm(np.array([optimal.gradient, optimal.slack, *products]))


def _beyond(system: System, optimal: Optimum) -> float:
    """What violations are worth by their multipliers: by so much the objective is better than feasible
    points allow."""
    worth = np.abs(np.maximum(np.array(system.violations), 0.0) * optimal.multipliers)
    return float(np.nan_to_num(worth).sum())


def _relative(system: System, optimal: Optimum, scale: Scales) -> dict[str, float]:
    """The three residuals relative to the scales."""
    slope = norm(system.tangent(optimal.lagrangian) * scale.variables)
    violations = np.maximum(np.array(system.violations), 0.0) / scale.constraints
    outside = system.outside / float(np.max(scale.variables, initial=1.0))
    products = np.abs(system.values * optimal.multipliers) / scale.objective
    return {
        "stationarity": math.hypot(slope, optimal.slack) / scale.objective,
        "feasibility": max(outside, float(violations.max(initial=0.0))),
        "complementarity": float(products.max(initial=0.0)),
    }


def _errors(system: System, optimal: Optimum, scale: Scales, drawn: Noise) -> dict[str, float]:
    """The standard errors of the three residuals, relative to the scales."""
    products = np.abs(drawn.constraints * optimal.multipliers) / scale.objective
    return {
        "stationarity": drawn.slope * float(np.max(scale.variables, initial=1.0)) / scale.objective,
        "feasibility": float((drawn.constraints / scale.constraints).max(initial=0.0)),
        "complementarity": float(products.max(initial=0.0)),
    }


def _with_solvers(system: System, optimal: Optimum) -> dict[str, Any]:
    products = (abs(float(v * nu)) for v, nu in zip(system.values, optimal.multipliers, strict=True))
    return {
        "stationarity": math.hypot(optimal.gradient, optimal.slack),
        "complementarity": max(products, default=0.0),
        "multipliers": {
            label: float(nu) for label, nu in zip(system.labels, optimal.multipliers, strict=True)
        },
    }
