"""How far a point's objective can be above the optimum of a convex problem: a lower bound from the
Lagrangian, proved.

With multipliers nu (>= 0 for inequalities), s a subgradient of ``L = f + nu.c`` at w up to
``missed``, H the constant Hessian of the quadratic parts of L, and n normals of the simple sets X
at w, every feasible x has

    f(x) >= L(x) >= f(w) + nu.c(w) - missed + s.(x - w) + (x - w)'H(x - w)/2,      n.x <= support of X at n.

The right side is minimised over all x where H is definite (strong convexity), and over the sets,
norms and level sets that bound the variables in the other directions (Nesterov, Lectures on Convex
Optimization, 2018, sections 2.1.3 and 3.1.2). The level set of the objective at w holds every
optimum only if w is feasible: elsewhere a bound from it says no more than that the gap is at most
the larger of it and 0. Where that proves little, curvature near w may prove more (``nearby``).
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
from fccomodel.report.kkt.lagrangian import CONSTANT, Root, roots, spectrum
from fccomodel.report.kkt.optimality import Optimum, optimum
from fccomodel.report.new_rows.sampling import Noise
from fccomodel.report.point.rows import Gradients
from fccomodel.report.point.system import System
from fccomodel.report.quadratic_parts import Parts
from fccomodel.structure import Analysis
from fccomodel.structure.facts import Standing

Array = np.ndarray
#: A violation of no more than this counts as none.
ALLOWED = 1e-3
#: A sum's rounding, where nothing closer is known.
PRECISION = 1e-14
#: The rounding of the end of an interval, relative to itself.
RANGE_ROUNDING = 4e-15
#: How far entries that nothing bounds are taken to be from the optimum, relative to themselves, for
#: the rounding of their slopes.
FAR = 1e3
#: The share of a gap from which on its text says how much of it may be rounding.
MUCH = 0.1
#: A gap by bounds of the variables that curvature need not make smaller: relative to the objective,
#: or to this size of one.
NEGLIGIBLE, LEAST = 1e-8, 1e-2
BEYOND = "numbers at this point are beyond those of double precision"


@dataclass(frozen=True, kw_only=True)
class Gap:
    """How far a point's objective can be from the optimum.

    value   an upper bound of the minimised objective less its optimum; None where nothing is
            proved, ``why`` says what is missing
    bound   what the optimum, in the model's own sense, cannot pass
    how     what proves it
    loose   by the range of the objective alone, or with subgradients other than the best: no
            evidence against the point
    excess  the largest violation of a constraint at the point
    draws   how many of a distribution it is from: it is an estimate then, and there is no bound; 0
            where nothing is drawn
    error   the objective's standard error, by the draws
    rounding  how much of the value stands for rounding of numbers that cancel
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
        if self.rounding > MUCH * self.value > 0:
            cancels = f"; {_up(self.rounding)} of it for rounding"
        else:
            cancels = ""
        return f"gap <= {_up(self.value)}, proved ({self.how}{cancels})"


def _up(value: float) -> str:
    """Two digits, rounded up."""
    if value == 0:
        return "0"
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return f"{math.ceil(value / unit * (1 - 1e-12)) * unit:.1e}"


@dataclass
class Known:
    """What several candidates share: Hessians, intervals of the variables, without the objective's
    level set and with it, and the radius of a ball around w that holds that set; the least gap."""

    hessians: curvature.Hessians = field(default_factory=dict)
    boxes: dict[bool, dict[str, list[Support]]] = field(default_factory=dict)
    radius: float | None = None
    least: float = math.inf


class _Refused(Exception):
    """Why nothing is certified."""


def certify(
    system: System,
    shared: Gradients,
    analysis: Analysis,
    candidates: list[Optimum],
    meter: Meter,
    noise: Noise | None = None,
    rounded: Rounding | None = None,
) -> Gap:
    """The least gap that some of the candidates' multipliers prove, or the range of the objective.

    None where something that the variables do not decide is perhaps not defined.

    noise    the standard errors of draws: the gap is an estimate then
    rounded  bounds of the rounding at the point, which are part of the gap
    """
    found = _certified(system, shared, analysis, candidates, meter, rounded)
    if noise is None or found.value is None:
        return found
    return replace(found, bound=None, draws=noise.count, error=noise.objective)


