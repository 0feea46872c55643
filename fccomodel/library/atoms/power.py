"""``u^p``, the square and the reciprocal."""

from math import inf
from typing import Any

from fccomodel.library.atoms.base import Properties, Site
from fccomodel.library.atoms.interval import NONNEGATIVE, POSITIVE, Interval, apart
from fccomodel.library.atoms.scalar import ScalarAtom
from fccomodel.library.atoms.shapes import valley
from fccomodel.library.cones import Affine, Cones


def _power(x: float, p: float) -> float:
    """The power x^p at an end of an interval: inf instead of an overflow or a pole."""
    if x == 0:
        if p > 0:
            return 0.0
        if p == 0:
            return 1.0
        return inf
    try:
        return abs(x) ** p * (-1 if x < 0 and p % 2 == 1 else 1)
    except OverflowError:
        return inf


def _domain(u: Interval, p: Interval) -> tuple[Interval | None, Interval | None]:
    if not p.is_point:
        return (POSITIVE, None)
    if p.lo == int(p.lo):
        return (None, None)
    return (NONNEGATIVE if p.lo > 0 else POSITIVE, None)


def _curvature(u: Interval, p: Interval) -> str:
    if p.is_point and p.lo in (0, 1):
        if p.lo:
            return "affine"
        return "constant"
    if u.lo >= 0:
        if p.lo >= 1 or p.hi <= 0:
            return "convex"
        if 0 <= p.lo and p.hi <= 1:
            return "concave"
        return "none"
    if not p.is_point or p.lo != int(p.lo):
        return "none"
    if p.lo > 0 and p.lo % 2 == 0 or p.lo % 2 == 0 and u.hi <= 0:
        return "convex"
    if u.hi <= 0:
        return "concave"
    return "none"


def _monotone(u: Interval, p: Interval) -> str:
    if p.is_point and p.lo == 0:
        return "constant"
    if u.lo >= 0:
        if p.lo >= 0:
            return "increasing"
        if p.hi <= 0:
            return "decreasing"
        return "none"
    if not p.is_point or p.lo != int(p.lo):
        return "none"
    if p.lo > 0 and p.lo % 2 == 1:
        return "increasing"
    if u.hi <= 0:
        if p.lo < 0 and p.lo % 2 == 0:
            return "increasing"
        return "decreasing"
    return "none"


def _steepness(u: Interval, p: float, order: int) -> float:
    """The largest |d^order/du^order u^p| for order 1 or 2."""
    if order == 1:
        factor = abs(p)
    else:
        factor = abs(p * (p - 1))
    if factor == 0:
        return 0.0
    power = p - order
    if u.lo >= 0 or p == int(p):
        return factor * _power(u.mag if power >= 0 else u.mig, power)
    return inf


def _smoothness(u: Interval, p: Interval) -> float | None:
    if not p.is_point:
        if u.positive or p.lo >= 1:
            return inf
        return None
    if u.lo <= 0 < p.lo < 1 and u.has(0):
        return None
    if u.has(0) and 1 < p.lo < 2:
        return inf
    return abs(_steepness(u, p.lo, 2))


def _range(u: Interval, p: Interval) -> Interval:
    """The range of a power, which is 0 only where its base is."""
    return apart(_closed_range(u, p), not u.has(0))


def _closed_range(u: Interval, p: Interval) -> Interval:
    if not p.is_point:
        if u.lo >= 0:
            return NONNEGATIVE
        return Interval()
    if u.lo < 0 < u.hi and p.lo < 0:
        if p.lo % 2 == 0:
            return NONNEGATIVE
        return Interval()
    if p.lo != int(p.lo) and u.lo < 0:
        u = Interval(0.0, max(u.hi, 0.0))
    ends = [_power(u.lo, p.lo), _power(u.hi, p.lo)]
    if p.lo < 0 and u.hi == 0 and p.lo % 2 == 1:
        ends[1] = -inf
    if u.lo < 0 < u.hi and p.lo % 2 == 0:
        ends.append(0.0 if p.lo else 1.0)
    return Interval(min(ends), max(ends))


