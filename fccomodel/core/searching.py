"""Searches for one number."""

from __future__ import annotations

import math
from collections.abc import Callable

#: Halvings of the interval of logarithms.
HALVINGS = 60


def least(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The least number between two positive ones from which on a condition holds, by bisection of its
    logarithm; ``high`` if it holds nowhere below.
    """
    below, above = math.log(low), math.log(high)
    for _ in range(HALVINGS):
        middle = (below + above) / 2
        if holds(math.exp(middle)):
            above = middle
        else:
            below = middle
    return math.exp(above)
