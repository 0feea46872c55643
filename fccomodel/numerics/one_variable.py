"""The minimum of a convex function of one number, by cutting planes and bisection.

Two tangents on either side of the minimum meet at a lower bound of it. For a function that is
piecewise linear, they meet at its kink after finitely many cuts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

#: Value and slope at a number.
Function = Callable[[float], tuple[float, float]]
MOST_CALLS = 200  # evaluations of the function
FIRST_STEP = 1.0  # the first step away from the start, relative to it if it is larger
ROUNDING = 4e-16  # relative difference of two values that counts as none


class TangentPoint(NamedTuple):
    """A point with the value and the slope there."""

    x: float
    value: float
    slope: float


class Minimum(NamedTuple):
    """The point with the least value that was seen, the value, and the calls of the function."""

    x: float
    value: float
    calls: int


def minimised(function: Function, start: float, low: float, high: float) -> Minimum | None:
    """The minimum over [low, high]; None if values are not finite or the minimum is not reached."""
    if not low <= high:
        return None
    calls = 0

    def at(x: float) -> TangentPoint | None:
        """The tangent at x, or None if it is not finite or the calls are used up."""
        nonlocal calls
        calls += 1
        tangent = TangentPoint(x, *function(x))
        if calls > MOST_CALLS or not (math.isfinite(tangent.value) and math.isfinite(tangent.slope)):
            return None
        return tangent

    bracket = _bracket(at, min(max(start, low), high), low, high)
    while bracket is not None:
        left, right = bracket
        best = min(bracket, key=lambda tangent: tangent.value)
        if best.slope == 0 or left.x == right.x:
            return Minimum(best.x, best.value, calls)
        x, lower = _meeting(left, right)
        narrow = math.nextafter(left.x, math.inf) >= right.x
        if narrow or best.value - lower <= ROUNDING * abs(best.value):
            return Minimum(best.x, best.value, calls)
        bracket = _narrowed(at, left, right, x)
        if bracket is None:
            return None
        low_end, high_end = bracket[0].x, bracket[1].x
        half_width = 0.5 * (right.x - left.x)
        if max(high_end - x, x - low_end) > half_width:
            bracket = _narrowed(at, *bracket, 0.5 * (low_end + high_end))
    return None


def _bracket(
    at: Callable[[float], TangentPoint | None], start: float, low: float, high: float
) -> tuple[TangentPoint, TangentPoint] | None:
    """Two tangents between which the minimum lies; twice the same one if it is the minimum.

    None where a walk outwards ends at a slope of 0 and the function does not rise behind: far away a slope
    may be too small for a number.
    """
    here = at(start)
    step = FIRST_STEP * max(1.0, abs(start))
    while here is not None:
        end = high if here.slope < 0 else low
        if here.slope == 0 or here.x == end:
            return here, here
        there = at(min(max(here.x - math.copysign(step, here.slope), low), high))
        if there is None:
            return None
        if there.slope == 0:
            beyond = at(min(max(there.x - math.copysign(step, here.slope), low), high))
            rises = beyond is not None and (beyond.slope * here.slope < 0 or beyond.x == there.x)
            return (there, there) if rises else None
        if (there.slope > 0) != (here.slope > 0):
            return (here, there) if here.x < there.x else (there, here)
        here, step = there, 2 * step
    return None


def _meeting(left: TangentPoint, right: TangentPoint) -> tuple[float, float]:
    """Where two tangents meet, inside their interval, and the value there."""
    width = right.x - left.x
    fall = left.value - right.value + right.slope * width
    along = min(max(fall / (right.slope - left.slope), 0.0), width)
    return left.x + along, left.value + left.slope * along


def _narrowed(
    at: Callable[[float], TangentPoint | None], left: TangentPoint, right: TangentPoint, x: float
) -> tuple[TangentPoint, TangentPoint] | None:
    """The smaller interval that a tangent at x leaves."""
    if not left.x < x < right.x:
        x = 0.5 * (left.x + right.x)
    middle = at(x)
    if middle is None:
        return None
    if middle.slope == 0:
        return middle, middle
    if middle.slope < 0:
        return middle, right
    return left, middle
