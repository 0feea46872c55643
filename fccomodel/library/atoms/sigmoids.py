"""``tanh``, ``sigmoid``, and the logarithms of the latter."""

from collections.abc import Callable
from math import log, log1p, sqrt, tanh

from fccomodel.library import cones
from fccomodel.library.atoms.base import Properties
from fccomodel.library.atoms.interval import UNIT, Interval
from fccomodel.library.atoms.scalar import ScalarAtom
from fccomodel.library.atoms.shapes import bent, logistic, s_curve, safe_exp, steepest, through


def _softplus(x: float) -> float:
    return max(x, 0.0) + log1p(safe_exp(-abs(x)))


def _bump(x: float) -> float:
    return logistic(x) * logistic(-x)


def _peaked(slope_at_zero: float, slope: Callable[[float], float]) -> Callable[[Interval], float]:
    """The largest slope of an s-shaped function over an interval."""
    return lambda u: slope_at_zero if u.lo <= 0 <= u.hi else max(slope(u.lo), slope(u.hi))


tanh_ = ScalarAtom(
    name="tanh",
    meaning="the hyperbolic tangent",
    tex=r"\tanh\left(<0>\right)",
    arguments=("u",),
    formula="tanh(u)",
    torch="{0}.tanh()",
    derivative=("1 - y^2",),
    properties=Properties(
        curvature=s_curve,
        monotone="increasing",
        lipschitz=_peaked(1.0, lambda x: 1 - tanh(x) ** 2),
        gradient_lipschitz=bent(log(2 + sqrt(3)) / 2, lambda x: 2 * tanh(x) * (1 - tanh(x) ** 2)),
        range=through(tanh),
    ),
    instead={"convex": "the logistic loss log1pexp(-u) is a convex surrogate of 1 - tanh(u)."},
)
sigmoid = ScalarAtom(
    name="sigmoid",
    meaning="1/(1 + e^-u)",
    tex=r"\sigma\left(<0>\right)",
    arguments=("u",),
    formula="1 / (1 + exp(-u))",
    torch="{0}.sigmoid()",
    derivative=("y * (1 - y)",),
    logarithm="logsigmoid(u)",
    complement="sigmoid(-u)",
    properties=Properties(
        curvature=s_curve,
        monotone="increasing",
        lipschitz=_peaked(0.25, _bump),
        gradient_lipschitz=bent(log(2 + sqrt(3)), lambda x: _bump(x) * (1 - 2 * logistic(x))),
        range=through(logistic),
    ),
    instead={"convex": "the logistic loss log1pexp(-u) is a convex surrogate of sigmoid(-u)."},
)


def _cone_of_softplus(k: cones.Cones, u: cones.Affine) -> cones.Affine:
    """The conic program: exp(u - t) + exp(-t) <= 1."""
    t = k.variable(u.shape)
    k.nonneg(1.0 - cones.exponentials(k, u - t) - cones.exponentials(k, -t))
    return t.upper()


log1pexp = ScalarAtom(
    name="log1pexp",
    meaning="log(1 + e^u)",
    tex=r"\log\left(1 + e^{<0>}\right)",
    arguments=("u",),
    aliases=("softplus",),
    formula="logaddexp(0, u)",
    torch="torch.nn.functional.softplus({0}, threshold=40)",
    derivative=("sigmoid(u)",),
    conjugate="-entr(s) - entr(1 - s)",
    slopes=UNIT,
    cone=_cone_of_softplus,
    steady=1.0,
    properties=Properties(
        curvature="convex",
        monotone="increasing",
        lipschitz=steepest(logistic),
        gradient_lipschitz=_peaked(0.25, _bump),
        range=through(_softplus),
    ),
)
logsigmoid = ScalarAtom(
    name="logsigmoid",
    meaning="log(sigmoid(u)) = -log(1 + e^-u)",
    tex=r"\log\sigma\left(<0>\right)",
    arguments=("u",),
    formula="-logaddexp(0, -u)",
    torch="torch.nn.functional.logsigmoid({0})",
    derivative=("sigmoid(-u)",),
    cone=lambda k, u: -_cone_of_softplus(k, -u),
    steady=1.0,
    properties=Properties(
        curvature="concave",
        monotone="increasing",
        lipschitz=steepest(lambda x: logistic(-x)),
        gradient_lipschitz=_peaked(0.25, _bump),
        range=through(lambda x: -_softplus(-x)),
    ),
)
