"""Divergences of one distribution from another."""

from math import inf, sqrt

import numpy as np

from fccomodel.atoms._base import ArrayAtom, Properties
from fccomodel.atoms._interval import NONNEGATIVE, POSITIVE, Interval
from fccomodel.atoms._shapes import vectors


def _kl(q: np.ndarray, p: np.ndarray) -> float:
    with np.errstate(all="ignore"):
        return np.sum(np.where(q > 0, q * np.log(q / p), 0.0))


def _chi2_slope(q: Interval, p: Interval, size: float) -> float:
    return 2 * max(q.hi - p.lo, p.hi - q.lo) / p.lo * sqrt(size) if p.lo > 0 else inf


kl = ArrayAtom(
    name="kl",
    meaning="the Kullback-Leibler divergence, the sum of q[i] log(q[i]/p[i])",
    arguments=("q", "p"),
    reference=_kl,
    rule=vectors("kl"),
    torch="(torch.special.xlogy({0}, {0}) - torch.special.xlogy({0}, {1})).sum(-1)",
    derivative=("dy * (1 + log(q / p))", "-dy * q / p"),
    domain=(NONNEGATIVE, POSITIVE),
    properties=Properties(
        curvature="convex",
        monotone=("none", "decreasing"),
        gradient_lipschitz=lambda varying, q, p: None if q.has(0) and varying[0] else inf,
    ),
)
chi2 = ArrayAtom(
    name="chi2",
    meaning="the chi-squared divergence, the sum of (q[i] - p[i])^2 / p[i]",
    arguments=("q", "p"),
    reference=lambda q, p: np.sum((q - p) ** 2 / p),
    rule=vectors("chi2"),
    torch="(({0} - {1}).square() / {1}).sum(-1)",
    derivative=("2 * dy * (q / p - 1)", "dy * (1 - (q / p)^2)"),
    domain=(None, POSITIVE),
    properties=Properties(
        curvature="convex",
        lipschitz=(_chi2_slope, inf),
        gradient_lipschitz=lambda varying, q, p: 2 / p.lo if p.lo > 0 and not varying[1] else inf,
        range=NONNEGATIVE,
    ),
)
