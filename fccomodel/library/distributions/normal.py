"""The normal distribution."""

from math import inf

from fccomodel.library.atoms import Interval
from fccomodel.library.distributions.base import Distribution

normal = Distribution(
    name="normal",
    meaning="density exp(-(z - mean)^2 / (2 sd^2)) / (sd sqrt(2 pi)); sd = 0 is the mean itself",
    parameters=("mean", "sd"),
    domain=(None, Interval(0.0, inf)),
    standard="normal",
    torch="{0} + {1} * {z}",
    density=lambda mean, sd: sd.positive,
)
