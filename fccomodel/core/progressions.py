"""The numbers ``low .. high by step``."""

from __future__ import annotations

import math

import numpy as np

#: Decimal digits up to which numbers are rounded to those of their step.
#: Beyond it, a power of ten overflows a float.
LARGEST_EXPONENT = 300
#: Share of a step by which rounding may put the last number beyond the end.
ROUNDING = 1e-9


def count(low: float, high: float, step: float) -> float:
    """How many numbers there are: whole, or inf if they are too many to count; ``step`` is not 0."""
    if math.isinf(high - low):
        steps = high / step - low / step
    else:
        steps = (high - low) / step
    if math.isfinite(steps):
        return max(0, math.floor(steps + ROUNDING) + 1)
    if steps < 0:
        return 0
    return math.inf


def numbers(low: float, high: float, step: float) -> np.ndarray:
    """The numbers as float64, if they are finitely many; 0.1 * 3 gives 0.3, and -0 is never returned."""
    scale = 2.0 if math.isinf(high - low) else 1.0
    values = scale * (low / scale + step / scale * np.arange(count(low, high, step)))
    digits = 12 - math.floor(math.log10(abs(step)))
    if abs(digits) <= LARGEST_EXPONENT:
        values = np.round(values, digits)
    return values + 0.0
