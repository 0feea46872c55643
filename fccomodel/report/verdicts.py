"""The report in words: one line of verdict, advice if it is not good enough, and notes on what was
sampled, assumed or bounded."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fccomodel.core import ir
from fccomodel.core.failure import Failure
from fccomodel.core.work import Meter
from fccomodel.data import nets
from fccomodel.data.bound import Bound
from fccomodel.data.drawn import drawn
from fccomodel.evaluation.sets import members
from fccomodel.report import advice as advising
from fccomodel.report.advice import Ending
from fccomodel.report.around.local_search import Better
from fccomodel.report.around.second_order import Examined
from fccomodel.report.certificates.gap import Gap
from fccomodel.report.kkt.optimality import Optimum
from fccomodel.report.new_rows.sampling import ERRORS, Noise
from fccomodel.report.point import recording
from fccomodel.report.point.system import System

if TYPE_CHECKING:
    from fccomodel.report import KKTReport, Row

#: Grades of a point, each with the largest relative residual up to which it is given.
GRADES: tuple[tuple[float, str], ...] = (
    (1e-6, "Solved to high accuracy"),
    (1e-3, "Solved"),
    (1e-2, "Solved roughly"),
    (math.inf, "Not solved yet"),
)
#: Relative residual or gap up to which a point is good.
GOOD = 1e-3
#: Violation, relative to its constraint's scale, up to which a point counts as feasible if the objective
#: is said to fall without end.
FEASIBLE = 1e-6
#: The grade of a point that meets the conditions if the proved bound of the gap is large.
OPEN = "Nearly stationary, but perhaps not solved"
#: The grade of a point that meets the conditions if a better point was found.
BEATEN = "Stationary, but not best"
#: The grade of a point that meets first-order conditions if a direction of descent of higher order
#: was found.
SADDLE = "A saddle point"
#: The grades for a problem that is not convex if its curvature could not be examined.
FIRST_ORDER: Mapping[str, str] = {
    "Solved to high accuracy": "Stationary to high accuracy",
    "Solved": "Stationary",
    "Solved roughly": "Roughly stationary",
}
#: The grades for a problem that is not proved convex, of a point that no gap proves to be best.
LOCAL: Mapping[str, str] = {
    "Solved to high accuracy": "Solved locally to high accuracy",
    "Solved": "Solved locally",
    "Solved roughly": "Solved locally, roughly",
}
#: Size of the numbers in a column from which on the column is named if terms cancel.
LARGE_COLUMN = 1e3
#: The least size of an objective to which gains are relative.
LEAST_OBJECTIVE = 1e-2
#: Share of a penalty's bound from which on a multiplier counts as being at the bound.
NEARLY = 0.99
#: Gap, or rounding in an objective, up to which it counts as 0, whatever the size of the objective.
NO_GAP = 1e-12
#: Argument of a root up to which it counts as 0.
NO_ROOT = 1e-12
#: Grades of an estimate, each with the largest standard error of the objective, relative to its size,
#: and of the constraints, up to which it is given.
ESTIMATES: tuple[tuple[float, str], ...] = (
    (1e-2, "Solved"),
    (1e-1, "Solved roughly"),
    (math.inf, "Not solved yet"),
)
#: What to do about an objective without a bound.
UNBOUNDED = "Bound the variable by a constraint or a set, or add a regulariser; check the objective's sign."


@dataclass(frozen=True, kw_only=True)
class Judged:
    """The grade of a point, and what decided it.

    by_gap       whether a small gap gave a better grade
    missing      how much better the optimum may be, if that decides the grade; else 0
    estimated    whether expectations are over draws: nothing is proved of the distribution
    loose        how much better the optimum may be, if the bound is too weak to decide the grade; else 0
    better       a better point, or None
    first_order  why only first-order conditions are known of a problem that is not convex; "" otherwise
    lost         whether rounding decides the grade
    local        whether better points may exist far away: the problem is not proved convex, and no gap
                 proves the point to be best
    """

    grade: str
    by_gap: bool = False
    missing: float = 0.0
    estimated: bool = False
    loose: float = 0.0
    better: Better | None = None
    first_order: str = ""
    lost: bool = False
    local: bool = False

    @property
    def solved(self) -> bool:
        """Whether the grade says solved, at least roughly."""
        return self.grade.startswith("Solved")

    def unsure(self, gap: Gap | None, size: float) -> bool:
        """Whether the conditions call the point solved, and no gap proves it for an objective of this
        size."""
        if not self.solved and self.grade != OPEN:
            return False
        if gap is None or gap.value is None:
            return True
        return gap.value >= 0 and counted(gap.value) > GOOD * size

    def beside(self, better: Better | None) -> Judged:
        """The judgement with a better point, if there is one."""
        if better is None:
            return self
        return replace(self, grade=SADDLE if better.saddle else BEATEN, better=better, by_gap=False)

    def rounded(self, share: float) -> Judged:
        """The judgement with a grade that rounding allows; rounding may be this share of the objective."""
        grades = [text for _, text in GRADES]
        allowed = _grade(share)
        if not self.solved or grades.index(allowed) <= grades.index(self.grade):
            return self
        return replace(self, grade=allowed, by_gap=False, lost=True)

    def after(self, examined: Examined, counts: float, *, convex: bool) -> Judged:
        """The judgement with what curvature shows. A gain below ``counts`` only takes high accuracy
        back, and means nothing beside the errors of draws."""
        if examined.why and not convex:
            return replace(self, first_order=examined.why)
        if examined.why and self.loose:
            return replace(self, grade=self._not_highly_accurate)
        if examined.better is None or examined.better.gain >= counts:
            return self.beside(examined.better)
        if self.estimated:
            return self
        return replace(self, grade=self._not_highly_accurate, better=examined.better)

    @property
    def _not_highly_accurate(self) -> str:
        """The grade, or the one below high accuracy if that is lower."""
        if self.grade == OPEN:
            return self.grade
        grades = [text for _, text in GRADES]
        return max(self.grade, grades[1], key=grades.index)

    @property
    def words(self) -> str:
        """The grade as the verdict says it."""
        if self.first_order:
            return FIRST_ORDER.get(self.grade, self.grade)
        if self.local:
            return LOCAL.get(self.grade, self.grade)
        return self.grade


def counting(weight: float, objective: float) -> float:
    """The least gain that counts: ``GOOD`` times the smaller of the objective and its scale ``weight``."""
    return GOOD * min(weight, max(abs(objective), LEAST_OBJECTIVE))


def judge(
    relative: Mapping[str, float],
    gap: Gap | None,
    size: float,
    beyond: float = 0.0,
    noise: Noise | None = None,
    errors: Mapping[str, float] | None = None,
    *,
    convex: bool = False,
) -> Judged:
    """The grade from the relative residuals and from the gap.

    A large gap takes a good grade back, and a small one makes a grade good. A loose gap is no
    evidence against the point of a ``convex`` problem, and the verdict says so.

    size    size of the objective, to which gaps are relative
    beyond  how much the objective gains by violations, relative too; large, and perhaps larger than
            it says, if gradients of constraints nearly vanish
    noise   the standard errors of a problem that draws, or None
    errors  the standard errors of the residuals, as ``relative`` has these. Residuals within their
            errors count as 0, and no grade is better than the errors allow
    """
    if noise is not None:
        return _judged_on_draws(relative, gap, size, beyond, noise, errors or {})
    grades = [text for _, text in GRADES]
    grade = _grade(max(relative.values()))
    if gap is not None and gap.value is not None:
        by_gap = _grade(max(abs(gap.value) / size, beyond, relative["feasibility"]))
        if grades.index(by_gap) < grades.index(grade):
            return Judged(grade=by_gap, by_gap=True)
    if beyond > GOOD:
        return Judged(grade=grades[-1])
    if gap is None or gap.value is None or not _large(gap, size) or grade == grades[-1]:
        return Judged(grade=grade)
    if gap.loose:
        return Judged(grade=grade, loose=gap.value if convex else 0.0)
    if gap.value <= GRADES[2][0] * size:
        return Judged(grade=max(grade, grades[2], key=grades.index), missing=gap.value)
    return Judged(grade=OPEN, missing=gap.value)


def counted(difference: float) -> float:
    """The size of a gap, or of rounding in an objective, less what counts as 0 in any units."""
    return max(abs(difference) - NO_GAP, 0.0)


def _large(gap: Gap, size: float) -> bool:
    """Whether a gap is positive and not good for an objective of this size."""
    return gap.value is not None and gap.value >= 0 and counted(gap.value) > GOOD * size


def _grade(epsilon: float, grades: tuple[tuple[float, str], ...] = GRADES) -> str:
    """The best grade for this residual."""
    return next((text for limit, text in grades if epsilon <= limit), grades[-1][1])


def _judged_on_draws(
    relative: Mapping[str, float],
    gap: Gap | None,
    size: float,
    beyond: float,
    noise: Noise,
    errors: Mapping[str, float],
) -> Judged:
    """The grade of an estimate: from the residuals beyond their standard errors, and no better than
    the errors allow."""
    grades = [text for _, text in GRADES]
    excess = {name: max(0.0, value - ERRORS * errors.get(name, 0.0)) for name, value in relative.items()}
    allowed = _grade(max(noise.objective / size, errors.get("feasibility", 0.0)), ESTIMATES)
    grade, by_gap = _grade(max(excess.values())), False
    if gap is not None and gap.value is not None:
        of_gap = _grade(max(abs(gap.value) / size, excess["feasibility"]))
        by_gap = grades.index(of_gap) < grades.index(grade)
        if by_gap:
            grade = of_gap
        elif not gap.loose and _large(gap, size) and grade != grades[-1]:
            return Judged(grade=OPEN, missing=gap.value, estimated=True)
    if beyond > GOOD and not by_gap and excess["feasibility"] > 0:
        grade = grades[-1]
    return Judged(grade=max(grade, allowed, key=grades.index), by_gap=by_gap, estimated=True)


def verdict(
    system: System,
    rows: Mapping[str, Row],
    parts: Mapping[str, float],
    relative: Mapping[str, float],
    judged: Judged,
    solvers: Optimum | None,
    *,
    judging: bool = False,
    ended: Ending | None = None,
    convex: bool = False,
    loose: str = "",
    noise: Noise | None = None,
) -> tuple[str, str]:
    """(one line, advice): the epsilon for which the point is epsilon-KKT, what decides it, and what
    would lower it.

    parts      the three residuals; ``relative`` to the scales
    judging    the rows are not those that the point was found on: no grade and no advice
    loose      why the stationarity may be less than it says, or ""
    """
    epsilon, share = max(parts.values()), max(relative.values())
    grade = "On these rows" if judging else judged.words
    name = max(relative, key=lambda key: relative[key])
    decided = ""
    if system.labels or system.projected:
        decided = f", decided by {name}{_where(system, rows, name)}"
    scaled = ""
    if not _alike(epsilon, share):
        scaled = f", {share:.1e} relative to the problem's scales"
    opened = ""
    if judged.missing and not judging:
        opened = f"; the optimum may be up to {judged.missing:.1e} better"
    elif judged.loose and not judging and judged.better is None:
        opened = f"; proved is only that the optimum is at most {judged.loose:.1e} better"
    if judged.better is not None and not judging:
        opened += _beaten(system, judged.better)
    elif judged.first_order and not judging:
        opened += f"; whether it is a saddle is not known: {judged.first_order}"
    if judged.by_gap and not judging:
        if judged.estimated:
            grade += ", by the estimated gap"
        else:
            grade += ", by the proved gap"
    elif noise is not None:
        grade += ", estimated"
    if noise is not None:
        opened += f"; of {noise.count:,} draws, the standard error of the objective is {noise.objective:.1e}"
    sentence = f"{grade}: an ε-KKT point with ε = {epsilon:.1e}{scaled}{decided}{opened}."
    good = judged.solved and (share <= GOOD or judged.by_gap or judged.estimated) and not judged.lost
    advice = ""
    if not judging and not good:
        advice = _advice(system, name, solvers, parts["stationarity"], judged, ended, convex, loose)
    if advice and math.isinf(max(epsilon, share)):
        advice = advising.BEYOND
    if advice:
        sentence = f"{sentence} {advice}"
    return sentence, advice


def _beaten(system: System, better: Better) -> str:
    """The words for a better point: where it is, and its gain."""
    if better.saddle:
        falls = "falls" if system.sign > 0 else "rises"
        return f"; {better.where} the objective {falls} by {better.gain:.1e}"
    if better.pole is not None:
        near = f" ({_quoted(system, better.pole)})"
    else:
        near = ""
    if better.endless:
        falls = "falls" if system.sign > 0 else "rises"
        return f"; the objective {falls} without end {better.where}{near}"
    return f"; a feasible point {better.where}{near} is better by {better.gain:.1e}"


def _alike(a: float, b: float) -> bool:
    """Whether two numbers agree to a tenth."""
    return a == b or abs(a - b) <= 0.1 * max(a, b)


def _where(system: System, rows: Mapping[str, Row], name: str) -> str:
    """The constraint that decides a residual, in parentheses."""
    if name == "feasibility":
        if system.outside >= max(system.violations, default=0.0):
            return " (a variable is outside its set)"
        return f" ({system.labels[int(np.argmax(system.violations))]})"
    if name == "complementarity":
        return f" ({max(rows, key=lambda label: rows[label].complementarity)})"
    return ""


def _advice(
    system: System,
    name: str,
    solvers: Optimum | None,
    stationarity: float,
    judged: Judged,
    ended: Ending | None,
    convex: bool,
    loose: str,
) -> str:
    """The advice for a point that is not good; ``name`` is the largest residual."""
    if judged.lost:
        return advising.CANCELLING.format(scaling=advising.scaling(system.bound))
    if judged.better is not None and judged.better.pole is not None:
        return advising.POLE
    if judged.grade in (BEATEN, SADDLE) and not convex:
        return advising.SADDLE
    if judged.grade in (OPEN, BEATEN):
        return advising.little_curvature(system.bound)
    if ended is not None and ended.how == "converged" and judged.estimated:
        return advising.DRAWS
    if name == "stationarity" and solvers is not None and solvers.gradient > 10 * max(stationarity, 1e-12):
        name = "multipliers"
    return advising.towards(ended, name, system.bound, loose)


def loose(system: System, optimal: Optimum, meter: Meter) -> str:
    """Why other subgradients may have a smaller residual, or ""."""
    if meter.timed or not optimal.weighed:
        return advising.LATER
    if system.left or system.refused or any(_below_roots(system)):
        return advising.CHOICE
    return ""


def failed(report: KKTReport, failure: Failure, *, convex: bool, feasible: bool = False) -> KKTReport:
    """The report of a point at which the solver found that there is no solution. It has no gap if there
    is no optimal value.

    convex     whether the constraints are convex
    feasible   whether a point elsewhere meets all of them
    """
    match failure.kind:
        case "infeasible" if feasible:
            sentence = (
                "Not solved yet: the run ended where a small step lowers no violation (the largest: "
                f"{report.feasibility:.1e}), "
                "but elsewhere points meet all constraints, which are not convex."
            )
            advice = "Bound the variables by sets to where the constraints hold."
            return dataclasses.replace(report, verdict=f"{sentence} {advice}", advice=advice, solved=False)
        case "infeasible" if failure.fixed:
            if len(failure.conflict) == 1:
                words = ("has", "is", "")
            else:
                words = ("have", "are", "up to ")
            worst = "{} no variable, and {} violated by {}{:.3g}".format(
                *words, max(failure.conflict.values())
            )
            sentence = f"Infeasible, {_standing(report)}: {_shown(failure)} {worst}."
            advice = "Correct the data and params of what has no variable, or leave it out."
        case "infeasible" if report.relative.get("feasibility", report.feasibility) <= FEASIBLE:
            return report  # the point itself meets the constraints
        case "infeasible":
            return _conflicting(report, failure, convex)
        case _ if report.relative.get("feasibility", report.feasibility) > FEASIBLE:
            sentence = (
                "Not solved yet: the run took the objective for one that falls without end, but where it "
                "ended "
                f"({report.objective:.1e}) constraints are violated by {report.feasibility:.1e}, which "
                "proves nothing."
            )
            advice = "Bound the variables by sets, or take a larger penalty (--option rho)."
            return dataclasses.replace(report, verdict=f"{sentence} {advice}", advice=advice, solved=False)
        case "unbounded" if failure.proved:
            sentence = (
                f"Unbounded, {_standing(report)}: the objective is {report.objective:.1e} here and goes "
                "on without end "
                f"along a ray of feasible points, as {_moving(failure)}."
            )
            advice = UNBOUNDED
        case "unbounded":
            sentence = (
                f"Unbounded as far as was seen, not proved: the objective, {report.objective:.1e} here, "
                "still improves "
                f"{_seen(failure)}as {_moving(failure)}."
            )
            advice = UNBOUNDED
        case _:
            sentence = (
                "No solution is attained, as far as was seen: the objective still improves, ever more "
                "slowly, "
                f"{_seen(failure)}as {_moving(failure)}."
            )
            advice = (
                "Add a regulariser, such as 1e-4 * sumsq(w), or a bound, such as `in ball(100)`. "
                "(Separable data do this.)"
            )
    gap = report.gap if failure.kind == "unattained" else None
    whole = f"{sentence} {advice}"
    return dataclasses.replace(
        report, verdict=whole, advice=advice, gap=gap, solved=False, failure=failure.kind
    )


def _standing(report: KKTReport) -> str:
    """How certain a finding about all points is: ``estimated`` if expectations are."""
    if report.exact:
        return "proved"
    return "estimated"


def unfinished(report: KKTReport, reason: str) -> KKTReport:
    """The report of a point at which a run wrongly took the objective for one that falls without end;
    unchanged if the point is solved."""
    if report.solved:
        return report
    sentence = f"{report.verdict} The run ended where the objective still fell, but {reason}."
    return dataclasses.replace(report, verdict=sentence)


def _conflicting(report: KKTReport, failure: Failure, convex: bool) -> KKTReport:
    """The report of a point at which constraints conflict: everywhere, within a radius, or as far as a
    local search can tell."""
    shown, name = _shown(failure), "infeasible_nearby"
    least = (
        f"Least squares of violations leave {report.feasibility:.3g}; the constraints that conflict: {shown}."
    )
    if failure.proved:
        least = (
            f"Constraints that conflict, by multipliers: {shown}. Violations here reach "
            f"{report.feasibility:.3g}."
        )
    if max(failure.radius, failure.nearest) <= 0 or not (convex or failure.proved):
        sentence = f"Infeasible near this point, and constraints are not convex. {least}"
    elif math.isinf(failure.radius):
        name = "infeasible"
        sentence = f"Infeasible, {_standing(report)}: every point violates a constraint. {least}"
    else:
        where = f"is within {_down(failure.nearest)} of this one"
        if failure.radius > 0:
            where = f"has |w| <= {_down(failure.radius)}"
        sentence = (
            f"Not solved: no feasible point {where}, {_standing(report)}; further away there may "
            f"be some. {least}"
        )
    advice = "Loosen one of them, or give them a weight in the objective instead."
    whole = f"{sentence} {advice}"
    return dataclasses.replace(report, verdict=whole, advice=advice, gap=None, solved=False, failure=name)


def _down(value: float) -> str:
    """The number with two digits, rounded down."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return f"{math.floor(value / unit * (1 + 1e-12)) * unit:.1e}"


