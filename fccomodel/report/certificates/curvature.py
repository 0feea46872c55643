"""Strong convexity of a Lagrangian everywhere: the constant Hessian of its quadratic parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from fccomodel.core import ir
from fccomodel.core.work import Meter
from fccomodel.evaluation.memory import common
from fccomodel.report.certificates.support_functions import Support, reach
from fccomodel.report.kkt import lagrangian
from fccomodel.report.kkt.lagrangian import LagrangianTerm
from fccomodel.report.kkt.optimality import Optimum
from fccomodel.report.point.system import System
from fccomodel.report.quadratic_parts import WeightedParts
from fccomodel.structure import Analysis

Array = np.ndarray
#: Entries up to which a full Hessian is made.
DENSE = 400
#: Hessians by their quadratic parts and the weights of these.
Hessians = dict[tuple, Array]


def constant_hessian(
    system: System,
    functions: list[LagrangianTerm],
    quadratics: list[ir.Expr | None],
    analysis: Analysis,
    optimal: Optimum,
    meter: Meter,
    known: Hessians,
) -> Array | None:
    """The Hessian of the quadratic parts: a matrix, or, if that takes too much work, the diagonal for
    squares of whole variables. None if there are no quadratic parts.

    ``known`` holds the Hessians found so far, by their parts: multipliers without a quadratic part
    share one.
    """
    work = 3 * system.forward_s * system.d
    dense = system.d <= DENSE and work < meter.left
    if not dense:
        plain = WeightedParts(see=analysis.see, plain=True)
        quadratics = [plain.quadratic(root.expr, root.sign) for root in functions]
    terms = [(root, q) for root, q in zip(functions, quadratics, strict=True) if q is not None]
    if dense:
        weights = _curving(system, optimal, analysis)
    else:
        weights = []
    if not terms and not weights:
        return None
    if not dense:
        ends = [lagrangian.gradient(system, terms, at) for at in (np.ones(system.d), np.zeros(system.d))]
        return np.maximum(ends[0] - ends[1], 0.0)
    key = (
        *((id(root.expr), _bytes(root.weights)) for root, _ in terms),
        *((k, _bytes(factors)) for k, factors in weights),
    )
    if key not in known:
        known[key] = _of_terms(system, terms, weights, lambda: meter.spend(work))
    return known[key]


def _of_terms(
    system: System, terms: list[lagrangian.Term], weights: lagrangian.Weights, spend: Callable[[], None]
) -> Array:
    """The Hessian of quadratic terms and kinks.

    Terms that stand so in the objective keep theirs for solves with other params, if they have none
    of these, and with the same draws.

    spend   records the work, if there is any
    """

    def made() -> Array:
        """The Hessian by second derivatives."""
        spend()
        return lagrangian.curvature(system, terms, weights)

    as_written = all(
        root.constraint is None and any(q is node for node in ir.walk(root.expr)) for root, q in terms
    )
    if weights or not as_written:
        return made()
    key = ("constant Hessian", system.seed, *((q, root.sign) for root, q in terms))
    return common(system.bound, key, [q for _, q in terms], made)


def less(hessian: Array, concavity: float) -> Array:
    """The Hessian of the function minus ``concavity``/2 |x|^2: a matrix, or a diagonal."""
    if not concavity:
        return hessian
    if hessian.ndim == 1:
        return hessian - concavity
    return hessian - concavity * np.eye(len(hessian))


def _curving(system: System, optimal: Optimum, analysis: Analysis) -> list[tuple[int, Array]]:
    """The weights of kinks whose terms are quadratic, not all of them affine: phi >= q.t, and the Hessian
    of q.t is constant."""
    curved_parts = []
    for k, weights in optimal.weights:
        weighed = system.records[k].kink.weighed
        if all(analysis.see(term).affine for term in weighed):
            continue
        parts = WeightedParts(see=analysis.see)
        for term in weighed:
            parts.quadratic(term, system.records[k].kink.sign)
        if not parts.higher and weights.any():
            curved_parts.append((k, weights))
    return curved_parts


def _bytes(weights: Array | None) -> bytes:
    """The weights as a key."""
    if weights is None:
        return b""
    return weights.tobytes()


class Fall(NamedTuple):
    """The largest ``rest . (w - x) - (x - w)'H(x - w)/2``.

    size        its value
    curvature   the least curvature that is used
    distances   whether the variables' sets are used too
    everywhere  whether the curvature holds in every direction
    """

    size: float
    curvature: float
    distances: bool
    everywhere: bool


def fall(system: System, rest: Array, hessian: Array | None, supports: Mapping[str, list[Support]]) -> Fall:
    """The most that a function falls from w, by its Hessian and over the variables' sets; ``rest`` is
    its gradient at w."""
    if hessian is None:
        return Fall(reach(system, rest, supports), 0.0, True, False)
    if hessian.ndim == 1:
        return _fall_by_diagonal(system, rest, hessian, supports)
    return _fall_by_matrix(system, rest, hessian, supports)


def _fall_by_diagonal(
    system: System, rest: Array, values: Array, supports: Mapping[str, list[Support]]
) -> Fall:
    """The fall by a diagonal Hessian: for each variable by its curvature or by its sets."""
    total, tail = 0.0, np.zeros_like(rest)
    for name, at in system.split(np.arange(system.d, dtype=float)).items():
        places = at.long().numpy().ravel()
        alone = np.where(np.isin(np.arange(system.d), places), rest, 0.0)
        curved = math.inf
        if (values[places] > 0).all():
            curved = float((rest[places] ** 2 / (2 * values[places])).sum())
        own = {name: supports[name]} | {other: [] for other in system.names if other != name}
        if reach(system, alone, own) <= curved:
            tail += alone
        else:
            total += curved
    used = values[(values > 0) & (tail == 0)]
    if len(used):
        least = float(used.min())
    else:
        least = 0.0
    everywhere = bool((values > 0).all()) and not tail.any()
    return Fall(total + reach(system, tail, supports), least, bool(tail.any()), everywhere)


def _fall_by_matrix(
    system: System, rest: Array, hessian: Array, supports: Mapping[str, list[Support]]
) -> Fall:
    """The fall by a Hessian: by curvature along the first eigenvectors, and by the sets along the rest;
    the number of the first ones that gives the least bound is used.

    Entries are scaled to curvature 1, so that their units do not matter.
    """
    unit = np.sqrt(np.where(np.diag(hessian) > 0, np.diag(hessian), 1.0))
    values, vectors = lagrangian.spectrum(hessian / np.outer(unit, unit), lagrangian.CONSTANT)
    values, vectors = values[::-1], vectors[:, ::-1]
    along = vectors.T @ (rest / unit)
    definite = int((values > 0).sum())
    best, used, tailed = reach(system, rest, supports), 0, True
    for count in sorted({definite, *np.linspace(1, definite, min(definite, 30), dtype=int)} - {0}):
        tail = np.zeros(system.d)
        if count < system.d:
            tail = unit * (vectors[:, count:] @ along[count:])
        decrease = float((along[:count] ** 2 / (2 * values[:count])).sum())
        size = decrease + reach(system, tail, supports)
        if size < best:
            best, used, tailed = size, count, bool(tail.any())
    if not used:
        return Fall(best, 0.0, True, False)
    inverse_root = vectors[:, :used] / np.sqrt(values[:used]) / unit[:, None]
    mu = 1 / np.linalg.norm(inverse_root, 2) ** 2
    return Fall(best, float(mu), tailed, used == system.d)
