"""Minima of convex functions of one number."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fccomodel.numerics.one_variable import minimised


def pinball(points: np.ndarray, tail: float):
    """The mean pinball loss, whose minimum is a quantile."""

    def function(x: float) -> tuple[float, float]:
        apart = points - x
        value = np.maximum(tail * apart, (tail - 1) * apart).mean()
        return float(value), float(np.where(apart > 0, -tail, 1 - tail).mean())

    return function


@pytest.mark.parametrize("tail", [0.1, 0.5, 0.77])
def test_quantiles_are_found_exactly(tail: float) -> None:
    points = np.random.default_rng(0).lognormal(size=1001)
    function = pinball(points, tail)
    found = minimised(function, 0.0, -math.inf, math.inf)
    assert found is not None
    assert found.value == pytest.approx(min(function(x)[0] for x in points), rel=1e-15)
    assert np.abs(points - found.x).min() <= 1e-12
    assert found.calls <= 60


@pytest.mark.parametrize(
    ("low", "high", "best"), [(-math.inf, math.inf, 3.0), (-5.0, 2.0, 2.0), (4.0, 9.0, 4.0)]
)
def test_bounds(low: float, high: float, best: float) -> None:
    found = minimised(lambda x: ((x - 3) ** 2, 2 * (x - 3)), 0.0, low, high)
    assert found is not None
    assert found.x == pytest.approx(best, abs=1e-7)


def test_far_and_steep_minima() -> None:
    found = minimised(lambda x: (abs(x - 1e7), math.copysign(1, x - 1e7)), 0.0, -math.inf, math.inf)
    assert found is not None
    assert found.x == pytest.approx(1e7, rel=1e-12)
    found = minimised(lambda x: (math.exp(x) - 1e6 * x, math.exp(x) - 1e6), 0.0, -math.inf, math.inf)
    assert found is not None
    assert found.x == pytest.approx(math.log(1e6), abs=1e-6)


@pytest.mark.parametrize("slope", [1.0, -1.0])
def test_no_minimum(slope: float) -> None:
    assert minimised(lambda x: (slope * x, slope), 0.0, -math.inf, math.inf) is None


def test_values_that_are_not_finite() -> None:
    assert minimised(lambda x: (-math.inf if x > 0.5 else -x, -1.0), 0.0, -math.inf, math.inf) is None


@pytest.mark.parametrize("above", [0.0, 1.0])
def test_an_infimum_far_away_is_no_minimum(above: float) -> None:
    """exp(-x) has a slope at every x, which is 0 as a number beyond 745."""
    assert minimised(lambda x: (above + math.exp(-x), -math.exp(-x)), 0.0, -math.inf, math.inf) is None


def test_small_slopes_keep_their_signs() -> None:
    """The product of two slopes of 1e-170 is 0 as a number."""
    found = minimised(
        lambda x: (1e-170 * abs(x - 50), math.copysign(1e-170, x - 50)), 0.0, -math.inf, math.inf
    )
    assert found is not None and found.x == pytest.approx(50)


def test_an_empty_interval_has_no_minimum() -> None:
    assert minimised(lambda x: (x, 1.0), 0.0, 2.0, 1.0) is None