def _shown(failure: Failure) -> str:
    """The labels of the first eight constraints that conflict, and the number of others."""
    names = list(failure.conflict)
    shown = ", ".join(names[:8])
    if len(names) > 8:
        return f"{shown} and {len(names) - 8} more"
    return shown


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


def _seen(failure: Failure) -> str:
    """In words, the distance at which the objective was seen to be smaller."""
    if failure.far:
        return f"at |w| = {failure.far:.0e} "
    return ""


def _moving(failure: Failure) -> str:
    """The variable along which the objective falls, in words."""
    assert failure.along is not None
    name, rises = failure.along
    return f"`{name}` {'grows' if rises else 'falls'}"


# -------------------------------------------------------------------------------------------- notes
def cancelling(system: System, lost: float) -> Iterator[str]:
    """A note if terms cancel so much that rounding shows, with the column of the largest numbers."""
    if lost <= GRADES[0][0] * abs(system.objective) or lost <= NO_GAP:
        return
    columns = {
        (n.binder.domain.table, n.name)
        for n in system.problem.expressions(ir.Column)
        if n.name is not None
        and isinstance(n.binder.domain, ir.RowSet)
        and not drawn(system.bound.tables[n.binder.domain.table].columns[n.name])
    }
    sizes = {(t, c): float(np.abs(system.bound.tables[t].columns[c]).max(initial=0.0)) for t, c in columns}
    table, column = max(sizes, key=lambda key: sizes[key], default=("", ""))
    named = ""
    if column and sizes[table, column] > LARGE_COLUMN:
        named = (
            f": `{column}` of {table} is as large as {sizes[table, column]:.1e}; subtract its mean, "
            "or scale it"
        )
    yield f"Terms cancel: the objective may be off by {lost:.1e} by rounding{named}"


