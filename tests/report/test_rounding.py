"""What rounding hides is part of a certified gap: truth is known in exact arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

import fccomodel
from fccomodel import report
from fccomodel.structure import analyse
from fccomodel.structure.facts import Standing


def bound(text, data=None):
    return fccomodel.compile(text).bind(data=data or {}).bound


def at(text, point, data=None):
    return report.report(bound(text, data), {name: np.asarray(value, dtype=float) for name, value in point.items()})


# ----------------------------------------------------------------------------------------------------------- nearly convex
FORM = "data S : real[{n}, {n}]; var x[{n}] >= -{r}, <= {r}; minimize f: dot(x, S @ x);"


@pytest.mark.parametrize(
    ("matrix", "radius", "truth"),
    [
        (np.diag([1e6, 1.0, -1e-6]), 1000.0, -1.0),
        (np.array([[1.0, 1 + 3e-13], [1 + 3e-13, 1.0]]), 1e6, -0.6),
        (np.diag([1.0, *[0.0] * 20, -1e-15]), 1e6, -1e-3),
    ],
)
def test_an_eigenvalue_that_rounding_forgives_is_part_of_the_gap(matrix, radius, truth):
    found = at(FORM.format(n=len(matrix), r=radius), {"x": np.zeros(len(matrix))}, {"S": matrix})
    assert found.gap.value is None or found.gap.value >= -truth


def test_without_a_radius_a_forgiven_eigenvalue_leaves_no_gap():
    text = "data S : real[2, 2]; var x[2]; minimize f: dot(x, S @ x);"
    found = at(text, {"x": np.zeros(2)}, {"S": np.array([[1.0, 1 + 1e-15], [1 + 1e-15, 1.0]])})
    assert found.gap.value is None


@pytest.mark.parametrize("matrix", [np.ones((3, 3)), np.array([[4.0, 6.0], [6.0, 9.0]]), np.zeros((2, 2))])
def test_few_rows_that_are_semidefinite_are_so_exactly(matrix):
    text = "data S : real[{n}, {n}]; var x[{n}]; minimize f: dot(x, S @ x);".format(n=len(matrix))
    found = at(text, {"x": np.zeros(len(matrix))}, {"S": matrix})
    assert found.gap.value == 0


def test_a_function_of_a_forgiven_form_forgives_without_end():
    text = "data S : real[2, 2]; var x[2] >= -1, <= 1; minimize f: exp(dot(x, S @ x));"
    made = bound(text, {"S": np.array([[1.0, 1 + 1e-15], [1 + 1e-15, 1.0]])})
    facts = analyse(made.problem, made).minimised
    assert facts.below.value.rounding > 0
    assert at(text, {"x": np.zeros(2)}, {"S": made.arrays["S"]}).gap.value is None or facts.below.value.rounding < np.inf


def test_a_least_value_along_what_may_be_flat_is_estimated():
    text = "var x; var y; minimize f: log((x - 1)^2 + (0.9e-8 * y - 1)^2 + 1e-5);"
    made = bound(text)
    interval = analyse(made.problem, made).minimised.interval
    assert interval.value.lo <= np.log(1e-5) or interval.standing > Standing.BOUNDED


def test_a_slope_that_leaves_the_rows_of_an_affine_set_has_no_support():
    text = "data A : real[1, 2]; var x[2]; minimize f: 1e-10 * x[1]; subject to c: A @ x == 0;"
    assert at(text, {"x": np.zeros(2)}, {"A": np.array([[0.0, 1.0]])}).gap.value is None
