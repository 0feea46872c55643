"""A search for better points on lines through the point, far away and near, for models that are not
convex and have few variables.

Conditions of first and second order say nothing about other valleys, nor about a long flat way
down, where every derivative is nearly 0. Each line is sampled at distances from tiny to far, or
evenly between the variables' bounds. The best valleys of these values are then searched by golden
sections. Every point is judged by the functions' values there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from fccomodel.core.work import Meter
from fccomodel.numerics import golden_sections
from fccomodel.report.around.local_search import ENTRIES, Better, arrays, entry, gain_of, moved
from fccomodel.report.around.tangent_space import steps_to_bounds
from fccomodel.report.point.system import System, norm

Array = np.ndarray
#: Random lines beside those along single entries, if there are several entries.
RANDOM_LINES = 4
#: Points on all lines together, before valleys are searched.
TOTAL_POINTS = 400
#: Points on one line, at least and at most; half of them on each side.
LEAST_POINTS = 12
MOST_POINTS = 200
#: The nearest and the farthest point of a line without bounds, and how far it is sampled evenly,
#: relative to 1 + |w|.
NEAREST = 1e-3
FARTHEST = 1e2
EVEN = 4.0
#: Valleys of each line that are searched, the best first.
VALLEYS = 3
#: Golden sections of one valley.
SECTIONS = 16
#: Counted seconds that the search may take.
SECONDS = 0.25


def elsewhere(system: System, gain: float, meter: Meter) -> Better | None:
    """The best point found on lines through the system's point; None if none is better by ``gain``.

    gain   the least gain that counts, in units of the objective
    meter  the work that may be spent
    """
    if not 0 < system.d <= ENTRIES:
        return None
    meter = Meter(min(meter.left, SECONDS), stop=meter.stop)
    best: Better | None = None
    for direction, where in _lines(system):
        line = _Line(system, direction, meter)
        for gain_of_valley, length in line.valleys():
            if gain_of_valley >= gain and (best is None or gain_of_valley > best.gain):
                point = arrays(moved(system, length * direction))
                best = Better(gain=gain_of_valley, where=f"elsewhere, {where}", point=point)
    return best


def _lines(system: System) -> Iterator[tuple[Array, str]]:
    """Directions of length 1 with their names: single entries, the way from the origin, and random ones."""
    for k in range(system.d):
        yield np.eye(system.d)[k], f"along {entry(system, k)}"
    if system.d == 1:
        return
    at = system.flat
    if at.any():
        yield at / norm(at), "on the line through the origin"
    random = np.random.default_rng(system.seed)
    for _ in range(RANDOM_LINES):
        direction = random.standard_normal(system.d)
        yield direction / norm(direction), "along a random direction"


class _Line:
    """The gains on one line through the point.

    gains   by the step along the direction; minus infinity where a point does not count
    """

    def __init__(self, system: System, direction: Array, meter: Meter):
        self.system, self.direction, self.meter = system, direction, meter
        self.gains: dict[float, float] = {0.0: 0.0}

    def valleys(self) -> Iterator[tuple[float, float]]:
        """The gain and the step of the best point of each valley that is searched."""
        for step in self._steps():
            self._gain(step)
        steps = sorted(self.gains)
        gains = [self.gains[step] for step in steps]
        before = [0, *range(len(steps) - 1)]
        after = [*range(1, len(steps)), len(steps) - 1]
        bottoms = []
        for k, (gain, step) in enumerate(zip(gains, steps, strict=True)):
            beside = max(gains[before[k]], gains[after[k]])
            if math.isfinite(gain) and gain >= beside and step != 0:
                bottoms.append(k)
        best_first = sorted(bottoms, key=lambda k: -gains[k])
        for k in best_first[:VALLEYS]:
            low, high = steps[before[k]], steps[after[k]]
            yield golden_sections.largest(self._gain, low, high, (gains[k], steps[k]), SECTIONS)

    def _steps(self) -> list[float]:
        """The steps at which a line is sampled, both ways: evenly up to bounds, and at distances that
        double or so from tiny to far."""
        lines = self.system.d + RANDOM_LINES if self.system.d > 1 else 1
        half = min(max(TOTAL_POINTS // lines, LEAST_POINTS), MOST_POINTS) // 2
        at = self.system.flat
        size = 1.0 + norm(at)
        steps: list[float] = []
        for way, end in zip((1.0, -1.0), self._ends(), strict=True):
            if end <= 0:
                continue
            even = np.linspace(0.0, min(end, EVEN * size), half // 2 + 1)[1:]
            far = min(end, FARTHEST * size)
            apart = np.geomspace(min(NEAREST * size, far / 2), far, half - half // 2)
            steps += (way * np.concatenate([even, apart])).tolist()
        return steps

    def _ends(self) -> tuple[float, float]:
        """The lengths of the longest steps both ways within the variables' bounds."""
        low, high = steps_to_bounds(self.system)
        used = np.abs(self.direction) > 0
        moves = self.direction[used]
        forward = np.where(moves > 0, high[used], low[used]) / moves
        backward = np.where(moves > 0, low[used], high[used]) / -moves
        return float(forward.min()), float(backward.min())

    def _gain(self, step: float) -> float:
        """The gain of a step; minus infinity if it does not count or no work is left."""
        known = self.gains.get(step)
        if known is not None:
            return known
        if self.meter.left < self.system.forward_s:
            return -math.inf
        self.meter.spend(self.system.forward_s)
        gain = gain_of(self.system, step * self.direction)
        self.gains[step] = -math.inf if gain is None else gain
        return self.gains[step]