def notes_of(system: System, optimal: Optimum, noise: Noise | None = None) -> Iterator[str]:
    """The facts that a reader must know to trust the numbers."""
    if noise is not None:
        yield _sampled(noise)
    used = [system.records[k] for k in sorted(system.used)]
    yield from recording.notes(system.left, system.refused, used, lambda node: _quoted(system, node))
    if not optimal.weighed:
        yield (
            "The weights of the maxima were not chosen, for want of time: each subgradient is that of "
            "the largest terms, and the "
            "stationarity is an upper bound"
        )
    if any(system.equal[k] and slopes for k, slopes in zip(system.kept, system.slopes[1:], strict=True)):
        yield (
            "An equality contains a function with a kink: one subgradient of it is taken; the "
            "stationarity is an upper bound"
        )
    yield from _below_roots(system)
    for name, net in system.problem.nets.items():
        if net.frozen:
            continue
        facts = nets.walk(system.bound.nets[name])
        declared = [text for text, _ in net.assume]
        if declared:
            yield f"Net `{name}` is taken to be {', '.join(declared)}: your assumption"
        elif not facts.smooth:
            if facts.reasons:
                reason = f" ({facts.reasons[0]})"
            else:
                reason = ""
            if facts.weakly_convex:
                known = "weakly convex, not smooth"
            else:
                known = "not proved to be smooth"
            yield f"Net `{name}` is {known}{reason}: at a kink one of its gradients is taken"


