"""The uniform distribution."""

from fccomodel.library.atoms import Interval, OrderCondition
from fccomodel.library.distributions.base import Distribution

uniform = Distribution(
    name="uniform",
    meaning="density 1 / (high - low) from low to high",
    parameters=("low", "high"),
    orders=(OrderCondition(0, 1, strict=True),),
    standard="uniform",
    torch="{0} + ({1} - {0}) * {z}",
    range=lambda low, high: Interval(low.lo, high.hi),
    bounded=True,
    density=lambda low, high: True,
)
