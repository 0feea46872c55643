"""``+``, ``-``, ``*``, ``/`` and the sign."""

from math import inf
from typing import Any

from fccomodel.library.atoms.base import Properties
from fccomodel.library.atoms.interval import Interval, apart, times
from fccomodel.library.atoms.scalar import ScalarAtom
from fccomodel.library.cones import Affine, Cones


def _sloped(factor: Interval) -> str:
    """The monotonicity of multiplication by a factor."""
    if factor.lo == factor.hi == 0:
        return "constant"
    if factor.lo >= 0:
        return "increasing"
    if factor.hi <= 0:
        return "decreasing"
    return "none"


def _reciprocal(v: Interval) -> Interval:
    if v.lo < 0 < v.hi or v.is_point and v.lo == 0:
        return Interval()
    if v.hi == 0:
        low = -inf
    else:
        low = 1 / v.hi
    if v.lo == 0:
        high = inf
    else:
        high = 1 / v.lo
    return Interval(low, high)


def _flipped(u: Interval) -> str:
    return {"increasing": "decreasing", "decreasing": "increasing"}.get(_sloped(u), _sloped(u))


def _quotient_curvature(varying: tuple[bool, ...], u: Interval, v: Interval) -> str:
    if not varying[1]:
        if varying[0]:
            return "affine"
        return "constant"
    if varying[0] or v.lo < 0 < v.hi:
        return "none"
    numerator = {"increasing": 1, "decreasing": -1, "constant": 0}.get(_sloped(u))
    if numerator is None:
        return "none"
    sign = numerator * (1 if v.lo >= 0 else -1)
    return {1: "convex", -1: "concave", 0: "constant"}[sign]


def _quotient_smoothness(varying: tuple[bool, ...], u: Interval, v: Interval) -> float:
    if not varying[1]:
        return 0.0
    if v.mig == 0:
        return inf
    second = 2 * u.mag / v.mig**3
    if not varying[0]:
        return second
    return second + 1 / v.mig**2


add = ScalarAtom(
    name="add",
    symbol="+",
    meaning="u + v",
    tex=r"1 <0:1> + <1:1>",
    arguments=("u", "v"),
    formula="u + v",
    torch="({0} + {1})",
    derivative=("1", "1"),
    properties=Properties(
        curvature="affine",
        monotone="increasing",
        lipschitz=1.0,
        gradient_lipschitz=0.0,
        range=lambda u, v: Interval(u.lo + v.lo, u.hi + v.hi, u.lo_open or v.lo_open, u.hi_open or v.hi_open),
    ),
)
sub = ScalarAtom(
    name="sub",
    symbol="-",
    meaning="u - v",
    tex=r"1 <0:1> - <1:2>",
    arguments=("u", "v"),
    formula="u - v",
    torch="({0} - {1})",
    derivative=("1", "-1"),
    properties=Properties(
        curvature="affine",
        monotone=("increasing", "decreasing"),
        lipschitz=1.0,
        gradient_lipschitz=0.0,
        range=lambda u, v: Interval(u.lo - v.hi, u.hi - v.lo, u.lo_open or v.hi_open, u.hi_open or v.lo_open),
    ),
)
neg = ScalarAtom(
    name="neg",
    symbol="-",
    meaning="-u",
    tex=r"1 -<0:2>",
    arguments=("u",),
    formula="-u",
    torch="(-{0})",
    derivative=("-1",),
    properties=Properties(
        curvature="affine",
        monotone="decreasing",
        lipschitz=1.0,
        gradient_lipschitz=0.0,
        range=lambda u: Interval(-u.hi, -u.lo, u.hi_open, u.lo_open),
    ),
)
mul = ScalarAtom(
    name="mul",
    symbol="*",
    meaning="u v",
    tex=r"2 <0:2>\, <1:2>",
    arguments=("u", "v"),
    formula="u * v",
    torch="({0} * {1})",
    derivative=("v", "u"),
    properties=Properties(
        curvature=lambda varying, u, v: "none" if all(varying) else "affine",
        monotone=(lambda u, v: _sloped(v), lambda u, v: _sloped(u)),
        lipschitz=(lambda u, v: v.mag, lambda u, v: u.mag),
        gradient_lipschitz=lambda varying, u, v: 1.0 if all(varying) else 0.0,
        range=times,
    ),
)


def _cone_of_quotient(k: Cones, u: Any, v: Affine) -> Affine:
    """The conic program of u / v: u t with t v >= 1."""
    t = k.variable(v.shape)
    k.quotient(t, v, 1.0)
    return t.upper() * u


div = ScalarAtom(
    name="div",
    symbol="/",
    meaning="u / v",
    tex=r"2 \frac{<0>}{<1>}",
    arguments=("u", "v"),
    formula="u / v",
    torch="({0} / {1})",
    derivative=("1 / v", "-y / v"),
    nonzero=(1,),
    even=True,
    cone=_cone_of_quotient,
    properties=Properties(
        curvature=_quotient_curvature,
        monotone=(
            lambda u, v: _sloped(_reciprocal(v)),
            lambda u, v: "none" if v.lo < 0 < v.hi else _flipped(u),
        ),
        lipschitz=(
            lambda u, v: 1 / v.mig if v.mig else inf,
            lambda u, v: u.mag / v.mig**2 if v.mig else inf,
        ),
        gradient_lipschitz=_quotient_smoothness,
        range=lambda u, v: apart(times(u, _reciprocal(v)), not u.has(0)),
    ),
)
