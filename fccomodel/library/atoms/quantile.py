"""``pinball`` (quantile regression) and ``eps_insensitive`` (support vector regression)."""

from math import inf

from fccomodel.library.atoms.base import Properties
from fccomodel.library.atoms.interval import NONNEGATIVE, UNIT, Interval, product
from fccomodel.library.atoms.scalar import ScalarAtom
from fccomodel.library.atoms.shapes import valley


def _check(x: float, tau: float) -> float:
    if x >= 0:
        return product(tau, x)
    return product(tau - 1, x)


def _pinball_range(u: Interval, tau: Interval) -> Interval:
    ends = [_check(x, t) for x in u[:2] for t in tau[:2]]
    return Interval(0.0 if u.lo <= 0 <= u.hi else min(ends), max(ends))


def _pinball_steepness(u: Interval, tau: Interval) -> float:
    right = tau.hi if u.hi > 0 else 0.0
    if u.lo < 0:
        left = 1 - tau.lo
    else:
        left = 0.0
    return max(left, right)


pinball = ScalarAtom(
    name="pinball",
    meaning="tau u for u >= 0, (tau - 1) u for u < 0",
    tex=r"\rho_{<1>}\left(<0>\right)",
    arguments=("u", "tau"),
    parameters=("tau",),
    formula="Max(tau * u, (tau - 1) * u)",
    torch="({1} * {0} + (-{0}).relu())",
    derivative=("tau - 1 + step(u)",),
    domain=(None, UNIT),
    graph=lambda tau: (((0.0, tau - 1), (0.0, tau)), 0.0, 0.0),
    conjugate="0",
    homogeneous=1,
    properties=Properties(
        curvature=lambda u, tau: "affine" if u.lo >= 0 or u.hi <= 0 else "convex",
        monotone=valley,
        lipschitz=_pinball_steepness,
        gradient_lipschitz=0.0,
        range=_pinball_range,
    ),
    cite="R. Koenker, G. Bassett, Regression quantiles, Econometrica 46 (1978)",
)


def _insensitive_curvature(u: Interval, eps: Interval) -> str:
    if u.mag <= eps.lo:
        return "constant"
    if u.mig >= eps.hi:
        return "affine"
    return "convex"


def _insensitive_monotone(u: Interval, eps: Interval) -> str:
    if u.mag <= eps.lo:
        return "constant"
    return valley(Interval(u.lo + eps.lo, u.hi - eps.lo))


def _insensitive_range(u: Interval, eps: Interval) -> Interval:
    if eps.hi < inf:
        low = max(u.mig - eps.hi, 0.0)
    else:
        low = 0.0
    return Interval(low, max(u.mag - eps.lo, 0.0))


eps_insensitive = ScalarAtom(
    name="eps_insensitive",
    meaning="max(0, |u| - eps)",
    arguments=("u", "eps"),
    parameters=("eps",),
    formula="Max(0, Abs(u) - eps)",
    torch="({0}.abs() - {1}).relu()",
    derivative=("step(u - eps) - step(-u - eps)",),
    domain=(None, NONNEGATIVE),
    graph=lambda eps: (((-eps, -1.0), (-eps, 0.0), (eps, 0.0), (eps, 1.0)), 0.0, 0.0),
    conjugate="eps * abs(s)",
    even=True,
    properties=Properties(
        curvature=_insensitive_curvature,
        monotone=_insensitive_monotone,
        lipschitz=lambda u, eps: 0.0 if u.mag <= eps.lo else 1.0,
        gradient_lipschitz=0.0,
        range=_insensitive_range,
    ),
)
