"""Error against oracle calls on a log-log plot, by the theorems' own schedules: no worse than the proved rate.

Upper bounds hold on the worst problem of a class: what is measured on one of them may be steeper, never flatter.
"""

from __future__ import annotations

import numpy as np
import pytest

from conformance.problems import ALL
from conformance.runs import needs_cvxpy, outcome

BY_NAME = {p.name: p for p in ALL}
#: how much flatter than proved a fitted slope may be, for its last points are in the middle of an epoch
MARGIN = 0.2
#: algorithm, problem, iterations (a decade of oracle calls or more), proved exponent of the gap in oracle calls, theorem
CASES = [
    ("apg", "elastic_composition", (4, 8, 16, 32, 48), -2.0, "Beck and Teboulle 2009, Theorem 4.4: O(1 / k^2)"),
    ("apg", "lasso", (2, 4, 8, 16, 24), -2.0, "Beck and Teboulle 2009, Theorem 4.4: O(1 / k^2)"),
    ("ascvrg", "elastic_composition", (64, 128, 256, 512, 1024), -1.0, "ascvrg-2021: O(n log(1 / eps) + 1 / eps) for convex F"),
]


@needs_cvxpy
@pytest.mark.parametrize("algorithm, problem, iterations, rate, theorem", CASES, ids=lambda x: x if isinstance(x, str) else "")
def test_slopes(algorithm: str, problem: str, iterations: tuple[int, ...], rate: float, theorem: str) -> None:
    found = [outcome(BY_NAME[problem], algorithm, iterations=n, schedule="theory") for n in iterations]
    calls, gaps = np.array([f.oracles for f in found]), np.array([f.gap for f in found])
    assert calls[-1] >= 8 * calls[0], "about a decade"
    assert (gaps > 1e-12).all(), "rounding is no rate"
    slope = np.polyfit(np.log(calls), np.log(gaps), 1)[0]
    assert slope <= rate + MARGIN, (theorem, slope)
