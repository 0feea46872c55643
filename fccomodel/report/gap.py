"""How far a point's objective can be above the optimum of a convex problem: a lower bound from the Lagrangian, proved.

With multipliers nu (>= 0 for inequalities), s a subgradient of ``L = f + nu.c`` at w up to ``missed``, H the constant Hessian of
the quadratic parts of L, and n normals of the simple sets X at w, every feasible x has

    f(x) >= L(x) >= f(w) + nu.c(w) - missed + s.(x - w) + (x - w)'H(x - w)/2,      n.x <= support of X at n.

The right side is minimised over all x where H is definite (strong convexity), and over the sets, norms and level sets that bound
the variables in the other directions (Nesterov, Lectures on Convex Optimization, 2018, sections 2.1.3 and 3.1.2). The level set
of the objective at w holds every optimum only if w is feasible: elsewhere a bound from it says no more than that the gap is at
most the larger of it and 0. Where that proves little, curvature near w may prove more (``nearby``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import torch

from fccomodel.core import ir
from fccomodel.core.work import Meter
from fccomodel.evaluation import members
from fccomodel.library.sets import SimpleSet
from fccomodel.report import nearby, sublevels
from fccomodel.report.kinks import Kink
from fccomodel.report.lagrangian import Root, curvature, gradient, roots
from fccomodel.report.optimality import Optimum, optimum
from fccomodel.report.parts import Parts, Size, sizes
from fccomodel.report.rows import Gradients
from fccomodel.report.system import System
from fccomodel.structure import Analysis
from fccomodel.structure.facts import Standing

Array = np.ndarray
#: A violation of no more than this counts as none.
ALLOWED = 1e-3
Support = Callable[[torch.Tensor], float]
#: Entries up to which a full Hessian is made; the share of its largest eigenvalue that counts as zero; a sum's rounding.
DENSE, ROUNDING, PRECISION = 400, 1e-10, 1e-14
#: A gap by bounds of the variables that curvature need not make smaller: relative to the objective, or to this size of one.
NEGLIGIBLE, LEAST = 1e-8, 1e-2
BEYOND = "numbers at this point are beyond those of double precision"
#: the support function of a norm's unit ball, by the shape of its dual's
SUPPORTS: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "box": lambda s: s.abs().max(),
    "ball": lambda s: s.norm(),
    "cross": lambda s: s.abs().sum(),
    "spectral": lambda s: torch.linalg.matrix_norm(s, 2),
}


@dataclass(frozen=True, kw_only=True)
class Gap:
    """How far a point's objective can be from the optimum.

    value   an upper bound of the minimised objective less its optimum; None where nothing is proved, ``why`` says what is missing
    bound   what the optimum, in the model's own sense, cannot pass
    how     what proves it
    loose   by the range of the objective alone, or with subgradients other than the best: no evidence against the point
    excess  the largest violation of a constraint at the point
    """

    value: float | None = None
    bound: float | None = None
    how: str = ""
    why: str = ""
    loose: bool = False
    excess: float = 0.0

    def __str__(self) -> str:
        if self.value is None:
            return f"no gap is certified: {self.why}"
        if self.value < 0 and self.excess <= ALLOWED:
            worth = f"a violation of {self.excess:.1e} makes the objective {-self.value:.1e} better than the optimum's or more"
            return f"gap <= 0, proved ({self.how}); {worth}"
        if self.value < 0:
            return f"the optimum is worse than this by at least {-self.value:.1e}, proved ({self.how}): constraints are violated"
        return f"gap <= {_up(self.value)}, proved ({self.how})"


def _up(value: float) -> str:
    """Two digits, rounded up."""
    if value == 0:
        return "0"
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return f"{math.ceil(value / unit * (1 - 1e-12)) * unit:.1e}"


#: Hessians by the quadratic parts that they are of, with their weights.
Hessians = dict[tuple, Array]


@dataclass(frozen=True)
class Known:
    """What several candidates share: Hessians, and intervals of the variables, without the objective's level set and with it."""

    hessians: Hessians = field(default_factory=dict)
    boxes: dict[bool, dict[str, list[Support]]] = field(default_factory=dict)


class _Refused(Exception):
    """Why nothing is certified."""


