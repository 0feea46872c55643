"""Reports of points at which the solver found that the problem has no solution."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fccomodel.core import ir
from fccomodel.core.failure import Failure
from fccomodel.data.bound import Bound
from fccomodel.evaluation.sets import members
from fccomodel.report.verdicts.grades import FEASIBLE
from fccomodel.report.verdicts.words import first_of, rounded_down

if TYPE_CHECKING:
    from fccomodel.report import KKTReport

#: What to do about an objective without a bound.
UNBOUNDED = "Bound the variable by a constraint or a set, or add a regulariser; check the objective's sign."
#: What to do about constraints that conflict.
LOOSEN = "Loosen one of them, or give them a weight in the objective instead."
#: Conflicting constraints that a sentence names.
MOST_LABELS = 8


def failed(report: KKTReport, failure: Failure, *, convex: bool, feasible: bool = False) -> KKTReport:
    """The report of a point at which the solver found that there is no solution, by the first of
    ``RULES`` that answers. It has no gap if there is no optimal value.

    convex     whether the constraints are convex
    feasible   whether a point elsewhere meets all of them
    """
    case = _Case(report=report, failure=failure, convex=convex, feasible=feasible)
    return next(verdict for rule in RULES if (verdict := rule(case)) is not None)


@dataclass(frozen=True, kw_only=True)
class _Case:
    """A failure that a run claims, and the report on the point where it ended."""

    report: KKTReport
    failure: Failure
    convex: bool
    feasible: bool

    @property
    def violation(self) -> float:
        """The largest violation relative to its constraint's scale."""
        return self.report.relative.get("feasibility", self.report.feasibility)

    @property
    def certainty(self) -> str:
        """How certain a finding about all points is: ``estimated`` if expectations are."""
        return "proved" if self.report.exact else "estimated"

    @property
    def labels(self) -> str:
        """The constraints that conflict."""
        return first_of(list(self.failure.conflict), MOST_LABELS)

    @property
    def direction(self) -> str:
        """The direction in which the objective falls, in words: a variable that grows or falls."""
        assert self.failure.along is not None
        name, rises = self.failure.along
        return f"as `{name}` {'grows' if rises else 'falls'}"

    @property
    def seen_direction(self) -> str:
        """``direction``, after the distance at which the objective was seen to be smaller."""
        if self.failure.far:
            return f"at |w| = {self.failure.far:.0e} {self.direction}"
        return self.direction

    def unsolved(self, sentence: str, advice: str) -> KKTReport:
        """The report with a verdict that leaves open whether there is a solution."""
        verdict = f"{sentence} {advice}"
        return dataclasses.replace(self.report, verdict=verdict, advice=advice, solved=False)

    def without_solution(self, sentence: str, advice: str, name: str = "") -> KKTReport:
        """The report with a verdict that there is no solution; ``name`` of the failure if it is not that of
        the run."""
        gap = self.report.gap if self.failure.kind == "unattained" else None
        verdict = self.unsolved(sentence, advice)
        return dataclasses.replace(verdict, gap=gap, failure=name or self.failure.kind)


def _met_elsewhere(case: _Case) -> KKTReport | None:
    """The run ended at a point that violates constraints, but other points meet them."""
    if case.failure.kind != "infeasible" or not case.feasible:
        return None
    return case.unsolved(
        "Not solved yet: the run ended where a small step lowers no violation (the largest: "
        f"{case.report.feasibility:.1e}), but elsewhere points meet all constraints, which are not convex.",
        "Bound the variables by sets to where the constraints hold.",
    )


def _violated_by_the_data(case: _Case) -> KKTReport | None:
    """Constraints without variables are violated everywhere."""
    failure = case.failure
    if failure.kind != "infeasible" or not failure.fixed:
        return None
    violation = f"{max(failure.conflict.values()):.3g}"
    if len(failure.conflict) == 1:
        violated = f"has no variable, and is violated by {violation}"
    else:
        violated = f"have no variable, and are violated by up to {violation}"
    return case.without_solution(
        f"Infeasible, {case.certainty}: {case.labels} {violated}.",
        "Correct the data and params of what has no variable, or leave it out.",
    )


def _met_here(case: _Case) -> KKTReport | None:
    """The point itself meets the constraints that the run took to conflict."""
    if case.failure.kind != "infeasible" or case.violation > FEASIBLE:
        return None
    return case.report


def _with_a_surrogate(case: _Case) -> KKTReport | None:
    """Constraints conflict, and one of them is the surrogate of a probability, which asks for more."""
    replaced = [label for label in case.report.surrogates if label in case.failure.conflict]
    if case.failure.kind != "infeasible" or not replaced:
        return None
    return case.without_solution(
        "Not solved: no point was found that meets the surrogate of the probability in "
        f"{first_of([f'`{label}`' for label in replaced], MOST_LABELS)} together with the other constraints "
        f"(conflicting: {case.labels}; violations here reach {case.report.feasibility:.3g}). The probability "
        "itself may keep its bound: the notes say how often its event happens here.",
        "Take a smoothed step, `with surrogate = sigmoid, width = h`, or allow the event more often.",
        "infeasible_nearby",
    )


