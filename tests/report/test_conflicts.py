"""Constraints that hold within the tolerance, and that no point meets exactly; bounds that no point attains."""

import math
import re

import numpy as np
import pytest

from fccomodel import report
from fccomodel.core.source import Source
from fccomodel.data.bind import bind
from fccomodel.language.check import check
from fccomodel.language.parse import parse

A = np.random.default_rng(0).normal(size=(3, 4))
ROWS = (
    "data D: table(a: real[4], b: real); var x[4] in box(-9, 9); minimize sumsq(x); "
    "subject to c[i in D]: dot(i.a, x) {} i.b;"
)


def verdict(text: str, point: dict, data: dict | None = None) -> str:
    source = Source(text=text)
    return report.report(bind(check(parse(source), source), data=data or {}), point).verdict


@pytest.mark.parametrize(
    ("text", "x", "size"),
    [
        ("var x; minimize x; subject to c: x >= 1.000001; d: x <= 1;", 1.000001, 5e-7),
        ("var x; minimize x; subject to c: x >= 1000001e6; d: x <= 1e12;", 1000001e6, 5e5),
        ("var x[2]; minimize sum(x); subject to c: x[1] + x[2] == 1; d: x[1] + x[2] == 1.0000002;", [0.5, 0.5], 1e-7),
        ("var x[2]; minimize sum(x); subject to c: sumsq(x) <= 1; d: sum(x) <= -1.41421366;", [-(0.5**0.5)] * 2, 6e-8),
    ],
)  # fmt: skip
def test_a_conflict_within_the_tolerance_is_told(text: str, x, size: float) -> None:
    words = verdict(text, {"x": np.array(x)})
    found = re.search(r"no point within .* exactly: each violates .* by (\S+) or more", words)
    assert words.startswith("Solved") and float(found.group(1)) == pytest.approx(size, rel=0.15)


def test_the_bounds_of_a_variable_conflict_with_a_row() -> None:
    data = {"D": {"a": -np.ones((1, 4)), "b": [-36.000001]}}
    words = verdict(ROWS.format("<="), {"x": np.full(4, 9.0)}, data)
    assert "meets `c[0]` exactly: each violates it by 9.8e-07 or more" in words


def test_what_a_point_meets_is_no_conflict() -> None:
    """Rows with a common point, at points that violate them by up to the tolerance."""
    rng = np.random.default_rng(1)
    for relation in ("<=", "=="):
        for _ in range(8):
            a, x = rng.normal(size=(3, 4)), rng.normal(size=4)
            a = np.vstack([a, 1e3 * a[:1] + a[1:2]])
            data = {"D": {"a": a, "b": a @ x}}
            words = verdict(ROWS.format(relation), {"x": x + 1e-9 * rng.normal(size=4)}, data)
            assert "exactly" not in words


@pytest.mark.parametrize("seed", [2, 5])
def test_gradients_that_rounding_hides_prove_no_conflict(seed: int) -> None:
    """The mean of a is at most 0, but its sum in floating point has the other sign."""
    rng = np.random.default_rng(seed)
    text = "data D: table(a: real); var x; minimize 0*x; subject to c: E[z ~ D] (z.a * x) <= 0; d: x >= 1e-7;"
    a = 1e6 * rng.normal(size=1000)
    for _ in range(3):
        a[-1] -= math.fsum(a)
    a = rng.permutation(a if math.fsum(a) <= 0 else -a)
    assert "exactly" not in verdict(text, {"x": np.array(0.0)}, {"D": {"a": a}})


def test_a_bound_that_no_point_attains() -> None:
    assert "no point attains the bound -1 itself" in verdict(
        "var x; minimize tanh(x);", {"x": np.array(-50.0)}
    )
    attained = verdict("var x; minimize min(max(x, -1), 1);", {"x": np.array(-50.0)})
    assert attained.startswith("Solved") and "attains" not in attained
