"""The exponential distribution."""

from math import inf

from fccomodel.library.atoms import Interval
from fccomodel.library.distributions.base import Distribution

exponential = Distribution(
    name="exponential",
    meaning="density rate exp(-rate z) for z >= 0",
    parameters=("rate",),
    domain=(Interval(0.0, inf, lo_open=True),),
    standard="exponential",
    torch="{z} / {0}",
    range=lambda rate: Interval(0.0, inf),
    density=lambda rate: rate.positive,
)