def _torch(site: Site) -> str:
    special = {
        0.5: "{0}.sqrt()",
        1.0: "{0}",
        2.0: "{0}.square()",
        -1.0: "{0}.reciprocal()",
        -0.5: "{0}.rsqrt()",
    }
    exponent = site.numbers[1]
    if site.python[0]:
        return "(({0}) ** {1})"
    if exponent is None:
        return "({0} ** {1})"
    return special.get(
        exponent, f"({{0}} ** {exponent:g})" if float(f"{exponent:g}") == exponent else "({0} ** {1})"
    )


def _derivative(site: Site) -> tuple[str, ...]:
    exponent = site.numbers[1]
    derivatives = {0.0: "0", 0.5: "0.5 / y", 1.0: "1", 2.0: "2 * u", -1.0: "-y^2", 3.0: "3 * u^2"}
    if exponent is not None and exponent in derivatives:
        first = derivatives[exponent]
    elif exponent is not None and exponent < 0:
        first = "v * y / u"
    else:
        first = "v * u^(v - 1)"
    return (first,)


def _cone(k: Cones, u: Affine, p: Any) -> Affine | None:
    """The conic program by power cones: an even power is one of |u|, others need u >= 0."""
    p = float(p)
    if p == 2:
        return k.squares(u.unsqueeze(-1))
    if 0 < p < 1:
        t = k.variable(u.shape)
        k.power(u, 1.0, t, p)
        return t.lower()
    if p < 0:
        t = k.variable(u.shape)
        k.power(t, u, 1.0, 1 / (1 - p))
        return t.upper()
    if p <= 1:
        return None
    if p % 2:
        k.nonneg(u)
    return k.powers(u, p)


def _reciprocal(k: Cones, u: Affine) -> Affine:
    """The conic program: t u >= 1."""
    t = k.variable(u.shape)
    k.quotient(t, u, 1.0)
    return t.upper()


pow = ScalarAtom(
    name="pow",
    symbol="^",
    meaning="u^v; v is constant",
    tex=r"3 <0:4>^{<1>}",
    arguments=("u", "v"),
    parameters=("v",),
    formula="u ** v",
    torch=_torch,
    derivative=_derivative,
    domain=_domain,
    nonzero=lambda u, p: (0,) if p.lo < 0 else (),
    cone=_cone,
    properties=Properties(
        curvature=_curvature,
        monotone=_monotone,
        lipschitz=lambda u, p: _steepness(u, p.lo, 1) if p.is_point else inf,
        gradient_lipschitz=_smoothness,
        range=_range,
    ),
    instead={
        "convex": "an odd power is convex for a base >= 0: state its sign where it is declared, or write "
        "pos(u)^p."
    },
)
square = ScalarAtom(
    name="square",
    meaning="u^2",
    tex=r"3 <0:4>^{2}",
    arguments=("u",),
    formula="u ** 2",
    torch="{0}.square()",
    derivative=("2 * u",),
    graph=(((0.0, 0.0),), 2.0, 2.0),
    conjugate="s^2 / 4",
    cone=lambda k, u: k.squares(u.unsqueeze(-1)),
    homogeneous=2,
    even=True,
    properties=Properties(
        curvature="convex",
        monotone=valley,
        lipschitz=lambda u: 2 * u.mag,
        gradient_lipschitz=2.0,
        range=lambda u: apart(Interval(u.mig**2, u.mag**2), not u.has(0)),
    ),
    instead={
        "convex": "square(u) is convex for affine u, convex u >= 0, or concave u <= 0: use sqhinge(u) "
        "for [u]_+ squared."
    },
)


def _inv_curvature(u: Interval) -> str:
    if u.lo >= 0:
        return "convex"
    if u.hi <= 0:
        return "concave"
    return "none"


inv = ScalarAtom(
    name="inv",
    meaning="1/u; of a square matrix its inverse",
    tex=r"2 \frac{1}{<0>}",
    arguments=("u",),
    formula="1 / u",
    torch="{0}.reciprocal()",
    derivative=("-y^2",),
    nonzero=(0,),
    cone=_reciprocal,
    properties=Properties(
        curvature=_inv_curvature,
        monotone=lambda u: "none" if u.lo < 0 < u.hi else "decreasing",
        lipschitz=lambda u: u.mig**-2 if u.mig else inf,
        gradient_lipschitz=lambda u: 2 * u.mig**-3 if u.mig else inf,
        range=lambda u: _range(u, Interval.point(-1.0)),
    ),
    instead={
        "convex": "1/u is convex for concave u > 0 (and concave for convex u < 0): state the sign of u "
        "in its declaration."
    },
)
