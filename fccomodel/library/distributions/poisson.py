"""The Poisson distribution."""

from math import inf

from fccomodel.library.atoms import Interval
from fccomodel.library.distributions._quantiles import poisson_quantile
from fccomodel.library.distributions.base import Distribution

poisson = Distribution(
    name="poisson",
    meaning="k = 0, 1, 2, ... with probability rate^k exp(-rate) / k!",
    parameters=("rate",),
    domain=(Interval(0.0, inf),),
    standard="uniform",
    torch="poisson_quantile({z}, {0})",
    program=poisson_quantile,
    range=lambda rate: Interval(0.0, inf),
)