def _certified(
    system: System,
    shared: Gradients,
    analysis: Analysis,
    candidates: list[Optimum],
    meter: Meter,
    rounded: Rounding | None,
) -> Gap:
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
    known, gaps, why = Known(), list[Gap](), "no multipliers"
    for candidate in admissible:
        try:
            gaps.append(
                replace(_with(system, analysis, candidate, meter, known, rounded), loose=bool(composed))
            )
            known.least = min(known.least, gaps[-1].value or 0.0)
        except _Refused as refusal:
            why = str(refusal)
    return _closest(*gaps, _by_range(system, analysis, "" if gaps else why))


def _closest(*gaps: Gap) -> Gap:
    known = [gap if _known(gap) else Gap(why=BEYOND) for gap in gaps]
    return min(known, key=lambda gap: math.inf if gap.value is None else gap.value)


def _known(gap: Gap) -> bool:
    return gap.value is None or math.isfinite(gap.value)


def _doubt(analysis: Analysis) -> str:
    """What is not proved to be defined whatever the variables are: of draws, or of data that could not
    be tried."""
    for facts in (analysis.objective, *analysis.constraints.values()):
        for condition in facts.domain:
            if not ir.variables_of(condition.subject):
                return f"{condition.reason}: `{analysis.problem.text(condition.subject)}`"
    return ""


def _by_range(system: System, analysis: Analysis, why: str) -> Gap:
    """By the proved range of the objective; ``why`` nothing closer is proved."""
    fact = analysis.minimised.interval
    if fact.value.lo == -math.inf or fact.standing > Standing.BOUNDED:
        return Gap(why=why)
    end = "least" if system.sign > 0 else "most"
    how = f"the objective is at {end} {system.sign * fact.value.lo:.3g}" + (
        f"; nothing closer: {why}" if why else ""
    )
    low = fact.value.lo - RANGE_ROUNDING * abs(fact.value.lo)
    value = system.level - low
    bound, excess = system.sign * low, _excess(system)
    return Gap(value=value, bound=bound, how=how, loose=True, excess=excess, rounding=system.rounding)


def _excess(system: System) -> float:
    return max([0.0, system.outside, *system.violations])


def _convex(analysis: Analysis) -> None:
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
    return all(equal or nu >= 0 for equal, nu in zip(system.equal, optimal.multipliers, strict=True))


