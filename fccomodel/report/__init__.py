"""The report on a point: the Karush-Kuhn-Tucker conditions of the problem as the user wrote it, over
all bound rows, in float64.

For ``minimise f(w) s.t. c_k(w) <= 0, w in X`` a point is epsilon-KKT (sonex-alexr2-2025,
Proposition 5.2) if there are multipliers nu_k >= 0 with

    dist(0, df + sum nu_k dc_k + N_X) <= epsilon,   c_k <= epsilon,   |nu_k c_k| <= epsilon.

The report chooses the multipliers, and the subgradients of functions with kinks, that minimise the
residual. Nothing here knows how the point was found.
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
from fccomodel.data.net_costs import dear
from fccomodel.data.subsets import RandomParts
from fccomodel.evaluation import memory
from fccomodel.evaluation.interpret import Evaluator
from fccomodel.evaluation.interpret.reductions import one_thread
from fccomodel.evaluation.net_outputs import Outputs
from fccomodel.evaluation.sets import members
from fccomodel.evaluation.values import sides
from fccomodel.library import identities
from fccomodel.library.identities.comonotone import comonotone_tails
from fccomodel.report.advice import Ending as Ending
from fccomodel.report.around import poles
from fccomodel.report.around.feasible_points import feasible_points as feasible_points
from fccomodel.report.around.lines import elsewhere
from fccomodel.report.around.local_search import better
from fccomodel.report.around.second_order import ACCURATE, Examined, examined
from fccomodel.report.certificates.conflicts import conflict
from fccomodel.report.certificates.gap import Gap, certify
from fccomodel.report.certificates.reach import excluded as excluded
from fccomodel.report.certificates.reach import of_feasible as of_feasible
from fccomodel.report.certificates.rounding import rounding
from fccomodel.report.errors import NOT_FINITE
from fccomodel.report.kkt.active import Qualification, Sensitivity, qualification, sensitivity
from fccomodel.report.kkt.matrices import matrix_multipliers
from fccomodel.report.kkt.optimality import MOST_NORMALS, Optimum, optimum
from fccomodel.report.new_rows import chances, subsample
from fccomodel.report.new_rows.sampling import ERRORS, StandardErrors, fresh, noise
from fccomodel.report.point.rows import Gradients, constraint_rows, gradients
from fccomodel.report.point.scales import Scales, scales
from fccomodel.report.point.system import System, inward, norm
from fccomodel.report.verdicts.failures import failed as failed
from fccomodel.report.verdicts.failures import unfinished as unfinished
from fccomodel.report.verdicts.failures import unmet as unmet
from fccomodel.report.verdicts.grades import FEASIBLE as FEASIBLE
from fccomodel.report.verdicts.grades import GOOD, Evidence, Judged, counted, counting, judge
from fccomodel.report.verdicts.notes import at_bound, cancelling, notes_of
from fccomodel.report.verdicts.sentence import Findings, loose, verdict
from fccomodel.report.verdicts.unjudged import unjudged as unjudged
from fccomodel.structure import Analysis, analyse

#: Counted seconds of the search for multipliers if no budget is given.
BUDGET_S = 60.0
#: Share of the work left that each search for better points may take.
BESIDE_SHARE = 0.25
#: Counted seconds that such a search may take in any case.
BESIDE_S = 0.05
#: Gains of less are rounding: the squares of numbers of this size are 0 in double precision.
UNDERFLOW = 1e-150
#: Constraints that ``print`` shows.
PRINTED_CONSTRAINTS = 20
AT_BOUNDS = (
    "A function has no value or gradient on a variable's bound: entries there are taken to be "
    "the nearest numbers inside"
)
LATE = "the time for this report was used up: multipliers that leave less may exist"
CUT = "this report was interrupted: multipliers that leave less may exist"


class Row(NamedTuple):
    """One constraint at a point.

    value             left minus right side
    multiplier        the best multiplier
    complementarity   ``|multiplier * value|``
    left, right       both sides as written, if one of them has no expectation, sum or net; else None
    relation          the relation between them, or ''
    """

    value: float
    multiplier: float
    complementarity: float
    left: float | None = None
    relation: str = ""
    right: float | None = None

    def __str__(self) -> str:
        """Both sides as written, or the value, and the multiplier."""
        if self.left is None or self.right is None:
            value = f"value {self.value:+.3g}"
        else:
            value = f"{self.left:.4g} {self.relation} {self.right:.4g}"
        if self.multiplier is None:
            return value
        return f"{value}, multiplier {self.multiplier:.3g}"


@dataclass(frozen=True, kw_only=True)
class KKTReport:
    """The report on a point.

    objective         as the user wrote it (also for a ``maximize``)
    constraints       by label: value (feasible if <= 0; an equality if 0), best multiplier,
                      complementarity
    matrices          by label: the multiplier of a matrix inequality as a matrix, by rows; its trace is the
                      multiplier in ``constraints``
    stationarity      the least norm of a (sub)gradient of the Lagrangian less the normals of simple
                      sets, together with ``slack``
    slack             the errors of the chosen subgradients
    feasibility       the largest violation, also of the variables' simple sets
    complementarity   the largest ``|nu_k c_k|``
    residual          the Euclidean norm of stationarity and complementarities, or the violation if
                      that is larger
    epsilon           the least number for which the point is known to be epsilon-KKT
    relative          stationarity, feasibility, complementarity and epsilon relative to the scales of
                      objective, constraints and variables (``report/point/scales.py``); the verdict
                      uses these
    solved            whether the verdict is that the point is a solution, at least roughly
    failure           why the problem has no solution, if the solver found so and the point confirms it
    own               stationarity and complementarity with the solver's own multipliers, and these;
                      None if some are not given
    gradient          the norm of the objective's gradient (or of the subgradient that attains it),
                      for scale
    exact             whether every expectation is over all rows of its table; if not, ``notes`` say
                      which are sampled, and how accurately
    gap               how far the objective can be from the optimum, if the problem is convex;
                      None on other rows
    qualification     whether the active constraints' gradients are independent; None without constraints
    sensitivity       how the optimum moves with the constraints' right sides, where it was asked for
    error             the standard error of the objective, by draws of distributions; 0 where nothing is drawn
    better            a better point, where one was found beside this one; not written
    surrogates        labels of the constraints in which a surrogate stands for a probability; not written
    """

    objective: float
    constraints: Mapping[str, Row] = field(default_factory=dict)
    matrices: Mapping[str, list[list[float]]] = field(default_factory=dict)
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
    surrogates: tuple[str, ...] = field(default=(), repr=False)
    exact: bool = True
    error: float = 0.0
    notes: tuple[str, ...] = ()
    wall_s: float = 0.0

    def __repr__(self) -> str:
        return f"<KKTReport: objective {self.objective:.6g}, {self.verdict}>"

    def __str__(self) -> str:
        """The objective, the worst constraints, the residuals and the verdict, a line each."""
        rows = sorted(self.constraints.items(), key=lambda entry: -entry[1].value)
        lines = [f"objective    {self.objective:.6g}"]
        lines += [f"{label}    {row}" for label, row in rows[:PRINTED_CONSTRAINTS]]
        if len(rows) > PRINTED_CONSTRAINTS:
            lines.append(f"{len(rows) - PRINTED_CONSTRAINTS} more constraints, whose values are smaller")
        lines += [
            f"KKT          stationarity {self.stationarity:.2g}, feasibility {self.feasibility:.2g}, "
            f"complementarity {self.complementarity:.2g}",
            f"verdict      {self.verdict}",
        ]
        if self.gap is not None:
            lines.append(f"optimum      {self.gap}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Plain numbers, texts and mappings."""
        written = dataclasses.asdict(dataclasses.replace(self, better=None)) | {
            "constraints": {label: row._asdict() for label, row in self.constraints.items()},
            "notes": list(self.notes),
        }
        del written["better"], written["surrogates"]
        return written


