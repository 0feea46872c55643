"""``logaddexp``: the sum of two numbers that are known by their logarithms."""

from math import exp, inf, log1p

from fccomodel.library import cones
from fccomodel.library.atoms.base import Properties, Site
from fccomodel.library.atoms.interval import Interval
from fccomodel.library.atoms.scalar import ScalarAtom


def _value(u: float, v: float) -> float:
    top = max(u, v)
    if abs(top) == inf:
        return top
    return top + log1p(exp(-abs(u - v)))


def _torch(site: Site) -> str:
    if site.python[0]:
        return "torch.nn.functional.softplus({1} - {0}, threshold=40).add({0})"
    if site.python[1]:
        return "torch.nn.functional.softplus({0} - {1}, threshold=40).add({1})"
    return "torch.logaddexp({0}, {1})"


def _cone(k: cones.Cones, u: cones.Affine, v: cones.Affine) -> cones.Affine:
    """The conic program: exp(u - t) + exp(v - t) <= 1."""
    t = k.variable((u + v).shape)
    k.nonneg(1.0 - cones.exponentials(k, u - t) - cones.exponentials(k, v - t))
    return t.upper()


logaddexp = ScalarAtom(
    name="logaddexp",
    meaning="log(e^u + e^v), of numbers of any size",
    arguments=("u", "v"),
    formula="logaddexp(u, v)",
    torch=_torch,
    derivative=("exp(u - y)", "exp(v - y)"),
    cone=_cone,
    properties=Properties(
        curvature="convex",
        monotone="increasing",
        lipschitz=1.0,
        gradient_lipschitz=0.5,
        range=lambda u, v: Interval(_value(u.lo, v.lo), _value(u.hi, v.hi)),
    ),
)
