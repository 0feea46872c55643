"""``logcosh``: a smooth absolute value."""

from math import exp, log, log1p

from fccomodel.library import cones
from fccomodel.library.atoms.base import Properties
from fccomodel.library.atoms.interval import Interval
from fccomodel.library.atoms.scalar import ScalarAtom
from fccomodel.library.atoms.shapes import valley


def _value(x: float) -> float:
    return abs(x) + log1p(exp(-2 * abs(x))) - log(2)


def _slope(x: float) -> float:
    """tanh |x|"""
    return (1 - exp(-2 * abs(x))) / (1 + exp(-2 * abs(x)))


def _cone(k: cones.Cones, u: cones.Affine) -> cones.Affine:
    """The conic program: exp(u - t) + exp(-u - t) <= 2."""
    t = k.variable(u.shape)
    k.nonneg(2.0 - cones.exponentials(k, u - t) - cones.exponentials(k, -1.0 * u - t))
    return t.upper()


logcosh = ScalarAtom(
    name="logcosh",
    meaning="log((e^u + e^-u) / 2): u^2/2 near 0, |u| - log(2) far away",
    tex=r"\log\cosh\left(<0>\right)",
    arguments=("u",),
    formula="logaddexp(u, -u) - log(2)",
    torch="({0}.abs() + torch.nn.functional.softplus(-2 * {0}.abs(), threshold=40) - 0.6931471805599453)",
    derivative=("tanh(u)",),
    cone=_cone,
    even=True,
    steady=2.0,
    properties=Properties(
        curvature="convex",
        monotone=valley,
        lipschitz=lambda u: _slope(u.mag),
        gradient_lipschitz=lambda u: 1 - _slope(u.mig) ** 2,
        range=lambda u: Interval(_value(u.mig), _value(u.mag)),
    ),
)