def _with(
    system: System, analysis: Analysis, optimal: Optimum, meter: Meter, known: Known, rounded: Rounding | None
) -> Gap:
    functions = roots(system, optimal.multipliers)
    parts = Parts(see=analysis.see)
    quadratics = [parts.quadratic(root.expr, root.sign) for root in functions]
    _kinks(system, optimal.multipliers, analysis, parts)
    base = optimal.missed - float(optimal.multipliers @ system.values)
    base += PRECISION * (abs(system.objective) + float(np.abs(optimal.multipliers * system.values).sum()))
    if rounded is None:
        lost = 0.0
    else:
        lost = rounded.lost(optimal.multipliers)
    base += lost
    feasible = _excess(system) <= 0
    bent, alone, forgiven = None, math.inf, _forgiven(system, analysis, optimal)
    if system.projected:
        alone = _bounded(
            system, optimal, None, supports_of(system, analysis, level=feasible), base, forgiven
        ).value
    if parts.convex and alone > NEGLIGIBLE * max(abs(system.objective), LEAST):
        bent = curvature.constant_hessian(
            system, functions, quadratics, analysis, optimal, meter, known.hessians
        )
        if bent is None:
            bent = None
        else:
            bent = curvature.less(bent, forgiven)

    def within(level: bool) -> tuple[_Bound, dict[str, list[Support]]]:
        supports = supports_of(system, analysis, level=level)
        found = _bounded(system, optimal, bent, supports, base, forgiven)
        if found.value < math.inf or forgiven:
            return found, supports
        if level not in known.boxes:
            known.boxes[level] = cutting_planes.boxes(
                system, supports, meter, level=level, affine=_affine(system, analysis)
            )
        supports |= known.boxes[level]
        found = _bounded(system, optimal, bent, supports, base, forgiven)
        if found.value == math.inf and level:
            if known.radius is None:
                known.radius = growth.radius(system, analysis.see, meter, curvature.DENSE)
            supports = around(system, supports, known.radius)
            found = _bounded(system, optimal, bent, supports, base, forgiven)
        return found, supports

    best, supports = within(level=feasible)
    if not feasible:
        # An optimum that is no worse than w is in the level set of w; if it is worse, the gap is below 0.
        near, _ = within(level=True)
        best = min(best, near._replace(value=max(near.value, 0.0)))
    enough = NEGLIGIBLE * max(abs(system.objective), LEAST)
    if parts.convex and not forgiven and best.value - base > enough and not 0 <= known.least <= enough:
        best = min(best, _near(system, functions, optimal, analysis, meter, base))
    if best.value == math.inf:
        names = ", ".join(
            f"`{name}`"
            for name in system.names
            if not cutting_planes.bounded(system.point[name], supports[name])
        )
        raise _Refused(
            "the Lagrangian is not proved to be strongly convex, and no bound on "
            f"{names or 'the variables'} is known"
        )
    if rounded is not None:
        tilted = _tilted(
            system, optimal.lagrangian, rounded.slope(optimal.multipliers), supports, bent, best.value
        )
        lost, best = lost + tilted, best._replace(value=best.value + tilted)
    bound = system.objective - system.sign * best.value
    return Gap(value=best.value, bound=bound, how=best.words, excess=_excess(system), rounding=lost)


def _tilted(
    system: System,
    gradient: Array,
    slope: Array,
    supports: Mapping[str, list[Support]],
    hessian: Array | None,
    gap: float,
) -> float:
    """What rounding of the Lagrangian's ``gradient``, at most ``slope`` by entry, adds to a gap.

    It is slope . |x - w| over the points x that are no worse than w.

    These have |x - w| <= 2 sqrt(2 gap) in the norm of the Hessian. With M = D'HD, D the diagonal
    that makes the diagonal of M 1, and mu its least eigenvalue, |D^-1 (x - w)| is at most that by
    sqrt(mu). An entry whose gradient has a sign in spite of rounding costs only where it goes
    against it.
    """
    low, high = spans(system, supports)
    if hessian is not None:
        if hessian.ndim == 1:
            diagonal = hessian
        else:
            diagonal = np.diag(hessian)
        curved = diagonal > 0
        unit = np.sqrt(diagonal[curved])
        if hessian.ndim == 2:
            block = hessian[np.ix_(curved, curved)] / np.outer(unit, unit)
        else:
            block = None
        if block is None:
            mu = 1.0
        elif curved.any():
            mu = float(spectrum(block, CONSTANT)[0][0])
        else:
            mu = 0.0
        if mu > 0:
            near = 2 * math.sqrt(2 * max(gap, 0.0) / mu) / unit
        else:
            near = np.full(len(unit), math.inf)
        low[curved], high[curved] = np.minimum(low[curved], near), np.minimum(high[curved], near)
    else:
        curved = np.zeros(system.d, dtype=bool)
    far = np.maximum(np.where(gradient <= -slope, 0.0, low), np.where(gradient >= slope, 0.0, high))
    here = np.concatenate([system.point[name].numpy().ravel() for name in system.names])
    far = np.where(np.isfinite(far) | curved, far, FAR * np.abs(here))
    return float(slope[slope > 0] @ far[slope > 0])


def _forgiven(system: System, analysis: Analysis, optimal: Optimum) -> float:
    """delta such that the Lagrangian plus delta/2 |x|^2 is proved to be convex: what rounding of
    eigenvalues may hide."""
    delta, start = analysis.minimised.below.value.rounding, 0
    for constraint in system.problem.constraints:
        facts, count = analysis.constraints[constraint.label], len(members.of(system.bound, constraint))
        weight = float(np.abs(optimal.multipliers[start : start + count]).sum())
        sides = (facts.below, facts.above) if constraint.kind == "eq" else (facts.below,)
        if weight:
            delta += weight * max(side.value.rounding for side in sides)
        else:
            delta += 0.0
        start += count
    return delta


