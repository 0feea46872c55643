"""``erf`` and the normal distribution function."""

from math import erf, exp, pi, sqrt

from fccomodel.library.atoms._base import Properties
from fccomodel.library.atoms._scalar import ScalarAtom
from fccomodel.library.atoms._shapes import bent, s_curve, through

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
    arguments=("u",),
    formula="(1 + erf(u / sqrt(2))) / 2",
    torch="torch.special.ndtr({0})",
    derivative=("exp(-u^2 / 2) / sqrt(2 * pi)",),
    properties=Properties(
        curvature=s_curve,
        monotone="increasing",
        lipschitz=lambda u: exp(-(min(u.mig, 1e100) ** 2) / 2) / sqrt(2 * pi),
        gradient_lipschitz=bent(1.0, lambda x: x * exp(-(x**2) / 2) / sqrt(2 * pi)),
        range=through(lambda x: (1 + erf(x / sqrt(2))) / 2),
    ),
)
