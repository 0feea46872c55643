"""The Laplace distribution."""

from math import inf

from fccomodel.library.atoms import Interval
from fccomodel.library.distributions.base import Distribution

laplace = Distribution(
    name="laplace",
    meaning="density exp(-|z - mean| / scale) / (2 scale); scale = 0 is the mean itself",
    parameters=("mean", "scale"),
    domain=(None, Interval(0.0, inf)),
    standard="laplace",
    torch="{0} + {1} * {z}",
    density=lambda location, scale: scale.positive,
)
