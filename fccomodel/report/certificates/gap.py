"""An upper bound on the difference between a point's objective and the optimum of a convex problem.

The optimum is bounded from below by the Lagrangian.

With multipliers nu (>= 0 for inequalities), s a subgradient of ``L = f + nu.c`` at w up to
``missed``, H the constant Hessian of the quadratic parts of L, and n normals of the simple sets X
at w, every feasible x has

    f(x) >= L(x) >= f(w) + nu.c(w) - missed + s.(x - w) + (x - w)'H(x - w)/2
    n.x <= support of X at n

The right side is minimised over all x in directions in which H is definite (strong convexity). In
the other directions sets, norms and level sets bound the variables (Nesterov, Lectures on Convex
Optimization, 2018, sections 2.1.3 and 3.1.2). The level set of the objective at w holds every
optimum only if w is feasible. Otherwise a bound from it proves only that the gap is at most the
larger of it and 0. If all this proves little, curvature near w may prove more
(``local_curvature``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from fccomodel.core import ir
from fccomodel.core.work import Meter
from fccomodel.evaluation.sets import members
from fccomodel.report.certificates import curvature, cutting_planes, growth, local_curvature
from fccomodel.report.certificates.rounding import Rounding
from fccomodel.report.certificates.support_functions import (
    Support,
    around,
    furthest,
    past,
    reach,
    spans,
    supports_of,
)
from fccomodel.report.kinks.kinks import Kink
from fccomodel.report.kkt.lagrangian import CONSTANT, LagrangianTerm, roots, spectrum
from fccomodel.report.kkt.optimality import Optimum, optimum
from fccomodel.report.new_rows.sampling import StandardErrors
from fccomodel.report.point.rows import Gradients
from fccomodel.report.point.system import System
from fccomodel.report.quadratic_parts import WeightedParts
from fccomodel.structure import Analysis
from fccomodel.structure.facts import Standing

Array = np.ndarray
#: Violation up to which a point counts as feasible.
ALLOWED = 1e-3
#: Rounding of a sum, relative to its terms' sizes, if nothing closer is known.
PRECISION = 1e-14
#: Rounding of the end of an interval, relative to itself.
RANGE_ROUNDING = 4e-15
#: Assumed distance to the optimum of entries that nothing bounds, relative to their sizes; it weighs
#: the rounding of their gradients.
UNBOUNDED_DISTANCE = 1e3
#: Share of a gap from which on its text says how much of it may be rounding.
TOLD_ROUNDING_SHARE = 0.1
#: Gap, relative to the objective, that need not be made smaller.
NEGLIGIBLE = 1e-8
#: Least size of an objective to which gaps are relative.
LEAST_SIZE = 1e-2
#: Share of the objective from which on a gap proves little.
LARGE_SHARE = 0.1
IN_EXACT_ARITHMETIC = "; in exact arithmetic, since a bound of the rounding takes too long"
BEYOND = "numbers at this point are beyond those of double precision"


@dataclass(frozen=True, kw_only=True)
class Gap:
    """An upper bound on the difference between a point's objective and the optimum.

    value     an upper bound of the minimised objective less its optimum; None if nothing is proved
    why       what is missing for a proof
    bound     the value that the optimum, in the model's own sense, cannot pass
    how       what proves it
    loose     proved by the range of the objective alone, or with subgradients that are not the best:
              a large value is no evidence against the point
    excess    the largest violation of a constraint at the point
    draws     number of draws if distributions are sampled: the gap is an estimate then, and there is
              no bound; else 0
    error     the objective's standard error, from the draws
    rounding  the part of the value that stands for rounding of numbers that cancel
    open      whether no point attains the bound
    """

    value: float | None = None
    bound: float | None = None
    how: str = ""
    why: str = ""
    loose: bool = False
    excess: float = 0.0
    draws: int = 0
    error: float = 0.0
    rounding: float = 0.0
    open: bool = False

    def __str__(self) -> str:
        if self.value is None:
            return f"no gap is certified: {self.why}"
        if self.draws:
            if self.value <= 0:
                size = "0"
            else:
                size = f"{_up(self.value)} at most"
            return (
                f"gap about {size}, estimated on {self.draws:,} draws, the objective with a standard "
                f"error of {self.error:.1e}"
            )
        if self.value < 0 and self.excess <= ALLOWED:
            worth = (
                f"a violation of {self.excess:.1e} makes the objective {-self.value:.1e} better than "
                "the optimum's or more"
            )
            return f"gap <= 0, proved ({self.how}); {worth}"
        if self.value < 0:
            return (
                f"the optimum is worse than this by at least {-self.value:.1e}, proved ({self.how}): "
                "constraints are violated"
            )
        cancels = ""
        if self.rounding > TOLD_ROUNDING_SHARE * self.value > 0:
            cancels = f"; {_up(self.rounding)} of it for rounding"
        return f"gap <= {_up(self.value)}, proved ({self.how}{cancels})"


def remark(value: float | None, objective: float) -> str:
    """A clause on a gap that is a large part of the objective, and so proves little; else an empty text."""
    size = max(abs(objective), LEAST_SIZE)
    if value is None or value < LARGE_SHARE * size:
        return ""
    return f"; that is {value / size:.0%} of the objective, so it proves little: look at ε"


def _up(value: float) -> str:
    """The number with two digits, rounded up."""
    if value == 0:
        return "0"
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return f"{math.ceil(value / unit * (1 - 1e-12)) * unit:.1e}"


@dataclass
class SharedResults:
    """Results that several candidates share.

    hessians   constant Hessians
    boxes      intervals of the variables, without the objective's level set and with it
    radius     of a ball around w that holds the level set; None until it is searched
    least      the least gap so far
    """

    hessians: curvature.Hessians = field(default_factory=dict)
    boxes: dict[bool, dict[str, list[Support]]] = field(default_factory=dict)
    radius: float | None = None
    least: float = math.inf


class _Refused(Exception):
    """No gap can be certified; the message says why."""


def certify(
    system: System,
    shared: Gradients,
    analysis: Analysis,
    candidates: list[Optimum],
    meter: Meter,
    noise: StandardErrors | None = None,
    rounded: Rounding | None = None,
) -> Gap:
    """The least gap that one of the candidates' multipliers proves, or the range of the objective.

    It has no value if a part without variables is perhaps not defined.

    noise    the standard errors of draws, which make the gap an estimate
    rounded  bounds of the rounding at the point, which are part of the gap
    """
    certificate = _certified(system, shared, analysis, candidates, meter, rounded)
    if noise is None or certificate.value is None:
        return certificate
    return replace(certificate, bound=None, draws=noise.count, error=noise.objective)


def _certified(
    system: System,
    shared: Gradients,
    analysis: Analysis,
    candidates: list[Optimum],
    meter: Meter,
    rounded: Rounding | None,
) -> Gap:
    """The least gap that is proved, as if nothing were drawn."""
    if doubt := _doubt(analysis):
        return Gap(why=doubt)
    system.rounding = rounded.objective if rounded is not None else 0.0
    try:
        _convex(analysis)
        admissible = [candidate for candidate in candidates if _admissible(system, candidate)]
        if composed := _composed(system, analysis):
            multipliers = [dict(zip(system.labels, c.multipliers.tolist(), strict=True)) for c in admissible]
            admissible = [optimum(system, shared, meter, by_label, held=composed) for by_label in multipliers]
    except _Refused as refusal:
        return _closest(_by_range(system, analysis, str(refusal)))
    known, gaps, why = SharedResults(), list[Gap](), "no multipliers"
    for candidate in admissible:
        try:
            gap = _Candidate(system, analysis, candidate, meter, known, rounded).gap()
        except _Refused as refusal:
            why = str(refusal)
        else:
            gaps.append(replace(gap, loose=bool(composed)))
            known.least = min(known.least, gap.value or 0.0)
    return _closest(*gaps, _by_range(system, analysis, "" if gaps else why))


def _closest(*gaps: Gap) -> Gap:
    """The smallest gap that is proved."""

    def finite(gap: Gap) -> Gap:
        """The gap, or none if its number overflowed."""
        if gap.value is None or math.isfinite(gap.value):
            return gap
        return Gap(why=BEYOND)

    return min(map(finite, gaps), key=lambda gap: math.inf if gap.value is None else gap.value)


def _doubt(analysis: Analysis) -> str:
    """The part without variables that is perhaps not defined: it holds draws, or data that could not be
    tried. '' if there is none."""
    for facts in (analysis.objective, *analysis.constraints.values()):
        for condition in facts.domain:
            if not ir.variables_of(condition.subject):
                return f"{condition.reason}: `{analysis.problem.text(condition.subject)}`"
    return ""


def _by_range(system: System, analysis: Analysis, why: str) -> Gap:
    """The gap from the proved range of the objective; ``why`` says why nothing closer is proved."""
    fact = analysis.minimised.interval
    if fact.value.lo == -math.inf or fact.standing > Standing.BOUNDED:
        return Gap(why=why)
    end = "least" if system.sign > 0 else "most"
    how = f"the objective is at {end} {system.sign * fact.value.lo:.3g}"
    if why:
        how += f"; nothing closer: {why}"
    low = fact.value.lo - RANGE_ROUNDING * abs(fact.value.lo)
    value = system.level - low
    bound, excess = system.sign * low, _excess(system)
    return Gap(
        value=value,
        bound=bound,
        how=how,
        loose=True,
        excess=excess,
        rounding=system.rounding,
        open=fact.value.lo_open,
    )


def _excess(system: System) -> float:
    """The largest violation of a constraint or a simple set."""
    return max([0.0, system.outside, *system.violations])


def _convex(analysis: Analysis) -> None:
    """Raise ``_Refused`` unless the problem is proved to be convex."""
    facts = {"the objective": (analysis.minimised, False)}
    facts |= {
        f"`{c.label}`": (analysis.constraints[c.label], c.kind == "eq") for c in analysis.problem.constraints
    }
    for name, (fact, equation) in facts.items():
        if not (fact.affine if equation else fact.convex):
            raise _Refused(f"{name} is not proved to be {'affine' if equation else 'convex'}")
        if fact.below.standing > Standing.BOUNDED:
            raise _Refused(f"that {name} is convex is {fact.below.standing}, not proved")


def _admissible(system: System, optimal: Optimum) -> bool:
    """Whether the multipliers of inequalities are at least 0."""
    return all(equal or nu >= 0 for equal, nu in zip(system.equal, optimal.multipliers, strict=True))


Supports = dict[str, list[Support]]


class _Candidate:
    """The gap that the multipliers of one candidate prove.

    base       the part of every bound that does not depend on x: what the subgradients miss, what
               the multipliers lose on inactive constraints, and rounding
    lost       the part of ``base`` that stands for rounding of values
    forgiven   concavity of the Lagrangian that rounding may hide
    """

    def __init__(
        self,
        system: System,
        analysis: Analysis,
        optimal: Optimum,
        meter: Meter,
        known: SharedResults,
        rounded: Rounding | None,
    ):
        self.system, self.analysis, self.optimal = system, analysis, optimal
        self.meter, self.known, self.rounded = meter, known, rounded
        self.functions = roots(system, optimal.multipliers)
        self.parts = WeightedParts(see=analysis.see)
        self.quadratics = [self.parts.quadratic(root.expr, root.sign) for root in self.functions]
        _kinks(system, optimal.multipliers, analysis, self.parts)
        products = optimal.multipliers * system.values
        base = optimal.missed - float(optimal.multipliers @ system.values)
        base += PRECISION * (abs(system.objective) + float(np.abs(products).sum()))
        if rounded is not None:
            self.lost = rounded.lost(optimal.multipliers)
        else:
            self.lost = 0.0
        self.base = base + self.lost
        self.forgiven = _forgiven(system, analysis, optimal)
        self.enough = NEGLIGIBLE * max(abs(system.objective), LEAST_SIZE)

    def gap(self) -> Gap:
        """The least gap; raises ``_Refused`` if nothing bounds the variables."""
        system = self.system
        feasible = _excess(system) <= 0
        hessian = self._hessian(feasible)
        best, supports = self._within(hessian, level=feasible)
        if not feasible:
            # An optimum that is no worse than w is in the level set of w; if it is worse, the gap is below 0.
            near, _ = self._within(hessian, level=True)
            best = min(best, near._replace(value=max(near.value, 0.0)))
        large = best.value - self.base > self.enough and not 0 <= self.known.least <= self.enough
        if self.parts.convex and not self.forgiven and large:
            near = _near(system, self.functions, self.optimal, self.analysis, self.meter, self.base)
            best = min(best, near)
        if best.value == math.inf:
            raise _Refused(_unbounded(system, supports))
        lost = self.lost
        if self.rounded is not None and self.meter.late:
            system.unrounded = True
        elif self.rounded is not None:
            slope = self.rounded.slope(self.optimal.multipliers)
            tilted = _tilted(system, self.optimal.lagrangian, slope, supports, hessian, best.value)
            lost, best = lost + tilted, best._replace(value=best.value + tilted)
        bound = system.objective - system.sign * best.value
        how = best.words
        if system.unrounded:
            how += IN_EXACT_ARITHMETIC
        return Gap(value=best.value, bound=bound, how=how, excess=_excess(system), rounding=lost)

    def _hessian(self, feasible: bool) -> Array | None:
        """The constant Hessian less the forgiven concavity; None if there is none, or if the variables'
        sets alone prove enough."""
        alone = math.inf
        if self.system.projected:
            alone = self._bounded(None, supports_of(self.system, self.analysis, level=feasible)).value
        if not self.parts.convex or not alone > self.enough:
            return None
        hessian = curvature.constant_hessian(
            self.system,
            self.functions,
            self.quadratics,
            self.analysis,
            self.optimal,
            self.meter,
            self.known.hessians,
        )
        if hessian is None:
            return None
        return curvature.less(hessian, self.forgiven)

    def _bounded(self, hessian: Array | None, supports: Mapping[str, list[Support]]) -> _Bound:
        return _bounded(self.system, self.optimal, hessian, supports, self.base, self.forgiven)

    def _within(self, hessian: Array | None, *, level: bool) -> tuple[_Bound, Supports]:
        """The bound over the sets of the variables and, with ``level``, over the level set of the
        objective. Cutting planes and a ball are tried until it is finite."""
        system, known = self.system, self.known
        supports = supports_of(system, self.analysis, level=level)
        bound = self._bounded(hessian, supports)
        if bound.value < math.inf or self.forgiven:
            return bound, supports
        if level not in known.boxes:
            affine = _affine(system, self.analysis)
            known.boxes[level] = cutting_planes.boxes(
                system, supports, self.meter, level=level, affine=affine
            )
        supports |= known.boxes[level]
        bound = self._bounded(hessian, supports)
        if bound.value == math.inf and level:
            if known.radius is None:
                known.radius = growth.radius(system, self.analysis.see, self.meter, curvature.DENSE)
            supports = around(system, supports, known.radius)
            bound = self._bounded(hessian, supports)
        return bound, supports


def _unbounded(system: System, supports: Supports) -> str:
    """Why no gap is certified: nothing bounds the Lagrangian and these variables."""
    names = ", ".join(
        f"`{name}`" for name in system.names if not cutting_planes.bounded(system.point[name], supports[name])
    )
    return (
        "the Lagrangian is not proved to be strongly convex, and no bound on "
        f"{names or 'the variables'} is known"
    )


def _tilted(
    system: System,
    gradient: Array,
    slope: Array,
    supports: Mapping[str, list[Support]],
    hessian: Array | None,
    gap: float,
) -> float:
    """The largest slope . |x - w| over the points x that are no worse than w. That much is added to a
    gap by rounding of the Lagrangian's ``gradient``, at most ``slope`` by entry.

    These points have |x - w| <= 2 sqrt(2 gap) in the norm of the Hessian. With M = D'HD, D the
    diagonal that makes the diagonal of M 1, and mu its least eigenvalue, |D^-1 (x - w)| is at most
    2 sqrt(2 gap / mu). An entry whose gradient has a certain sign in spite of rounding costs only in
    the direction against it.
    """
    low, high = spans(system, supports)
    if hessian is not None:
        if hessian.ndim == 1:
            diagonal = hessian
        else:
            diagonal = np.diag(hessian)
        curved = diagonal > 0
        unit = np.sqrt(diagonal[curved])
        mu = 1.0 if hessian.ndim == 1 else 0.0
        if hessian.ndim == 2 and curved.any():
            block = hessian[np.ix_(curved, curved)] / np.outer(unit, unit)
            mu = float(spectrum(block, CONSTANT)[0][0])
        near = np.full(len(unit), math.inf)
        if mu > 0:
            near = 2 * math.sqrt(2 * max(gap, 0.0) / mu) / unit
        low[curved] = np.minimum(low[curved], near)
        high[curved] = np.minimum(high[curved], near)
    else:
        curved = np.zeros(system.d, dtype=bool)
    far_below = np.where(gradient <= -slope, 0.0, low)
    far_above = np.where(gradient >= slope, 0.0, high)
    far = np.maximum(far_below, far_above)
    here = np.concatenate([system.point[name].numpy().ravel() for name in system.names])
    far = np.where(np.isfinite(far) | curved, far, UNBOUNDED_DISTANCE * np.abs(here))
    return float(slope[slope > 0] @ far[slope > 0])


def _forgiven(system: System, analysis: Analysis, optimal: Optimum) -> float:
    """delta such that the Lagrangian plus delta/2 |x|^2 is proved to be convex: rounding of eigenvalues
    may hide that much concavity."""
    delta, start = analysis.minimised.below.value.rounding, 0
    for constraint in system.problem.constraints:
        facts, count = analysis.constraints[constraint.label], len(members.of(system.bound, constraint))
        weight = float(np.abs(optimal.multipliers[start : start + count]).sum())
        sides = (facts.below, facts.above) if constraint.kind == "eq" else (facts.below,)
        if weight:
            delta += weight * max(side.value.rounding for side in sides)
        start += count
    return delta


def _near(
    system: System,
    functions: list[LagrangianTerm],
    optimal: Optimum,
    analysis: Analysis,
    meter: Meter,
    base: float,
) -> _Bound:
    """``base`` plus the most that the Lagrangian falls from w, by its curvature near w."""
    normals, rest = _normals(system, optimal.lagrangian)
    decrease = local_curvature.fall(system, functions, optimal, rest, analysis.see, meter, curvature.DENSE)
    if decrease is None:
        return _Bound(math.inf, "")
    return _Bound(base + normals + decrease[0], f"strong convexity {decrease[1]:.2g} near this point")


def _normals(system: System, lagrangian: Array) -> tuple[float, Array]:
    """The distances of the simple sets' parts of a gradient from normals, and the gradient without these
    parts.
    """
    if not system.projected:
        return 0.0, lagrangian
    missed = sum(past(system, name, normal) for name, _, normal in system.normals(lagrangian))
    return missed, system.tangent(lagrangian)


def _affine(system: System, analysis: Analysis) -> list[bool]:
    """Whether the objective and each constraint are affine."""
    families = [
        (analysis.constraints[c.label].affine, len(members.of(system.bound, c)))
        for c in system.problem.constraints
    ]
    return [analysis.objective.affine, *(affine for affine, count in families for _ in range(count))]


class _Bound(NamedTuple):
    """An upper bound of the gap, and what proves it."""

    value: float
    words: str


def _bounded(
    system: System,
    optimal: Optimum,
    hessian: Array | None,
    supports: Mapping[str, list[Support]],
    base: float,
    forgiven: float,
) -> _Bound:
    """``base`` plus the most that the Lagrangian falls from w, with curvature and sets that bound the
    variables.

    ``forgiven`` is the concavity that rounding may hide. It adds that much times half the square of
    the distance to w. The ``hessian`` is reduced by it already, so that a fall by curvature alone
    does not pay twice.
    """
    concave = 0.0
    if forgiven:
        concave = forgiven * furthest(system, supports) ** 2 / 2
    direct = reach(system, optimal.lagrangian, supports) + concave
    normals, rest = _normals(system, optimal.lagrangian)
    fall, mu, tail, everywhere = curvature.fall(system, rest, hessian, supports)
    if everywhere:
        curved = fall
    else:
        curved = fall + concave
    words = "bounded variables"
    if mu and direct > curved + normals:
        words = f"strong convexity {mu:.2g}"
        if tail:
            words += " and bounded variables"
    return _Bound(base + min(direct, curved + normals), words)


# -------------------------------------------------------------------------------------------- kinks
def _kinks(system: System, multipliers: Array, analysis: Analysis, parts: WeightedParts) -> None:
    """Raise ``_Refused`` if a kink is no part of a sum: only then do weights of its terms give a
    subgradient of the sum."""
    used: set[int] = set()
    for function, slopes in enumerate(system.slopes):
        if not function or multipliers[system.kept[function - 1]]:
            used |= slopes.keys()
    for record in (system.records[k] for k in sorted(used)):
        if record.near is None and not _part(record.kink, parts, analysis):
            raise _Refused("a function with a kink is inside another function")


def _composed(system: System, analysis: Analysis) -> frozenset[int]:
    """The records that are no parts of the sum or are inside other kinks. They must have weights that
    attain their values, as the chain rule takes them."""
    parts = WeightedParts(see=analysis.see)
    parts.quadratic(system.problem.objective.expr, system.sign)
    for constraint in system.problem.constraints:
        parts.quadratic(constraint.body, 1.0)
    rows = (k for k, record in enumerate(system.records) if record.near is not None)
    inner = {inside for uses in system.inside.values() for _, _, inside, _, _ in uses}
    return frozenset({k for k in rows if not _part(system.records[k].kink, parts, analysis)} | inner)


def _part(kink: Kink, parts: WeightedParts, analysis: Analysis) -> bool:
    """Whether every weighted sum of the terms is a convex part of the sum."""
    return parts.convex and id(kink.node) in parts.leaves and _sound(kink, analysis)


def _sound(kink: Kink, analysis: Analysis) -> bool:
    """Whether every weighted sum of the terms is convex (concave for a minimum)."""
    if kink.smooth:
        return False
    facts = [analysis.see(term) for term in kink.weighed]
    if kink.signed:
        return all(fact.affine for fact in facts)
    if kink.sign > 0:
        return all(fact.convex for fact in facts)
    return all(fact.concave for fact in facts)
