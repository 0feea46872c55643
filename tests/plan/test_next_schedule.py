"""Schedules of theorems: the first algorithm whose theorem has one is taken, and passed ones are named."""

from __future__ import annotations

import numpy as np
import pytest

import fccomodel
from fccomodel.plan import Plan

LOGARITHM = (
    "dim d; data D : table(x: real[d], y: real); var w[d] in ball(1);\n"
    "minimize log(E[z ~ D] exp(dot(w, z.x)));"
)
GROWTH = (
    "dim d; data D : table(x: real[d], y: real); var w[d];\n"
    "minimize exp(abs(E[z ~ D] dot(w, z.x)));"
)


def planned(text: str, **options: object) -> Plan:
    rng = np.random.default_rng(0)
    rows = {"x": rng.normal(size=(50, 3)), "y": rng.normal(size=50)}
    return fccomodel.compile(text).bind(data={"D": rows}).plan(schedule="theory", **options).plan


def test_nothing_that_is_not_smoothed_needs_a_small_smoothing_parameter() -> None:
    """The logarithm is smooth: no envelope of it is used, so its weak convexity refuses none."""
    plan = planned(LOGARITHM, algorithm="ascvrg")
    assert plan.algorithm == "ascvrg" and plan.schedule is not None


def test_the_next_algorithm_with_a_schedule_is_taken_and_said() -> None:
    """The prox-linear method comes first, and its theorem divides by the curvature of affine functions."""
    plan = planned(GROWTH)
    assert plan.algorithm != "prox_linear" and plan.schedule is not None
    assert "prox_linear gives no schedule" in plan.practice[0]


def test_an_algorithm_that_is_named_is_not_replaced() -> None:
    with pytest.raises(fccomodel.FccoError, match="F0613"):
        planned(GROWTH, algorithm="prox_linear")
