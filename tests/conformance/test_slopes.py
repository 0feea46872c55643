"""Slopes of error against oracle calls: no flatter than proved (``slopes`` says how;
``tests/bench/slopes.py`` prints all)."""

from __future__ import annotations

import pytest

from conformance.runs import needs_cvxpy
from conformance.slopes import CASES, Case, measured

#: how much flatter a fitted slope may be: noise of a few runs, and last points in the middle of an epoch
MARGIN = {"blocks": 0.25, "vector": 0.2}
#: those that take a few seconds
SLOW = ("sox", "sox_convex", "msvr", "sox_boost", "alexr", "hscg", "hscg_restarts", "alexr2")
QUICK = [c for c in CASES if c.algorithm not in SLOW and c.step != "adam"]


@needs_cvxpy
@pytest.mark.parametrize("case", QUICK, ids=lambda c: c.label)
def test_slopes(case: Case) -> None:
    slope, points = measured(case)
    assert points[-1][0] >= 8 * points[0][0], "about a decade"
    assert min(gap for _, gap in points) > 1e-12, "rounding is no rate"
    for eps, (_, gap) in zip(case.accuracies, points, strict=False):
        assert gap <= case.promised(eps), "what the theorem says of its own number of steps"
    assert slope <= case.proved + MARGIN["blocks" if case.batches else "vector"], (
        case.theorem,
        slope,
        points,
    )