def certify(system: System, shared: Gradients, analysis: Analysis, candidates: list[Optimum], meter: Meter) -> Gap:
    """The least gap that some of the candidates' multipliers prove, or the range of the objective; none where something that the
    variables do not decide is perhaps not defined."""
    if doubt := _doubt(analysis):
        return Gap(why=doubt)
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
            gaps.append(replace(_with(system, analysis, candidate, meter, known), loose=bool(composed)))
        except _Refused as refusal:
            why = str(refusal)
    return _closest(*gaps, _by_range(system, analysis, "" if gaps else why))


def _closest(*gaps: Gap) -> Gap:
    known = [gap if _known(gap) else Gap(why=BEYOND) for gap in gaps]
    return min(known, key=lambda gap: math.inf if gap.value is None else gap.value)


def _known(gap: Gap) -> bool:
    return gap.value is None or math.isfinite(gap.value)


def _doubt(analysis: Analysis) -> str:
    """What is not proved to be defined whatever the variables are: of draws, or of data that could not be tried."""
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
    how = f"the objective is at {end} {system.sign * fact.value.lo:.3g}" + (f"; nothing closer: {why}" if why else "")
    value = system.sign * system.objective - fact.value.lo
    return Gap(value=value, bound=system.sign * fact.value.lo, how=how, loose=True, excess=_excess(system))


def _excess(system: System) -> float:
    return max([0.0, system.outside, *system.violations])


def _convex(analysis: Analysis) -> None:
    facts = {"the objective": (analysis.minimised, False)}
    facts |= {f"`{c.label}`": (analysis.constraints[c.label], c.kind == "eq") for c in analysis.problem.constraints}
    for name, (fact, equation) in facts.items():
        if not (fact.affine if equation else fact.convex):
            raise _Refused(f"{name} is not proved to be {'affine' if equation else 'convex'}")
        if fact.below.standing > Standing.BOUNDED:
            raise _Refused(f"that {name} is convex is {fact.below.standing}, not proved")


def _admissible(system: System, optimal: Optimum) -> bool:
    return all(equal or nu >= 0 for equal, nu in zip(system.equal, optimal.multipliers, strict=True))


def _with(system: System, analysis: Analysis, optimal: Optimum, meter: Meter, known: Known) -> Gap:
    functions = roots(system, optimal.multipliers)
    parts = Parts(see=analysis.see)
    quadratics = [parts.quadratic(root.expr, root.sign) for root in functions]
    _kinks(system, optimal.multipliers, analysis, parts)
    base = optimal.missed - float(optimal.multipliers @ system.values)
    base += PRECISION * (abs(system.objective) + float(np.abs(optimal.multipliers * system.values).sum()))
    feasible = _excess(system) <= 0
    bent, alone = None, math.inf
    if system.projected:
        alone = _bounded(system, optimal, None, _supports(system, analysis, level=feasible), base).value
    if parts.convex and alone > NEGLIGIBLE * max(abs(system.objective), LEAST):
        bent = _hessian(system, functions, quadratics, analysis, optimal, meter, known.hessians)

    def within(level: bool) -> tuple[_Bound, dict[str, list[Support]]]:
        supports = _supports(system, analysis, level=level)
        found = _bounded(system, optimal, bent, supports, base)
        if found.value < math.inf:
            return found, supports
        if level not in known.boxes:
            known.boxes[level] = sublevels.boxes(system, supports, meter, level=level, affine=_affine(system, analysis))
        supports |= known.boxes[level]
        return _bounded(system, optimal, bent, supports, base), supports

    best, supports = within(level=feasible)
    if not feasible:
        # An optimum that is no worse than w is in the level set of w; if it is worse, the gap is below 0.
        near, _ = within(level=True)
        best = min(best, near._replace(value=max(near.value, 0.0)))
    if parts.convex and best.value > NEGLIGIBLE * max(abs(system.objective), LEAST):
        best = min(best, _near(system, functions, optimal, analysis, meter, base))
    if best.value == math.inf:
        names = ", ".join(f"`{name}`" for name in system.names if not sublevels.bounded(system.point[name], supports[name]))
        raise _Refused(f"the Lagrangian is not proved to be strongly convex, and no bound on {names or 'the variables'} is known")
    words = best.words + (", for the draws of this report" if system.evaluator.sampled else "")
    return Gap(value=best.value, bound=system.objective - system.sign * best.value, how=words, excess=_excess(system))


