"""The Weibull distribution."""

from math import inf

from fccomodel.library.atoms import Interval
from fccomodel.library.distributions.base import Distribution

weibull = Distribution(
    name="weibull",
    meaning="scale u^(1 / shape) with u exponential(1), of survival exp(-(z / scale)^shape)",
    parameters=("shape", "scale"),
    domain=(Interval(0.0, inf, lo_open=True), Interval(0.0, inf, lo_open=True)),
    standard="exponential",
    torch="{1} * {z} ** (1 / {0})",
    range=lambda shape, scale: Interval(0.0, inf),
    density=lambda shape, scale: True,
)
