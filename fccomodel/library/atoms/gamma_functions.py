"""``lgamma`` and its derivative ``digamma``."""

from math import inf, lgamma, log

from fccomodel.library.atoms.base import Properties
from fccomodel.library.atoms.interval import POSITIVE, Interval
from fccomodel.library.atoms.scalar import ScalarAtom
from fccomodel.library.atoms.shapes import through

#: The number at which ``lgamma`` has its minimum.
LOWEST_POINT = 1.4616321449683623
#: From here on the asymptotic series below are exact to double precision.
SERIES_FROM = 12.0


def _digamma(x: float) -> float:
    """The derivative of lgamma, by its recurrence and its asymptotic series."""
    if x <= 0:
        return -inf
    if x == inf:
        return inf
    below = 0.0
    while x < SERIES_FROM:
        below -= 1 / x
        x += 1
    t = 1 / (x * x)
    return below + log(x) - 0.5 / x - t * (1 / 12 - t * (1 / 120 - t * (1 / 252 - t * (1 / 240 - t / 132))))


def _trigamma(x: float) -> float:
    """The second derivative of lgamma."""
    if x <= 0:
        return inf
    if x == inf:
        return 0.0
    below = 0.0
    while x < SERIES_FROM:
        below += x**-2 if x > 1e-150 else inf
        x += 1
    t = 1 / (x * x)
    series = 1 / 6 - t * (1 / 30 - t * (1 / 42 - t * (1 / 30 - t * 5 / 66)))
    return below + (1 + (0.5 + series / x) / x) / x


def _third(x: float) -> float:
    """The size of the third derivative of lgamma."""
    if x <= 0:
        return inf
    if x == inf:
        return 0.0
    below = 0.0
    while x < SERIES_FROM:
        below += 2 * x**-3 if x > 1e-100 else inf
        x += 1
    t = 1 / (x * x)
    return below + t * (1 + 1 / x + t * (0.5 - t * (1 / 6 - t * (1 / 6 - t * (0.3 - t * 5 / 6)))))


def _value(x: float) -> float:
    if x <= 0:
        return inf
    try:
        return lgamma(x)
    except OverflowError:  # beyond the largest number of double precision
        return inf


def _monotone(u: Interval) -> str:
    if u.lo >= LOWEST_POINT:
        return "increasing"
    if u.hi <= LOWEST_POINT:
        return "decreasing"
    return "none"


def _range(u: Interval) -> Interval:
    ends = _value(u.lo), _value(u.hi)
    return Interval(_value(LOWEST_POINT) if u.has(LOWEST_POINT) else min(ends), max(ends))


lgamma_ = ScalarAtom(
    name="lgamma",
    meaning="the logarithm of the gamma function of u > 0, log((u - 1)!) of a whole number",
    tex=r"\log\Gamma\left(<0>\right)",
    arguments=("u",),
    formula="loggamma(u)",
    torch="{0}.where({0} > 0, float('nan')).lgamma()",
    derivative=("digamma(u)",),
    domain=(POSITIVE,),
    near="lgamma(u + r)",
    properties=Properties(
        curvature="convex",
        monotone=_monotone,
        lipschitz=lambda u: max(abs(_digamma(u.lo)), abs(_digamma(u.hi))),
        gradient_lipschitz=lambda u: _trigamma(u.lo),
        range=_range,
    ),
)
digamma = ScalarAtom(
    name="digamma",
    meaning="the derivative of lgamma(u), for u > 0",
    tex=r"\psi\left(<0>\right)",
    arguments=("u",),
    formula="polygamma(0, u)",
    torch="{0}.where({0} > 0, float('nan')).digamma()",
    derivative=("trigamma(u)",),
    domain=(POSITIVE,),
    near="digamma(u + r)",
    properties=Properties(
        curvature="concave",
        monotone="increasing",
        lipschitz=lambda u: _trigamma(u.lo),
        gradient_lipschitz=lambda u: _third(u.lo),
        range=through(_digamma),
    ),
)
trigamma = ScalarAtom(
    name="trigamma",
    meaning="the second derivative of lgamma(u), for u > 0",
    tex=r"\psi_1\left(<0>\right)",
    arguments=("u",),
    formula="polygamma(1, u)",
    torch="torch.special.zeta(2.0, {0}.where({0} > 0, float('nan')))",
    derivative=(),
    domain=(POSITIVE,),
    internal=True,
    near="trigamma(u + r)",
    properties=Properties(
        curvature="convex",
        monotone="decreasing",
        lipschitz=lambda u: _third(u.lo),
        gradient_lipschitz=lambda u: inf if u.lo <= 1e-70 else 6 * u.lo**-4 + 6 * u.lo**-3,
        range=lambda u: Interval(_trigamma(u.hi), _trigamma(u.lo), lo_open=u.hi == inf),
    ),
)
