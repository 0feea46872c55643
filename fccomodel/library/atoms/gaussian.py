"""``erf``, the normal distribution function and its logarithm."""

from math import erf, erfc, exp, inf, pi, sqrt

from fccomodel.library.atoms.base import Properties
from fccomodel.library.atoms.interval import Interval
from fccomodel.library.atoms.scalar import ScalarAtom
from fccomodel.library.atoms.shapes import bent, s_curve, through


def _mills(x: float) -> float:
    """The normal density divided by the distribution function; far below 0, an upper bound of
    it."""
    if x > -35:
        return exp(-x * x / 2) / sqrt(2 * pi) / (erfc(-x / sqrt(2)) / 2)
    return -x - 1 / x


erf_ = ScalarAtom(
    name="erf",
    meaning="the error function, 2/sqrt(pi) times the integral of e^(-t^2) from 0 to u",
    arguments=("u",),
    formula="erf(u)",
    torch="{0}.erf()",
    derivative=("2 / sqrt(pi) * exp(-u^2)",),
    properties=Properties(
        curvature=s_curve,
        monotone="increasing",
        lipschitz=lambda u: 2 / sqrt(pi) * exp(-(min(u.mig, 1e100) ** 2)),
        gradient_lipschitz=bent(sqrt(0.5), lambda x: 4 / sqrt(pi) * x * exp(-(x**2))),
        range=through(erf),
    ),
)
normcdf = ScalarAtom(
    name="normcdf",
    meaning="the standard normal distribution function",
    tex=r"\Phi\left(<0>\right)",
    arguments=("u",),
    formula="(1 + erf(u / sqrt(2))) / 2",
    torch="torch.special.ndtr({0})",
    derivative=("exp(-u^2 / 2) / sqrt(2 * pi)",),
    logarithm="lognormcdf(u)",
    complement="normcdf(-u)",
    properties=Properties(
        curvature=s_curve,
        monotone="increasing",
        lipschitz=lambda u: exp(-(min(u.mig, 1e100) ** 2) / 2) / sqrt(2 * pi),
        gradient_lipschitz=bent(1.0, lambda x: x * exp(-(x**2) / 2) / sqrt(2 * pi)),
        range=through(lambda x: (1 + erf(x / sqrt(2))) / 2),
    ),
)
lognormcdf = ScalarAtom(
    name="lognormcdf",
    meaning="log(normcdf(u)), whose second derivative lies between -1 and 0",
    tex=r"\log\Phi\left(<0>\right)",
    arguments=("u",),
    formula="log(erfc(-u / sqrt(2)) / 2)",
    torch="torch.special.log_ndtr({0})",
    derivative=(),
    internal=True,
    properties=Properties(
        curvature="concave",
        monotone="increasing",
        lipschitz=lambda u: inf if u.lo == -inf else _mills(u.lo),
        gradient_lipschitz=lambda u: 1.0 if u.lo < -30 else _mills(u.lo) * (_mills(u.lo) + u.lo),
        range=Interval(-inf, 0.0),
    ),
)
