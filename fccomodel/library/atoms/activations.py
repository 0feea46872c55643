"""Smooth activations: ``silu`` and ``elu``."""

from math import expm1

from fccomodel.library.atoms.base import Properties
from fccomodel.library.atoms.interval import Interval
from fccomodel.library.atoms.scalar import ScalarAtom
from fccomodel.library.atoms.shapes import logistic, safe_exp, through
from fccomodel.library.cones import Affine, Cones, exponentials

#: where silu'' = 0: u tanh(u/2) = 2; silu is convex from -_INFLECTION to _INFLECTION, concave outside
_INFLECTION = 2.3993572805154675
#: the minimiser of silu
_MINIMISER = -1.278464542761074
#: the minimum of silu
_MINIMUM = -0.27846454276107385
#: the largest slope of silu, at _INFLECTION
_STEEPEST = 1.0998393201288668


def _silu(x: float) -> float:
    if x > -700:
        return x * logistic(x)
    return 0.0


def _silu_curvature(u: Interval) -> str:
    if -_INFLECTION <= u.lo and u.hi <= _INFLECTION:
        return "convex"
    if u.hi <= -_INFLECTION or u.lo >= _INFLECTION:
        return "concave"
    return "none"


def _silu_monotone(u: Interval) -> str:
    if u.lo >= _MINIMISER:
        return "increasing"
    if u.hi <= _MINIMISER:
        return "decreasing"
    return "none"


def _silu_range(u: Interval) -> Interval:
    ends = (_silu(u.lo), _silu(u.hi))
    low, high = min(ends), max(ends)
    if u.lo <= _MINIMISER <= u.hi:
        low = _MINIMUM
    if u.lo < _MINIMISER:
        high = max(high, 0.0)
    return Interval(low, high)


silu = ScalarAtom(
    name="silu",
    meaning="u sigmoid(u)",
    arguments=("u",),
    formula="u / (1 + exp(-u))",
    torch="torch.nn.functional.silu({0})",
    derivative=("sigmoid(u) + y * sigmoid(-u)",),
    properties=Properties(
        curvature=_silu_curvature,
        monotone=_silu_monotone,
        lipschitz=_STEEPEST,
        gradient_lipschitz=0.5,
        range=_silu_range,
    ),
)


def _cone_of_elu(k: Cones, u: Affine) -> Affine:
    """The conic program of ``elu``: the least exp(a) - 1 + u - a over a <= u."""
    a = k.variable(u.shape)
    k.nonneg(u - a)
    return exponentials(k, a) - 1.0 + u - a


elu = ScalarAtom(
    name="elu",
    meaning="u for u > 0, e^u - 1 otherwise",
    arguments=("u",),
    formula="Max(0, u) + exp(Min(0, u)) - 1",
    torch="torch.nn.functional.elu({0})",
    derivative=("exp(min(u, 0))",),
    cone=_cone_of_elu,
    properties=Properties(
        curvature=lambda u: "affine" if u.lo >= 0 else "convex",
        monotone="increasing",
        lipschitz=lambda u: safe_exp(min(u.hi, 0.0)),
        gradient_lipschitz=lambda u: 0.0 if u.lo >= 0 else safe_exp(min(u.hi, 0.0)),
        range=through(lambda x: x if x > 0 else expm1(x)),
    ),
)
