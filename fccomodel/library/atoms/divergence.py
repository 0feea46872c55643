"""Divergences of one distribution from another."""

from math import inf, log, sqrt

import numpy as np

from fccomodel.library.atoms._array import ArrayAtom
from fccomodel.library.atoms.base import Properties
from fccomodel.library.atoms.interval import NONNEGATIVE, POSITIVE, Interval
from fccomodel.library.atoms.shapes import vectors
from fccomodel.library.cones import Affine, Cones


def _kl(q: np.ndarray, p: np.ndarray) -> float:
    with np.errstate(all="ignore"):
        return np.sum(np.where(q > 0, q * np.log(q / p), 0.0))


def _kl_slopes(q: Interval, p: Interval) -> tuple[float, float]:
    """The bounds sup |1 + log(q/p)| and sup q/p of the partial derivatives."""
    if not (p.lo > 0 and q.hi < inf):
        return inf, inf
    if q.lo > 0 and p.hi < inf:
        low = 1 + log(q.lo / p.hi)
    else:
        low = -inf
    return max(abs(low), abs(1 + log(q.hi / p.lo)) if q.hi > 0 else 0.0), q.hi / p.lo


def _kl_bend(varying: tuple[bool, ...], q: Interval, p: Interval) -> float | None:
    """The bound of an entry's Hessian by its trace 1/q + q/p^2; it is singular."""
    if varying[0] and q.has(0):
        return None
    if q.lo > 0:
        first = 1 / q.lo
    else:
        first = inf
    if p.lo > 0:
        second = q.hi / p.lo**2
    else:
        second = inf
    return (first if varying[0] else 0.0) + (second if varying[1] else 0.0)


def _chi2_slope(q: Interval, p: Interval, size: float) -> float:
    if p.lo > 0:
        return 2 * max(q.hi - p.lo, p.hi - q.lo) / p.lo * sqrt(size)
    return inf


def _chi2_slope_in_p(q: Interval, p: Interval, size: float) -> float:
    if p.lo > 0:
        return max(1.0, (q.mag / p.lo) ** 2 - 1) * sqrt(size)
    return inf


def _chi2_bend(varying: tuple[bool, ...], q: Interval, p: Interval) -> float:
    """The bound of an entry's Hessian by its trace 2/p + 2 q^2/p^3; it is singular."""
    if p.lo <= 0:
        return inf
    return (2 / p.lo if varying[0] else 0.0) + (2 * q.mag**2 / p.lo**3 if varying[1] else 0.0)


def _cone_of_kl(k: Cones, q: Affine, p: Affine) -> Affine:
    """The conic program, entry by entry: q exp(-t / q) <= p."""
    t = k.variable((q + p).shape)
    k.exponential(-t, q, p)
    return t.upper().sum(-1)


def _cone_of_chi2(k: Cones, q: Affine, p: Affine) -> Affine:
    """The conic program, entry by entry: t p >= (q - p)^2."""
    t = k.variable((q + p).shape)
    k.quotient(t, p, q - p)
    return t.upper().sum(-1)


kl = ArrayAtom(
    name="kl",
    meaning="the Kullback-Leibler divergence, the sum of q[i] log(q[i]/p[i])",
    tex=r"\mathrm{KL}\left(<0> \,\middle\|\, <1>\right)",
    arguments=("q", "p"),
    reference=_kl,
    rule=vectors("kl"),
    torch="(torch.special.xlogy({0}, {0}) - torch.special.xlogy({0}, {1})).sum(-1)",
    derivative=("dy * (1 + log(q / p))", "-dy * q / p"),
    generator="t * log(t)",
    domain=(NONNEGATIVE, POSITIVE),
    cone=_cone_of_kl,
    homogeneous=1,
    properties=Properties(
        curvature="convex",
        monotone=("none", "decreasing"),
        lipschitz=(
            lambda q, p, size: _kl_slopes(q, p)[0] * sqrt(size),
            lambda q, p, size: _kl_slopes(q, p)[1] * sqrt(size),
        ),
        gradient_lipschitz=_kl_bend,
    ),
)
chi2 = ArrayAtom(
    name="chi2",
    meaning="the chi-squared divergence, the sum of (q[i] - p[i])^2 / p[i]",
    tex=r"\chi^2\left(<0> \,\middle\|\, <1>\right)",
    arguments=("q", "p"),
    reference=lambda q, p: np.sum((q - p) ** 2 / p),
    rule=vectors("chi2"),
    torch="(({0} - {1}).square() / {1}).sum(-1)",
    derivative=("2 * dy * (q / p - 1)", "dy * (1 - (q / p)^2)"),
    generator="square(t - 1)",
    domain=(None, POSITIVE),
    cone=_cone_of_chi2,
    homogeneous=1,
    properties=Properties(
        curvature="convex",
        lipschitz=(_chi2_slope, _chi2_slope_in_p),
        gradient_lipschitz=_chi2_bend,
        range=NONNEGATIVE,
    ),
)
