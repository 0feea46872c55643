"""What excludes that an objective falls for ever, or towards an infimum that no point attains."""

from __future__ import annotations

import pytest

import fccomodel
from fccomodel.report.certificates.reach import excluded

HEAD = "var x[2]; minimize {}; subject to c: x[1] >= x[2]; d: x[2] <= 4;"


@pytest.mark.parametrize(
    "objective, why",
    [
        ("x[1] - 3 * x[2]", "quadratic"),
        ("(x[1] - x[2])^2 - x[2]", "quadratic"),
        ("exp(x[1] - x[2]) - x[2]", ""),
    ],
)
def test_the_infimum_of_a_quadratic_program_is_attained(objective: str, why: str) -> None:
    """Its numbers may be so far apart that a run sees it fall ever more slowly."""
    analysis = fccomodel.compile(HEAD.format(objective)).bind().plan().analysis
    found = excluded(analysis, None, "unattained")
    assert why in found and bool(why) == bool(found)
    assert not excluded(analysis, None, "unbounded")