def _near(
    system: System, functions: list[Root], optimal: Optimum, analysis: Analysis, meter: Meter, base: float
) -> _Bound:
    """``base`` and the most that the Lagrangian falls from w, by its curvature near w."""
    normals, rest = _normals(system, optimal.lagrangian)
    found = local_curvature.fall(system, functions, optimal, rest, analysis.see, meter, curvature.DENSE)
    if found is None:
        return _Bound(math.inf, "")
    return _Bound(base + normals + found[0], f"strong convexity {found[1]:.2g} near this point")


def _normals(system: System, lagrangian: Array) -> tuple[float, Array]:
    """By how much the normals of sets in a gradient miss to be normals, and the gradient without them."""
    if not system.projected:
        return 0.0, lagrangian
    return sum(past(system, name, normal) for name, _, normal in system.normals(lagrangian)), system.tangent(
        lagrangian
    )


def _affine(system: System, analysis: Analysis) -> list[bool]:
    """Of the objective and of every constraint."""
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
    """``base`` and the most that the Lagrangian falls from w over what bounds the variables:
    curvature, and sets.

    ``forgiven`` is the concavity that rounding may hide: it adds that much times half the square of
    the distance to w. The ``hessian`` is less it already, so that a fall by curvature alone does
    not pay twice.
    """
    if forgiven:
        concave = forgiven * furthest(system, supports) ** 2 / 2
    else:
        concave = 0.0
    direct = reach(system, optimal.lagrangian, supports) + concave
    normals, rest = _normals(system, optimal.lagrangian)
    fall, mu, tail, everywhere = curvature.fall(system, rest, hessian, supports)
    if everywhere:
        curved = fall
    else:
        curved = fall + concave
    if mu and direct > curved + normals:
        words = f"strong convexity {mu:.2g}"
    else:
        words = "bounded variables"
    words += " and bounded variables" if tail and not words.startswith("bounded") else ""
    return _Bound(base + min(direct, curved + normals), words)


# -------------------------------------------------------------------------------------------- kinks
def _kinks(system: System, multipliers: Array, analysis: Analysis, parts: Parts) -> None:
    """Weights of a kink's terms give a subgradient of a sum of which the kink is a part."""
    used: set[int] = set()
    for function, slopes in enumerate(system.slopes):
        if not function or multipliers[system.kept[function - 1]]:
            used |= slopes.keys()
    for record in (system.records[k] for k in sorted(used)):
        if record.near is None and not _part(record.kink, parts, analysis):
            raise _Refused("a function with a kink is inside another function")


def _composed(system: System, analysis: Analysis) -> frozenset[int]:
    """The records of rows that are no part of the sum, and those inside other kinks: of them the chain
    rule takes weights that attain the value."""
    parts = Parts(see=analysis.see)
    parts.quadratic(system.problem.objective.expr, system.sign)
    for constraint in system.problem.constraints:
        parts.quadratic(constraint.body, 1.0)
    rows = (k for k, record in enumerate(system.records) if record.near is not None)
    inner = {inside for uses in system.inside.values() for _, _, inside, _, _ in uses}
    return frozenset({k for k in rows if not _part(system.records[k].kink, parts, analysis)} | inner)


def _part(kink: Kink, parts: Parts, analysis: Analysis) -> bool:
    """Every weighted sum of the terms is a convex part of the sum."""
    return parts.convex and id(kink.node) in parts.leaves and _sound(kink, analysis)


def _sound(kink: Kink, analysis: Analysis) -> bool:
    """Every weighted sum of the terms is convex (concave for a minimum)."""
    facts = [analysis.see(term) for term in kink.weighed]
    return not kink.smooth and all(
        f.affine if kink.signed else f.convex if kink.sign > 0 else f.concave for f in facts
    )
