"""The verdict: one line with the grade of a point and its residual, and advice on what would lower it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fccomodel.core.work import Meter
from fccomodel.report import advice as advising
from fccomodel.report.advice import Ending
from fccomodel.report.around.local_search import Better
from fccomodel.report.certificates import gap
from fccomodel.report.certificates.conflicts import Conflict
from fccomodel.report.kkt.optimality import Optimum
from fccomodel.report.new_rows.sampling import StandardErrors
from fccomodel.report.point.system import System
from fccomodel.report.verdicts.grades import BEATEN, GOOD, OPEN, SADDLE, Judged
from fccomodel.report.verdicts.notes import below_roots
from fccomodel.report.verdicts.words import first_of, quoted, rounded_down

if TYPE_CHECKING:
    from fccomodel.report import Row

#: How many times as large as the best multipliers' stationarity that of the solver's own is, if these
#: are what is missing.
MULTIPLIERS_APART = 10
#: Stationarity below which that comparison says nothing.
LEAST_STATIONARITY = 1e-12
#: Conflicting constraints that a verdict names.
MOST_LABELS = 4


@dataclass(frozen=True, eq=False, kw_only=True)
class Findings:
    """The findings that a verdict puts into words.

    rows      the constraints by their labels
    parts     the three residuals; ``relative`` to the scales
    solvers   the optimality of the solver's own multipliers, or None
    judging   the rows are not those that the point was found on: no grade and no advice
    ended     how the run ended that found the point, or None
    loose     why the stationarity may be less than it says, or ""
    noise     the standard errors of a problem that draws, or None
    conflict  constraints that no point meets together, although none is violated by more than the
              tolerance here; or None
    unattained  a bound of the optimum that this point reaches up to rounding, and no point attains; or
                None
    """

    system: System
    rows: Mapping[str, Row]
    parts: Mapping[str, float]
    relative: Mapping[str, float]
    judged: Judged
    solvers: Optimum | None = None
    judging: bool = False
    ended: Ending | None = None
    convex: bool = False
    loose: str = ""
    noise: StandardErrors | None = None
    conflict: Conflict | None = None
    unattained: float | None = None

    @property
    def epsilon(self) -> float:
        """The least number for which the point is known to be epsilon-KKT."""
        return max(self.parts.values())

    @property
    def share(self) -> float:
        """The largest residual relative to the scales."""
        return max(self.relative.values())

    @property
    def largest(self) -> str:
        """The name of the residual that is largest relative to the scales."""
        return max(self.relative, key=lambda name: self.relative[name])

    @property
    def good(self) -> bool:
        """Whether the point needs no advice."""
        judged = self.judged
        if not judged.solved or judged.lost:
            return False
        return self.share <= GOOD or judged.by_gap or judged.estimated


def verdict(found: Findings) -> tuple[str, str]:
    """(one line, advice): the epsilon for which the point is epsilon-KKT, what decides it, and what
    would lower it."""
    scaled = ""
    if not _alike(found.epsilon, found.share):
        scaled = f", {found.share:.1e} relative to the problem's scales"
    residual = f"an ε-KKT point with ε = {found.epsilon:.1e}{scaled}{_decided(found)}"
    sentence = f"{_graded(found)}: {residual}{''.join(_reservations(found))}."
    advice = advice_of(found)
    if advice:
        sentence = f"{sentence} {advice}"
    return sentence, advice


def _graded(found: Findings) -> str:
    """The grade in words, and how it was found if not by the residuals of the rows."""
    if found.judging:
        grade = "On these rows"
    else:
        grade = found.judged.words
    if found.judged.by_gap and not found.judging:
        if found.judged.estimated:
            return f"{grade}, by the estimated gap"
        return f"{grade}, by the proved gap"
    if found.noise is not None:
        return f"{grade}, estimated"
    return grade


def _decided(found: Findings) -> str:
    """The residual that decides, and its constraint; "" for a problem without constraints and sets."""
    system, name = found.system, found.largest
    if not system.labels and not system.projected:
        return ""
    where = ""
    if name == "feasibility" and system.outside >= max(system.violations, default=0.0):
        where = " (a variable is outside its set)"
    elif name == "feasibility":
        where = f" ({system.labels[int(np.argmax(system.violations))]})"
    elif name == "complementarity":
        where = f" ({max(found.rows, key=lambda label: found.rows[label].complementarity)})"
    return f", decided by {name}{where}"


def _reservations(found: Findings) -> Iterator[str]:
    """The clauses on what the residuals do not say: gaps, better points, saddles, errors of draws."""
    judged, noise = found.judged, found.noise
    if found.conflict is not None:
        yield _conflicting(found.conflict)
    if not found.judging:
        if judged.missing:
            yield f"; the optimum may be up to {judged.missing:.1e} better"
        elif judged.loose and judged.better is None:
            if gap.remark(judged.loose, found.system.objective):
                yield "; the proved bound of the optimum is too weak to say how far it is"
            else:
                yield f"; proved is only that the optimum is at most {judged.loose:.1e} better"
        if judged.better is not None:
            yield _beaten(found.system, judged.better)
        elif judged.first_order:
            yield f"; whether it is a saddle is not known: {judged.first_order}"
        if judged.solved and found.unattained is not None:
            yield (
                f"; no point attains the bound {found.unattained:.3g} itself, so points further away may "
                "come closer to it"
            )
    if noise is not None:
        yield f"; of {noise.count:,} draws, the standard error of the objective is {noise.objective:.1e}"


def _conflicting(conflict: Conflict) -> str:
    """The words for constraints that hold within the tolerance, and cannot hold exactly."""
    labels = first_of([f"`{label}`" for label in conflict.labels], MOST_LABELS)
    which = "it" if len(conflict.labels) == 1 else "one of them"
    words = f"no point within {rounded_down(conflict.radius)} of this one meets {labels} exactly"
    return f"; but {words}: each violates {which} by {rounded_down(conflict.size)} or more"


def _beaten(system: System, better: Better) -> str:
    """The words for a better point: where it is, and its gain."""
    falls = "falls" if system.sign > 0 else "rises"
    if better.saddle:
        return f"; {better.where} the objective {falls} by {better.gain:.1e}"
    near = ""
    if better.pole is not None:
        near = f" ({quoted(system, better.pole)})"
    if better.endless:
        return f"; the objective {falls} without end {better.where}{near}"
    return f"; a feasible point {better.where}{near} is better by {better.gain:.1e}"


def _alike(a: float, b: float) -> bool:
    """Whether two numbers agree to a tenth."""
    return a == b or abs(a - b) <= 0.1 * max(a, b)


# ------------------------------------------------------------------------------------------- advice
def advice_of(found: Findings) -> str:
    """The advice by the first of ``RULES`` that gives some; "" for a point that needs none."""
    if found.judging or found.good:
        return ""
    return next((advice for rule in RULES if (advice := rule(found))), "")


def _by_the_size_of_numbers(found: Findings) -> str:
    """Numbers beyond double precision have no better advice."""
    if not math.isinf(max(found.epsilon, found.share)):
        return ""
    return advising.BEYOND


def _by_rounding(found: Findings) -> str:
    """Rounding as large as what is left asks for scaling."""
    if not found.judged.lost:
        return ""
    return advising.CANCELLING.format(scaling=advising.scaling(found.system.bound))


def _by_the_better_point(found: Findings) -> str:
    """A better point asks for another start, or for distance from a pole."""
    judged = found.judged
    if judged.better is not None and judged.better.pole is not None:
        return advising.POLE
    if judged.grade in (BEATEN, SADDLE) and not found.convex:
        return advising.SADDLE
    return ""


def _by_curvature(found: Findings) -> str:
    """A large gap or a better point of a convex problem comes from curvature that is too small."""
    if found.judged.grade not in (OPEN, BEATEN):
        return ""
    return advising.little_curvature(found.system.bound)


def _by_the_draws(found: Findings) -> str:
    """A run that met its own tests saw other draws than the report."""
    if found.ended is None or found.ended.how != "converged" or not found.judged.estimated:
        return ""
    return advising.DRAWS


def _by_the_largest_residual(found: Findings) -> str:
    """Every residual has its own advice, by how the run ended."""
    name = found.largest
    least = MULTIPLIERS_APART * max(found.parts["stationarity"], LEAST_STATIONARITY)
    if name == "stationarity" and found.solvers is not None and found.solvers.gradient > least:
        name = "multipliers"
    return advising.towards(found.ended, name, found.system.bound, found.loose)


#: The rules of ``advice_of`` in their order; each gives advice, or passes to the next by "".
RULES: tuple[Callable[[Findings], str], ...] = (
    _by_the_size_of_numbers,
    _by_rounding,
    _by_the_better_point,
    _by_curvature,
    _by_the_draws,
    _by_the_largest_residual,
)


def loose(system: System, optimal: Optimum, meter: Meter) -> str:
    """Why other subgradients may have a smaller residual, or ""."""
    if meter.timed or not optimal.weighed:
        return advising.LATER
    if system.left or system.refused or any(below_roots(system)):
        return advising.CHOICE
    return ""
