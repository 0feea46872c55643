"""The log-normal distribution."""

from math import inf

from fccomodel.library.atoms import Interval
from fccomodel.library.distributions.base import Distribution

lognormal = Distribution(
    name="lognormal",
    meaning="exp(u) with u normal(mean, sd): mean and sd are those of the logarithm",
    parameters=("mean", "sd"),
    domain=(None, Interval(0.0, inf)),
    standard="normal",
    torch="({0} + {1} * {z}).exp()",
    range=lambda mean, sd: Interval(0.0, inf),
    density=lambda mean, sd: sd.positive,
)
