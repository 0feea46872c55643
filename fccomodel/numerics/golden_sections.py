"""The largest value of a function between two numbers, by golden sections.

J. Kiefer, Sequential minimax search for a maximum, Proceedings of the American Mathematical Society 4,
1953.
"""

from __future__ import annotations

import math
from collections.abc import Callable

#: The share of an interval that the next one keeps.
GOLDEN = (math.sqrt(5) - 1) / 2


def largest(
    function: Callable[[float], float], low: float, high: float, best: tuple[float, float], rounds: int
) -> tuple[float, float]:
    """The largest value found between ``low`` and ``high``, and where; a function with one peak has its
    maximum there, to ``GOLDEN ** rounds`` of the interval.

    best  a value that is known, and where
    """
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    for _ in range(rounds):
        values = function(left), function(right)
        best = max(best, (values[0], left), (values[1], right))
        if values[0] >= values[1]:
            high, right = right, left
            left = high - GOLDEN * (high - low)
        else:
            low, left = left, right
            right = low + GOLDEN * (high - low)
    return best