def _near(
    system: System, functions: list[Root], optimal: Optimum, analysis: Analysis, meter: Meter, base: float
) -> _Bound:
    """``base`` and the most that the Lagrangian falls from w, by its curvature near w."""
    normals, rest = _normals(system, optimal.lagrangian)
    found = nearby.fall(system, functions, optimal, rest, analysis.see, meter, DENSE)
    if found is None:
        return _Bound(math.inf, "")
    return _Bound(base + normals + found[0], f"strong convexity {found[1]:.2g} near this point")


def _normals(system: System, lagrangian: Array) -> tuple[float, Array]:
    """By how much the normals of sets in a gradient miss to be normals, and the gradient without them."""
    if not system.projected:
        return 0.0, lagrangian
    return sum(_past(system, name, normal) for name, _, normal in system.normals(lagrangian)), system.tangent(lagrangian)


def _affine(system: System, analysis: Analysis) -> list[bool]:
    """Of the objective and of every constraint."""
    families = [(analysis.constraints[c.label].affine, len(members.of(system.bound, c))) for c in system.problem.constraints]
    return [analysis.objective.affine, *(affine for affine, count in families for _ in range(count))]


class _Bound(NamedTuple):
    """An upper bound of the gap, and what proves it."""

    value: float
    words: str


def _bounded(
    system: System, optimal: Optimum, hessian: Array | None, supports: Mapping[str, list[Support]], base: float
) -> _Bound:
    """``base`` and the most that the Lagrangian falls from w over what bounds the variables: curvature, and sets."""
    direct = _reach(system, optimal.lagrangian, supports)
    normals, rest = _normals(system, optimal.lagrangian)
    curved, mu, tail = _curved(system, rest, hessian, supports)
    words = f"strong convexity {mu:.2g}" if mu and direct > curved + normals else "bounded variables"
    words += " and bounded variables" if tail and not words.startswith("bounded") else ""
    return _Bound(base + min(direct, curved + normals), words)


# ------------------------------------------------------------------------------------------------------------------- kinks
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
    """The records of rows that are no part of the sum, and those inside other kinks: of them the chain rule takes weights that
    attain the value."""
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
    return not kink.smooth and all(f.affine if kink.signed else f.convex if kink.sign > 0 else f.concave for f in facts)


def _curving(system: System, optimal: Optimum, analysis: Analysis) -> list[tuple[int, Array]]:
    """The weights of the kinks whose terms are quadratic: phi >= q.t, whose Hessian is a constant."""
    kept = []
    for k, weights in optimal.weights:
        parts = Parts(see=analysis.see)
        for term in system.records[k].kink.weighed:
            parts.quadratic(term, system.records[k].kink.sign)
        if not parts.higher and weights.any():
            kept.append((k, weights))
    return kept


# ------------------------------------------------------------------------------------------------------- bounded variables
def _supports(system: System, analysis: Analysis, *, level: bool) -> dict[str, list[Support]]:
    """Of sets that each variable of an optimum lies in: its own, and norms that a constraint or, with ``level``, the objective of
    a point no worse than w bounds."""
    supports: dict[str, list[Support]] = {name: [] for name in system.names}
    for name in system.names:
        for simple, args in system.sets_of(name):
            supports[name].append(partial(_support, simple, args))
    levels = [(system.problem.objective.expr, system.sign, system.sign * system.objective)] if level else []
    for c in system.problem.constraints:
        levels += [] if c.binders else [(c.body, sign, 0.0) for sign in ((1.0,) if c.kind == "le" else (1.0, -1.0))]
    for expr, sign, value in levels:
        for size in sizes(expr, sign, value, analysis.see):
            if size.radius < math.inf:
                supports[size.variable].append(partial(_norm_ball, size))
    return supports


def _support(simple: SimpleSet, args: tuple, s: torch.Tensor) -> float:
    return float(simple.support(s, *args))


def _norm_ball(size: Size, s: torch.Tensor) -> float:
    return size.radius * float(SUPPORTS[size.ball](s))


