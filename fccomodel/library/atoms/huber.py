"""The Huber function."""

from math import inf

from fccomodel.library.atoms.base import Properties
from fccomodel.library.atoms.interval import POSITIVE, Interval
from fccomodel.library.atoms.scalar import ScalarAtom
from fccomodel.library.atoms.shapes import valley


def _huber(x: float, delta: float) -> float:
    if x <= delta:
        return x * x / 2
    return delta * (x - delta / 2)


huber = ScalarAtom(
    name="huber",
    meaning="u^2/2 for |u| <= delta, delta (|u| - delta/2) beyond",
    tex=r"H_{<1>}\left(<0>\right)",
    arguments=("u", "delta"),
    parameters=("delta",),
    formula="Piecewise((u**2 / 2, Abs(u) <= delta), (delta * (Abs(u) - delta / 2), True))",
    torch="({0}.abs().clamp(max={1}) * ({0}.abs() - {0}.abs().clamp(max={1}) / 2))",
    derivative=("clip(u, -delta, delta)",),
    domain=(None, POSITIVE),
    graph=lambda delta: (((-delta, -delta), (delta, delta)), 0.0, 0.0),
    conjugate="s^2 / 2",
    even=True,
    near="huber(u, delta - r)",
    properties=Properties(
        curvature=lambda u, delta: "affine" if u.mig >= delta.hi < inf else "convex",
        monotone=valley,
        lipschitz=lambda u, delta: min(u.mag, delta.hi),
        gradient_lipschitz=lambda u, delta: 0.0 if u.mig >= delta.hi < inf else 1.0,
        range=lambda u, delta: Interval(_huber(u.mig, max(delta.lo, 0.0)), _huber(u.mag, delta.hi)),
    ),
    cite="P. J. Huber, Robust estimation of a location parameter, Annals of Mathematical Statistics 35 "
    "(1964)",
)
