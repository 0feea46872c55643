"""The gamma distribution."""

from math import inf

from fccomodel.library.atoms import Interval
from fccomodel.library.distributions._quantiles import gamma_quantile
from fccomodel.library.distributions.base import Distribution

gamma = Distribution(
    name="gamma",
    meaning="density proportional to z^(shape - 1) exp(-rate z) for z > 0, of mean shape / rate",
    parameters=("shape", "rate"),
    domain=(Interval(0.0, inf, lo_open=True), Interval(0.0, inf, lo_open=True)),
    standard="uniform",
    torch="gamma_quantile({z}, {0}, {1})",
    program=gamma_quantile,
    range=lambda shape, rate: Interval(0.0, inf),
    density=lambda shape, rate: shape.positive and rate.positive,
)
