"""The square root."""

from math import inf, sqrt

from fccomodel.library.atoms.base import Properties
from fccomodel.library.atoms.interval import NONNEGATIVE, Interval
from fccomodel.library.atoms.scalar import ScalarAtom
from fccomodel.library.atoms.shapes import through
from fccomodel.library.cones import Affine, Cones


def _cone(k: Cones, u: Affine) -> Affine:
    """The conic program: t^2 <= u."""
    t = k.variable(u.shape)
    k.quotient(u, 1.0, t)
    return t.lower()


def _bend(u: Interval) -> float | None:
    if u.has(0):
        return None
    if u.lo > 0:
        return 0.25 * u.lo**-1.5
    return inf


sqrt_ = ScalarAtom(
    name="sqrt",
    meaning="the square root of u >= 0",
    tex=r"\sqrt{<0>}",
    arguments=("u",),
    formula="sqrt(u)",
    torch="{0}.sqrt()",
    derivative=("0.5 / y",),
    domain=(NONNEGATIVE,),
    cone=_cone,
    properties=Properties(
        curvature="concave",
        monotone="increasing",
        lipschitz=lambda u: 0.5 / sqrt(u.lo) if u.lo > 0 else inf,
        gradient_lipschitz=_bend,
        range=through(lambda x: sqrt(max(x, 0.0))),
    ),
    instead={
        "convex": "sqrt of a sum of squares of affine functions is a norm: write sqrt(square(a) + "
        "square(b)) or norm2(concat(a, b)).",
    },
)