def _reach(system: System, gradient: Array, supports: Mapping[str, list[Support]]) -> float:
    """The largest ``gradient . (w - x)`` over all x in the sets."""
    total = 0.0
    for name, part in system.split(gradient).items():
        if bool(part.any()):
            furthest = min((h(-part) for h in supports[name]), default=math.inf)
            total += max(0.0, furthest + float((part * system.point[name]).sum()))
    return total


def _past(system: System, name: str, normals: list[torch.Tensor]) -> float:
    """By how much normals at w miss to be normals: the largest n.(x - w) over the sets."""
    pairs = zip(system.sets_of(name), normals, strict=True)
    return sum(max(0.0, float(simple.support(n, *args)) - float((n * system.point[name]).sum())) for (simple, args), n in pairs)


# -------------------------------------------------------------------------------------------------------- strong convexity
def _hessian(
    system: System,
    functions: list[Root],
    quadratics: list[ir.Expr | None],
    analysis: Analysis,
    optimal: Optimum,
    meter: Meter,
    known: Hessians,
) -> Array | None:
    """The Hessian of the quadratic parts: a matrix, or where that is much work its diagonal for squares of whole variables.
    ``known`` has those found already, which other multipliers do not change where no quadratic part is theirs."""
    work = 3 * system.forward_s * system.d
    dense = system.d <= DENSE and work < meter.left
    if not dense:
        plain = Parts(see=analysis.see, plain=True)
        quadratics = [plain.quadratic(root.expr, root.sign) for root in functions]
    terms = [(root, q) for root, q in zip(functions, quadratics, strict=True) if q is not None]
    weights = _curving(system, optimal, analysis) if dense else []
    if not terms and not weights:
        return None
    if not dense:
        difference = gradient(system, terms, np.ones(system.d)) - gradient(system, terms, np.zeros(system.d))
        return np.maximum(difference, 0.0)
    key = (*((id(root.expr), _bytes(root.weights)) for root, _ in terms), *((k, _bytes(factors)) for k, factors in weights))
    if key not in known:
        meter.spend(work)
        known[key] = curvature(system, terms, weights)
    return known[key]


def _bytes(weights: Array | None) -> bytes:
    return b"" if weights is None else weights.tobytes()


def _curved(
    system: System, rest: Array, hessian: Array | None, supports: Mapping[str, list[Support]]
) -> tuple[float, float, bool]:
    """The largest ``rest . (w - x) - (x - w)'H(x - w)/2``, the least curvature used, and whether distances were used too."""
    if hessian is None:
        return _reach(system, rest, supports), 0.0, True
    if hessian.ndim == 1:
        values, total, tail = hessian, 0.0, np.zeros_like(rest)
        for name, at in system.split(np.arange(system.d, dtype=float)).items():
            places = at.long().numpy().ravel()
            alone = np.where(np.isin(np.arange(system.d), places), rest, 0.0)
            curved = float((rest[places] ** 2 / (2 * values[places])).sum()) if (values[places] > 0).all() else math.inf
            if _reach(system, alone, {name: supports[name]} | {n: [] for n in system.names if n != name}) <= curved:
                tail += alone
            else:
                total += curved
        used = values[(values > 0) & (tail == 0)]
        return total + _reach(system, tail, supports), float(used.min(initial=math.inf)) if len(used) else 0.0, bool(tail.any())
    unit = np.sqrt(np.where(np.diag(hessian) > 0, np.diag(hessian), 1.0))  # of each entry, so that scales do not matter
    values, vectors = np.linalg.eigh(hessian / np.outer(unit, unit))
    values, vectors = values[::-1] - ROUNDING * max(values[-1], 0.0), vectors[:, ::-1]
    along = vectors.T @ (rest / unit)
    definite = int((values > 0).sum())
    best, used, tailed = _reach(system, rest, supports), 0, True
    for count in sorted({definite, *np.linspace(1, definite, min(definite, 30), dtype=int)} - {0}):
        tail = unit * (vectors[:, count:] @ along[count:]) if count < system.d else np.zeros(system.d)
        size = float((along[:count] ** 2 / (2 * values[:count])).sum()) + _reach(system, tail, supports)
        if size < best:
            best, used, tailed = size, count, bool(tail.any())
    if not used:
        return best, 0.0, True
    mu = 1 / np.linalg.norm(vectors[:, :used] / np.sqrt(values[:used]) / unit[:, None], 2) ** 2
    return best, float(mu), tailed
