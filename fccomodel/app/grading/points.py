"""Points at which two models are compared: random, of several sizes, in the sets of the variables, and
moved to where the constraints hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from scipy import optimize

from fccomodel.app.grading.values import Point, Side

#: Sizes of random points, in turn.
SIZES = (1.0, 0.1, 3.0, 0.5, 30.0, 1.0, 1000.0)
#: Points of these sizes; those after them have the sizes of large numbers in the models.
POINTS = 14
#: Points of such a size are that many times larger, in turn.
BEYOND = (1.0, 3.0)
#: Points of each of these sizes.
POINTS_OF_A_SIZE = 4
#: Each so many-th point has entries of one sign, for logarithms and roots.
POSITIVE_EVERY = 3
#: Steps of a search for a point where all constraints hold.
RESTORING_STEPS = 30
#: After each so many of them, the largest violation must have halved.
HALVING_STEPS = 6
#: Violation up to which a constraint counts as met.
MET = 1e-9


def random_point(side: Side, number: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """A random value of each variable; the number decides its size and whether entries are positive."""
    if number < POINTS or not side.sizes:
        size = SIZES[number % len(SIZES)]
    else:
        turn, place = divmod(number - POINTS, len(side.sizes))
        size = side.sizes[place] * BEYOND[turn % len(BEYOND)]
    point = {}
    for name in side.partner:
        value = size * rng.standard_normal(side.shape(name))
        if number % POSITIVE_EVERY == POSITIVE_EVERY - 1:
            value = np.abs(value)
        point[name] = value
    return point


def numbers_after(side: Side, count: int = POINTS) -> list[int]:
    """The numbers of the first ``count`` random points, and of those whose sizes come from the models."""
    return [*range(count), *range(POINTS, POINTS + POINTS_OF_A_SIZE * len(side.sizes))]


def restored(side: Side, point: Point) -> Point | None:
    """A point near this one at which a model's constraints hold, or None if the search finds none.

    Steps of Gauss and Newton on the violated constraints, each followed by the projection on the sets.
    """
    largest = np.inf
    for number in range(RESTORING_STEPS):
        point = side.projected(point)
        violated, jacobian = side.violated(point, MET)
        if not np.isfinite(violated).all() or not np.isfinite(jacobian).all():
            return None
        if not len(violated):
            return point
        now = float(np.abs(violated).max())
        if number % HALVING_STEPS == 0:
            if now > largest / 2:
                return None
            largest = now
        step = np.linalg.lstsq(jacobian, -violated * OVERSHOOT, rcond=None)[0]
        point = moved(point, step)
    return None


#: Steps to a boundary go a little beyond it, so that curved constraints are met after few of them.
OVERSHOOT = 1.01


def moved(point: Point, step: np.ndarray) -> dict[str, np.ndarray]:
    """The point plus a step over the entries of all variables."""
    result = {}
    at = 0
    for name, value in point.items():
        part = step[at : at + value.size].reshape(value.shape)
        result[name] = value + part
        at += value.size
    return result


def between(a: Point, b: Point, share: float) -> dict[str, np.ndarray]:
    """The point on the way from a to b."""
    return {name: (1 - share) * a[name] + share * b[name] for name in a}


def crossing(function: Callable[[float], float], low: float, high: float) -> float | None:
    """A zero of a function between 0 and 1 where its values at the ends differ in sign.

    ``low`` and ``high`` are the values at the ends. None if they are equal, or if a value is not finite.

    Method: R. P. Brent, Algorithms for minimization without derivatives, 1973, by SciPy.
    """
    if not (np.isfinite(low) and np.isfinite(high)) or low == high:
        return None

    def value(share: float) -> float:
        """The function's value, which at the ends is known."""
        if share in (0.0, 1.0):
            return high if share else low
        found = function(share)
        if not np.isfinite(found):
            raise NotFinite
        return found

    limits = {"xtol": CROSSING_WIDTH, "maxiter": CROSSING_STEPS, "disp": False}
    try:
        return float(optimize.brentq(value, 0.0, 1.0, **limits))
    except NotFinite:
        return None


class NotFinite(ArithmeticError):
    """A function of a search has no finite value."""


#: Width of the interval at which a search for a zero ends, and its largest number of steps.
CROSSING_WIDTH = 1e-13
CROSSING_STEPS = 60


def as_lists(point: Mapping[str, np.ndarray]) -> dict[str, object]:
    """A point as JSON values."""
    return {name: value.tolist() for name, value in point.items()}
