"""The numbers ``low .. high by step``."""

from __future__ import annotations

import math

import numpy as np

#: Steps so small that a power of ten with their digits is no number of 64 bits are not rounded to.
MOST_DIGITS = 300


def count(low: float, high: float, step: float) -> float:
    """How many there are: a whole number, or inf where no number of 64 bits counts them; ``step`` is
    not 0."""
    if math.isinf(high - low):
        steps = high / step - low / step
    else:
        steps = (high - low) / step
    if math.isfinite(steps):
        return max(0, math.floor(steps + 1e-9) + 1)
    if steps < 0:
        return 0
    return math.inf


def numbers(low: float, high: float, step: float) -> np.ndarray:
    """They themselves, finitely many, float64: 0.1 * 3 is 0.3, and there is no -0."""
    scale = 2.0 if math.isinf(high - low) else 1.0
    values = scale * (low / scale + step / scale * np.arange(count(low, high, step)))
    digits = 12 - math.floor(math.log10(abs(step)))
    return (np.round(values, digits) if abs(digits) <= MOST_DIGITS else values) + 0.0