def _conflicting(case: _Case) -> KKTReport | None:
    """Constraints conflict: everywhere, within a radius, or as far as a local search can tell."""
    report, failure = case.report, case.failure
    if failure.kind != "infeasible":
        return None
    if failure.proved:
        least = (
            f"Constraints that conflict, by multipliers: {case.labels}. Violations here reach "
            f"{report.feasibility:.3g}."
        )
    else:
        least = (
            f"Least squares of violations leave {report.feasibility:.3g}; the constraints that conflict: "
            f"{case.labels}."
        )
    name = "infeasible_nearby"
    if max(failure.radius, failure.nearest) <= 0 or not (case.convex or failure.proved):
        sentence = f"Infeasible near this point, and constraints are not convex. {least}"
    elif math.isinf(failure.radius):
        name = "infeasible"
        sentence = f"Infeasible, {case.certainty}: every point violates a constraint. {least}"
    else:
        if failure.radius > 0:
            where = f"has |w| <= {rounded_down(failure.radius)}"
        else:
            where = f"is within {rounded_down(failure.nearest)} of this one"
        sentence = (
            f"Not solved: no feasible point {where}, {case.certainty}; further away there may "
            f"be some. {least}"
        )
    return case.without_solution(sentence, LOOSEN, name)


def _falling_where_violated(case: _Case) -> KKTReport | None:
    """The objective falls at points that violate constraints."""
    if case.violation <= FEASIBLE:
        return None
    return case.unsolved(
        "Not solved yet: the run took the objective for one that falls without end, but where it ended "
        f"({case.report.objective:.1e}) constraints are violated by {case.report.feasibility:.1e}, which "
        "proves nothing.",
        "Bound the variables by sets, or take a larger penalty (--option rho).",
    )


def _unbounded(case: _Case) -> KKTReport | None:
    """The objective falls without end, as is proved or was seen."""
    objective = f"{case.report.objective:.1e}"
    if case.failure.kind != "unbounded":
        return None
    if case.failure.proved:
        sentence = (
            f"Unbounded, {case.certainty}: the objective is {objective} here and goes on without end "
            f"along a ray of feasible points, {case.direction}."
        )
    else:
        sentence = (
            f"Unbounded as far as was seen, not proved: the objective, {objective} here, still improves "
            f"{case.seen_direction}."
        )
    return case.without_solution(sentence, UNBOUNDED)


def _unattained(case: _Case) -> KKTReport:
    """The objective falls ever more slowly."""
    return case.without_solution(
        "No solution is attained, as far as was seen: the objective still improves, ever more slowly, "
        f"{case.seen_direction}.",
        "Add a regulariser, such as 1e-4 * sumsq(w), or a bound, such as `in ball(100)`. "
        "(Separable data do this.)",
    )


#: The rules of ``failed`` in their order; each answers, or passes to the next by None.
RULES: tuple[Callable[[_Case], KKTReport | None], ...] = (
    _met_elsewhere,
    _violated_by_the_data,
    _met_here,
    _with_a_surrogate,
    _conflicting,
    _falling_where_violated,
    _unbounded,
    _unattained,
)


def unfinished(report: KKTReport, reason: str) -> KKTReport:
    """The report of a point at which a run wrongly took the objective for one that falls without end;
    unchanged if the point is solved."""
    if report.solved:
        return report
    sentence = f"{report.verdict} The run ended where the objective still fell, but {reason}."
    return dataclasses.replace(report, verdict=sentence)


def unmet(bound: Bound, report: KKTReport) -> Failure | None:
    """The failure of constraints without variables that the data violate by more than rounding: no
    point meets them. None if there are none, or if expectations are estimated, which proves nothing."""
    violations = {}
    for constraint in (c for c in bound.problem.constraints if report.exact and not ir.variables_of(c.body)):
        for label in members.of(bound, constraint).labels(constraint.label):
            row = report.constraints[label]
            if constraint.kind == "eq":
                violation = abs(row.value)
            else:
                violation = row.value
            size = 1.0
            if row.relation:
                size = max(abs(row.left or 0.0), abs(row.right or 0.0))
            if violation > FEASIBLE * size:
                violations[label] = violation
    if not violations:
        return None
    ordered = dict(sorted(violations.items(), key=lambda pair: -pair[1]))
    return Failure(kind="infeasible", conflict=ordered, fixed=True, nearest=math.inf)