# Each keyword is a wish of its own, with a default; few callers have two of the same.
def report(  # noqa: PLR0913
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
    work          work for the search for the best multipliers (60 counted seconds by default); when
                  it is used up, the best so far are taken
    afford        counted seconds that passes over all rows may take; if they would take more, or if
                  the rows do not fit into memory, the report is on a random part of them, with its
                  error
    most          counted seconds that the needed passes alone may take (see ``subsample.part_for``)
    seed          of draws and random parts
    judging       the rows are not those that the point was found on: the verdict states epsilon and
                  gives no advice
    ended         how the run ended that found the point; None if nothing ran
    analysis      the problem's structure with the same data, if it is known already
    sensitive     also find how the optimum moves with the constraints' right sides

    If a value is not finite on a bound (w log w for a weight that has underflowed to 0), entries at
    their bounds are moved to the nearest numbers inside.

    Raises F0701 if the objective, a constraint or a gradient is not finite, and F0702 for a point
    that does not fit.
    """
    asked = _Asked(
        multipliers=multipliers,
        limits=limits or {},
        meter=work or Meter(BUDGET_S),
        afford=afford,
        most=most,
        seed=seed,
        judging=judging,
        ended=ended,
        analysis=analysis,
        sensitive=sensitive,
    )
    try:
        return _reported(bound, point, asked)
    except FccoError as error:
        if not any(diagnostic.code == NOT_FINITE.id for diagnostic in error.diagnostics):
            raise
        inside = inward(bound, point)
        if inside is None:
            raise
        report_inside = _reported(bound, inside, asked)
        return dataclasses.replace(report_inside, notes=(*report_inside.notes, AT_BOUNDS))


@dataclass(frozen=True, eq=False, kw_only=True)
class _Asked:
    """The arguments of ``report`` beside the problem and the point."""

    multipliers: Mapping[str, float] | None
    limits: Mapping[str, float]
    meter: Meter
    afford: float
    most: float
    seed: int
    judging: bool
    ended: Ending | None
    analysis: Analysis | None
    sensitive: bool


def _reported(written: Bound, point: Mapping[str, np.ndarray], asked: _Asked) -> KKTReport:
    """The report on all rows, or on a part of them if all take too much work or memory."""
    # many small operations: a second thread costs more than it gives
    threads = nullcontext() if written.nets else one_thread()
    with threads, Outputs().used(), np.errstate(all="ignore"):  # residuals may overflow
        began = time.perf_counter()
        bound = memory.remember(written, "report", lambda: _ordered(written)) or written
        if bound is not written:
            asked = dataclasses.replace(asked, analysis=None)
        seed, afford, most = asked.seed, asked.afford, asked.most
        parts = RandomParts(bound=bound, seed=seed)
        part = subsample.part_for(parts, point, afford=afford, most=most, late=lambda: asked.meter.late)
        part = part or subsample.part_that_fits(parts)
        report_of_point = subsample.within_memory(
            parts, part, lambda part: _on_part(bound, part, point, asked)
        )
        return dataclasses.replace(report_of_point, wall_s=time.perf_counter() - began)


def _on_part(
    bound: Bound, part: subsample.RowSample | None, point: Mapping[str, np.ndarray], asked: _Asked
) -> KKTReport:
    """The report on a part of the rows, with the errors that come from it; on all rows for None."""
    if part is None:
        return _on(bound, point, asked)
    report_of_part = _on(part.bound, point, dataclasses.replace(asked, judging=True), part.values)
    notes = [part.why]
    if part.values is None:
        room = max(asked.afford, asked.most)
        if dear(bound):
            room = asked.afford
        notes.append(subsample.errors_of(part.bound, point, asked.seed, room))
    return dataclasses.replace(report_of_part, exact=False, notes=(*notes, *report_of_part.notes))


def _on(
    rows: Bound, point: Mapping[str, np.ndarray], asked: _Asked, exact: np.ndarray | None = None
) -> KKTReport:
    """The report on these rows; ``exact`` are the objective and the constraints on all rows, if known."""
    system = System(rows, point, seed=fresh(rows.problem, asked.seed), multipliers=asked.multipliers)
    try:
        if exact is not None and len(exact) == len(system.values) + 1:
            system.state(float(exact[0]), exact[1:])
        return _report(system, asked)
    finally:
        # its graphs refer to it: without this the data would be held until they are collected
        vars(system).clear()


def _ordered(bound: Bound) -> Bound | None:
    """The functions with a tail of means and means of tails in one order, so that they have one kink; or
    None if there are no such tails.
    """
    problem = identities.after(bound.problem, comonotone_tails)
    if problem is bound.problem:
        return None
    return memory.akin(dataclasses.replace(bound, problem=problem), bound)


def _report(system: System, asked: _Asked) -> KKTReport:
    """The report on a system's point."""
    meter = asked.meter
    shared = gradients(system, meter)
    optimal, solvers = _optima(system, shared, asked)
    rows = _rows(system, optimal)
    complementarity = max((row.complementarity for row in rows.values()), default=0.0)
    feasibility = max([0.0, *system.violations, system.outside])
    stationarity, size = math.hypot(optimal.gradient, optimal.slack), _residual(system, optimal)
    epsilon = max(stationarity, feasibility, complementarity)
    parts = {"stationarity": stationarity, "feasibility": feasibility, "complementarity": complementarity}
    gradients_of_constraints = constraint_rows(system, shared)
    scale = scales(system, gradients_of_constraints, optimal.plain)
    relative, noise_of_draws = _relative(system, optimal, scale), noise(system, optimal.multipliers)
    rounded = rounding(system, meter)
    gap, convex, conflicting = None, False, None
    if not asked.judging:
        if solvers is None:
            candidates = [optimal]
        else:
            candidates = [optimal, solvers]
        analysis = asked.analysis or analyse(system.problem, system.bound)
        convex = analysis.minimised.convex and analysis.convex_constraints
        gap = certify(system, shared, analysis, candidates, meter, noise_of_draws, rounded)
    evidence = Evidence(
        relative=relative,
        gap=gap,
        size=scale.size,
        beyond=_beyond(system, optimal) / scale.of_gains,
        convex=convex,
        noise=noise_of_draws,
        errors={} if noise_of_draws is None else _errors(system, optimal, scale, noise_of_draws),
    )
    judged = judge(evidence)
    lost = 0.0 if rounded is None else rounded.objective
    judged = judged.rounded(counted(lost) / max(scale.size, abs(system.objective)))
    if not asked.judging:
        search = _Search(system, optimal, gap, scale, noise_of_draws, meter, convex)
        judged = search.judged(judged, gradients_of_constraints)
        if judged.solved and noise_of_draws is None:
            conflicting = conflict(system, gradients_of_constraints, analysis, rounded)
    findings = Findings(
        system=system,
        rows=rows,
        parts=parts,
        relative=relative,
        judged=judged,
        solvers=solvers,
        judging=asked.judging,
        ended=asked.ended,
        convex=convex,
        loose=loose(system, optimal, meter),
        noise=noise_of_draws,
        conflict=conflicting,
        unattained=_unattained(gap),
    )
    sentence, advice = verdict(findings)
    qualified, moves = None, None
    if system.labels:
        qualified = qualification(system, gradients_of_constraints, optimal)
    if system.labels and asked.sensitive:
        moves = sensitivity(system, gradients_of_constraints, optimal, meter)
    better_point = None
    if judged.better is not None and judged.better.pole is None:
        better_point = judged.better.point
    return KKTReport(
        objective=system.objective,
        constraints=rows,
        matrices=matrix_multipliers(system, optimal),
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
        qualification=qualified,
        sensitivity=moves,
        better=better_point,
        surrogates=chances.labels(system),
        exact=noise_of_draws is None,
        error=0.0 if noise_of_draws is None else noise_of_draws.objective,
        notes=(
            *chances.sentences(system),
            *at_bound(asked.multipliers or {}, asked.limits),
            *notes_of(system, optimal, noise_of_draws),
            *cancelling(system, lost),
            *_cut(meter),
        ),
    )


def _optima(system: System, shared: Gradients, asked: _Asked) -> tuple[Optimum, Optimum | None]:
    """The best multipliers, and those of the solver if all are given."""
    multipliers = asked.multipliers or {}
    solvers = None
    if system.labels and set(system.labels) <= multipliers.keys():
        solvers = optimum(system, shared, asked.meter, asked.multipliers)
    descends = shared.c is None or system.normal_count > MOST_NORMALS
    if solvers is not None and descends:
        start = solvers.unknowns
    else:
        start = None
    optimal = optimum(system, shared, asked.meter, start=start)
    if solvers is not None and _residual(system, solvers) < _residual(system, optimal):
        return solvers, solvers  # many dependent gradients: the search ended early
    return optimal, solvers


def _unattained(gap: Gap | None) -> float | None:
    """The bound of the optimum, if the point reaches it up to rounding and no point attains it."""
    if gap is None or gap.value is None or not gap.open or counted(gap.value):
        return None
    return gap.bound


def _rows(system: System, optimal: Optimum) -> dict[str, Row]:
    """The constraints by their labels."""
    each = zip(system.labels, system.values, optimal.multipliers, _written(system), strict=True)
    return {
        label: Row(float(value), float(nu), float(abs(value * nu)), *written)
        for label, value, nu, written in each
    }


class _Search:
    """Searches for better points around a point that the conditions call solved."""

    def __init__(
        self,
        system: System,
        optimal: Optimum,
        gap: Gap | None,
        scale: Scales,
        drawn: StandardErrors | None,
        meter: Meter,
        convex: bool,
    ):
        self.system, self.optimal, self.gap, self.scale = system, optimal, gap, scale
        self.meter, self.convex = meter, convex
        self.least_gain = UNDERFLOW
        if drawn is not None:
            self.least_gain = max(GOOD * scale.objective, ERRORS * drawn.objective)

    def judged(self, judged: Judged, rows: np.ndarray | None) -> Judged:
        """The judgement after all searches; ``rows`` are the gradients of the constraints."""
        system, optimal, gap, scale = self.system, self.optimal, self.gap, self.scale
        gain = max(GOOD * scale.ordinary_size, self.least_gain)
        counts = max(counting(scale.objective, system.objective), self.least_gain)
        if judged.unsure(gap, scale.size):
            pole = poles.beside(system, counts, _beside(self.meter))
            judged = judged.beside(pole or better(system, optimal.lagrangian, gain, self.meter))
        if judged.better is None and judged.unsure(gap, counts * ACCURATE / GOOD):
            neighbourhood = examined(system, optimal, rows, counts, _beside(self.meter), convex=self.convex)
            judged = judged.after(neighbourhood, counts, convex=self.convex)
        if not self.convex and judged.unsure(gap, scale.size):
            judged = self._far(judged, counts)
            judged = dataclasses.replace(judged, local=True)
        return judged

    def _far(self, judged: Judged, counts: float) -> Judged:
        """The judgement after a search on lines through the point, far away too; gains of at least
        ``counts`` say that the point is not best, and smaller ones that its accuracy is not high."""
        fine = counts if self.system.evaluator.sampled else counts * ACCURATE
        if judged.better is not None:
            return judged
        other_point = elsewhere(self.system, fine, _beside(self.meter))
        return judged.after(Examined(better=other_point), counts, convex=False)


def _beside(meter: Meter) -> Meter:
    """The work for one search beside a point: a share of the work left, and a little even after the
    clock's end."""
    return Meter(max(BESIDE_SHARE * meter.left, BESIDE_S), stop=meter.stop)


def _cut(meter: Meter) -> list[str]:
    """A note if the search did not come to its end, and why."""
    if meter.timed:
        return [CUT if meter.stop() else LATE]
    return []


def _written(system: System) -> Iterator[tuple[float | None, str, float | None]]:
    """Both sides of every constraint and the relation between them."""
    evaluator, start = Evaluator(system.bound, system.point, seed=system.seed), 0
    for constraint in system.problem.constraints:
        values = system.values[start : start + len(members.of(system.bound, constraint))]
        start += len(values)
        both = sides(evaluator, constraint, values)
        if both is None:
            relation = constraint.written[1] if constraint.of_matrices else ""
            yield from ((None, relation, None) for _ in values)
            continue
        relation, lefts, rights = both
        for left, right in zip(lefts.tolist(), rights.tolist(), strict=True):
            yield left, relation, right


def _residual(system: System, optimal: Optimum) -> float:
    """Stationarity and complementarity in one number."""
    products = (float(v * nu) for v, nu in zip(system.values, optimal.multipliers, strict=True))
    return norm(np.array([optimal.gradient, optimal.slack, *products]))


def _beyond(system: System, optimal: Optimum) -> float:
    """The worth of the violations by their multipliers: how much better the objective is than feasible
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


def _errors(system: System, optimal: Optimum, scale: Scales, drawn: StandardErrors) -> dict[str, float]:
    """The standard errors of the three residuals, relative to the scales."""
    products = np.abs(drawn.constraints * optimal.multipliers) / scale.objective
    return {
        "stationarity": drawn.slope * float(np.max(scale.variables, initial=1.0)) / scale.objective,
        "feasibility": float((drawn.constraints / scale.constraints).max(initial=0.0)),
        "complementarity": float(products.max(initial=0.0)),
    }


def _with_solvers(system: System, optimal: Optimum) -> dict[str, Any]:
    """The residuals with the solver's own multipliers, as the report's ``own``."""
    pairs = zip(system.values, optimal.multipliers, strict=True)
    products = (abs(float(value * nu)) for value, nu in pairs)
    return {
        "stationarity": math.hypot(optimal.gradient, optimal.slack),
        "complementarity": max(products, default=0.0),
        "multipliers": {
            label: float(nu) for label, nu in zip(system.labels, optimal.multipliers, strict=True)
        },
    }
