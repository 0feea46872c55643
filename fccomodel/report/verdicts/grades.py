"""The grade of a point: what residuals, the proved gap, better points and rounding say together."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from fccomodel.report.around.local_search import Better
from fccomodel.report.around.second_order import Examined
from fccomodel.report.certificates.gap import Gap
from fccomodel.report.new_rows.sampling import ERRORS, StandardErrors

#: Grades of a point, each with the largest relative residual up to which it is given.
GRADES: tuple[tuple[float, str], ...] = (
    (1e-6, "Solved to high accuracy"),
    (1e-3, "Solved"),
    (1e-2, "Solved roughly"),
    (math.inf, "Not solved yet"),
)
#: The place of each grade, from the best to the worst.
RANKS: Mapping[str, int] = {grade: place for place, (_, grade) in enumerate(GRADES)}
SOLVED = GRADES[1][1]
ROUGHLY, SOLVED_ROUGHLY = GRADES[2]
NOT_SOLVED = GRADES[3][1]
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
#: The least size of an objective to which gains are relative.
LEAST_OBJECTIVE = 1e-2
#: Gap, or rounding in an objective, up to which it counts as 0, whatever the size of the objective.
NO_GAP = 1e-12
#: Grades of an estimate, each with the largest standard error of the objective, relative to its size,
#: and of the constraints, up to which it is given.
ESTIMATES: tuple[tuple[float, str], ...] = (
    (1e-2, "Solved"),
    (1e-1, "Solved roughly"),
    (math.inf, "Not solved yet"),
)


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
        return _large(gap.value, size)

    def beside(self, better: Better | None) -> Judged:
        """The judgement with a better point, if there is one."""
        if better is None:
            return self
        return replace(self, grade=SADDLE if better.saddle else BEATEN, better=better, by_gap=False)

    def rounded(self, share: float) -> Judged:
        """The judgement with a grade that rounding allows; rounding may be this share of the objective."""
        allowed = _grade(share)
        if not self.solved or not _better_grade(self.grade, allowed):
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
        return _worse_of(self.grade, SOLVED)

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


def counted(difference: float) -> float:
    """The size of a gap, or of rounding in an objective, less what counts as 0 in any units."""
    return max(abs(difference) - NO_GAP, 0.0)


def _large(gap: float, size: float) -> bool:
    """Whether a gap is positive and not good for an objective of this size."""
    return gap >= 0 and counted(gap) > GOOD * size


def _grade(epsilon: float, grades: tuple[tuple[float, str], ...] = GRADES) -> str:
    """The best grade for this residual."""
    return next((text for limit, text in grades if epsilon <= limit), grades[-1][1])


def _better_grade(a: str, b: str) -> bool:
    """Whether grade ``a`` is better than grade ``b``."""
    return RANKS[a] < RANKS[b]


def _worse_of(a: str, b: str) -> str:
    """The worse of two grades."""
    return max(a, b, key=RANKS.__getitem__)


# ------------------------------------------------------------------------------------------- judging
@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The evidence by which a point is judged, relative to the problem's scales.

    relative  the three residuals by name
    gap       how far the objective can be from the optimum, or None if nothing is proved
    size      size of the objective, to which gaps are relative
    beyond    how much the objective gains by violations; large, and perhaps larger than it says, if
              gradients of constraints nearly vanish
    convex    whether the problem is convex: then a loose gap is no evidence against the point
    noise     the standard errors of a problem that draws, or None
    errors    the standard errors of ``relative``. Residuals within their errors count as 0, and no
              grade is better than the errors allow
    """

    relative: Mapping[str, float]
    gap: Gap | None
    size: float
    beyond: float = 0.0
    convex: bool = False
    noise: StandardErrors | None = None
    errors: Mapping[str, float] = field(default_factory=dict)

    @property
    def grade(self) -> str:
        """The grade by the residuals alone."""
        return _grade(max(self.relative.values()))

    @property
    def large_gap(self) -> float | None:
        """The gap if it is positive and not good for an objective of this size, or None."""
        if self.gap is None or self.gap.value is None:
            return None
        return self.gap.value if _large(self.gap.value, self.size) else None


def judge(evidence: Evidence) -> Judged:
    """The grade of a point, by the first of ``RULES`` that decides."""
    return next(judged for rule in RULES if (judged := rule(evidence)) is not None)


def _if_drawn(evidence: Evidence) -> Judged | None:
    """An estimate has the grade of its residuals beyond their standard errors, and none that is better
    than the errors allow."""
    gap, noise, errors = evidence.gap, evidence.noise, evidence.errors
    if noise is None:
        return None
    excess = {
        name: max(0.0, value - ERRORS * errors.get(name, 0.0)) for name, value in evidence.relative.items()
    }
    grade, by_gap = _grade(max(excess.values())), False
    if gap is not None and gap.value is not None:
        of_gap = _grade(max(abs(gap.value) / evidence.size, excess["feasibility"]))
        by_gap = _better_grade(of_gap, grade)
        if by_gap:
            grade = of_gap
        elif not gap.loose and evidence.large_gap is not None and grade != NOT_SOLVED:
            return Judged(grade=OPEN, missing=gap.value, estimated=True)
    if evidence.beyond > GOOD and not by_gap and excess["feasibility"] > 0:
        grade = NOT_SOLVED
    allowed = _grade(max(noise.objective / evidence.size, errors.get("feasibility", 0.0)), ESTIMATES)
    return Judged(grade=_worse_of(grade, allowed), by_gap=by_gap, estimated=True)


def _if_the_gap_is_small(evidence: Evidence) -> Judged | None:
    """A small gap gives a better grade than the residuals."""
    gap = evidence.gap
    if gap is None or gap.value is None:
        return None
    by_gap = _grade(max(abs(gap.value) / evidence.size, evidence.beyond, evidence.relative["feasibility"]))
    if _better_grade(by_gap, evidence.grade):
        return Judged(grade=by_gap, by_gap=True)
    return None


def _if_violations_pay(evidence: Evidence) -> Judged | None:
    """A point is not solved if its objective gains much by violations."""
    if evidence.beyond > GOOD:
        return Judged(grade=NOT_SOLVED)
    return None


def _if_no_gap_objects(evidence: Evidence) -> Judged | None:
    """The residuals decide if no large gap is there, or if they call the point not solved."""
    if evidence.large_gap is None or evidence.grade == NOT_SOLVED:
        return Judged(grade=evidence.grade)
    return None


def _if_the_gap_is_loose(evidence: Evidence) -> Judged | None:
    """A loose gap takes no grade back; the verdict on a convex problem says how loose it is."""
    gap = evidence.gap
    if gap is None or gap.value is None or not gap.loose:
        return None
    return Judged(grade=evidence.grade, loose=gap.value if evidence.convex else 0.0)


def _by_a_large_gap(evidence: Evidence) -> Judged | None:
    """A large gap takes a good grade back."""
    gap = evidence.large_gap
    if gap is None:
        return None
    if gap <= ROUGHLY * evidence.size:
        return Judged(grade=_worse_of(evidence.grade, SOLVED_ROUGHLY), missing=gap)
    return Judged(grade=OPEN, missing=gap)


#: The rules of ``judge`` in their order; each answers, or passes to the next by None.
RULES: tuple[Callable[[Evidence], Judged | None], ...] = (
    _if_drawn,
    _if_the_gap_is_small,
    _if_violations_pay,
    _if_no_gap_objects,
    _if_the_gap_is_loose,
    _by_a_large_gap,
)
