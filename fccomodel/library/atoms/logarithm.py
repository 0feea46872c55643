"""``log``, ``log1p`` and the entropy term."""

from math import e, inf, log, log1p

from fccomodel.library import cones
from fccomodel.library.atoms.base import Properties
from fccomodel.library.atoms.interval import NONNEGATIVE, POSITIVE, Interval
from fccomodel.library.atoms.scalar import ScalarAtom
from fccomodel.library.atoms.shapes import through


def _inverse(x: float, power: int = 1) -> float:
    if x <= 0:
        return inf
    return x**-power


def _entropy(x: float) -> float:
    if x <= 0:
        return 0.0
    if x == inf:
        return -inf
    return -x * log(x)


def _entropy_range(u: Interval) -> Interval:
    if u.lo <= 1 / e <= u.hi:
        top = 1 / e
    else:
        top = max(_entropy(u.lo), _entropy(u.hi))
    return Interval(min(_entropy(u.lo), _entropy(u.hi)), top)


log_ = ScalarAtom(
    name="log",
    meaning="the natural logarithm of u > 0",
    tex=r"\log\left(<0>\right)",
    arguments=("u",),
    formula="log(u)",
    torch="{0}.log()",
    derivative=("1 / u",),
    domain=(POSITIVE,),
    cone=cones.logarithms,
    near="log(u + r)",
    properties=Properties(
        curvature="concave",
        monotone="increasing",
        lipschitz=lambda u: _inverse(u.lo),
        gradient_lipschitz=lambda u: _inverse(u.lo, 2),
        range=through(lambda x: log(x) if x > 0 else -inf),
    ),
    instead={
        "convex": "log is concave; log of a sum or average of exponentials is convex: logsumexp(..), "
        "logmeanexp[..]."
    },
)
log1p_ = ScalarAtom(
    name="log1p",
    meaning="log(1 + u), exact near 0, for u > -1",
    tex=r"\log\left(1 + <0:1>\right)",
    arguments=("u",),
    formula="log(1 + u)",
    torch="{0}.log1p()",
    derivative=("1 / (1 + u)",),
    domain=(Interval(-1.0, inf, lo_open=True),),
    cone=lambda k, u: cones.logarithms(k, u + 1.0),
    near="log1p(u + r)",
    properties=Properties(
        curvature="concave",
        monotone="increasing",
        lipschitz=lambda u: _inverse(1 + u.lo),
        gradient_lipschitz=lambda u: _inverse(1 + u.lo, 2),
        range=through(lambda x: log1p(x) if x > -1 else -inf),
    ),
)


def _cone_of_entropy(k: cones.Cones, u: cones.Affine) -> cones.Affine:
    """The conic program: u exp(t / u) <= 1."""
    t = k.variable(u.shape)
    k.exponential(t, u, 1.0)
    return t.lower()


def _entropy_monotone(u: Interval) -> str:
    if u.hi <= 1 / e:
        return "increasing"
    if u.lo >= 1 / e:
        return "decreasing"
    return "none"


entr = ScalarAtom(
    name="entr",
    meaning="-u log(u), 0 at u = 0",
    tex=r"2 -<0:2> \log <0:4>",
    arguments=("u",),
    formula="Piecewise((0, Eq(u, 0)), (-u * log(u), True))",
    torch="torch.special.entr({0})",
    derivative=("-1 - log(u)",),
    domain=(NONNEGATIVE,),
    cone=_cone_of_entropy,
    near="entr(u + r)",
    properties=Properties(
        curvature="concave",
        monotone=_entropy_monotone,
        lipschitz=lambda u: max(abs(1 + log(u.lo)), abs(1 + log(u.hi))) if 0 < u.lo and u.hi < inf else inf,
        gradient_lipschitz=lambda u: None if u.has(0) else _inverse(u.lo),
        range=_entropy_range,
    ),
)