def _below_roots(system: System) -> Iterator[str]:
    """Notes on roots of nearly 0, which have no gradient there."""
    roots = (n for n in system.problem.expressions(ir.Apply) if n.op == "sqrt" and not n.shape)
    weighed = {id(record.kink.node) for record in system.records}
    for node in roots:
        if not ir.variables_of(node) or ir.free_binders(node) or id(node) in weighed:
            continue
        u = float(system.evaluator.value(node.args[0], {}).data.detach())
        if u < NO_ROOT:
            yield (
                f"{_quoted(system, node)} is the root of {u:.1g} here, and a root has no gradient at 0: "
                "an optimum there is not "
                "recognised (`sqrt(1e-6 + u)` has one)"
            )


def at_bound(multipliers: Mapping[str, float], limits: Mapping[str, float]) -> Iterator[str]:
    """Notes on the solver's multipliers that are as large as its penalties allow."""
    for name, limit in limits.items():
        labels = [
            label
            for label, nu in multipliers.items()
            if label.partition("[")[0] == name and abs(nu) >= NEARLY * limit > 0
        ]
        if labels:
            shown = ", ".join(f"`{label}`" for label in labels[:4])
            if len(labels) > 4:
                shown += f" and {len(labels) - 4} more"
            yield (
                f"{shown}: the solver's multiplier is at the penalty's bound, {limit:.3g}: the penalty is "
                "too weak to hold the "
                f"constraint (--option rho={4 * limit:.3g})"
            )


def _quoted(system: System, node: ir.Expr) -> str:
    """The text of a node in the model, with its line."""
    text = system.problem.text(node)
    if node.span is ir.NOWHERE or not text:
        if isinstance(node, ir.Apply):
            return f"`{node.op}`"
        return "a reduction"
    if len(text) <= 40:
        short = text
    else:
        short = text[:37] + "..."
    return f"`{short}` (line {system.problem.source.place(node.span)[0]})"


def _sampled(noise: Noise) -> str:
    """A note on the expectations that draws stand for, and their standard errors."""
    constraints = ""
    if len(noise.constraints):
        constraints = f", of the constraints at most {noise.worst:.1e}"
    return (
        f"{noise.names}: {noise.count:,} draws, others than those of the run, stand for the distribution; "
        "standard error of the "
        f"objective {noise.objective:.1e}{constraints}"
    )
