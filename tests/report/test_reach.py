"""What excludes that an objective falls for ever, or towards an infimum that no point attains."""

from __future__ import annotations

import pytest

import fccomodel
from fccomodel.report.certificates.reach import excluded

HEAD = "var x[2]; minimize {}; subject to c: x[1] >= x[2]; d: x[2] <= 4;"


@pytest.mark.parametrize(
    "objective, why",
    [
        ("x[1] - 3 * x[2]", "pieces"),
        ("(x[1] - x[2])^2 - x[2]", "pieces"),
        ("exp(x[1] - x[2]) - x[2]", ""),
        ("hinge(1 - x[1]) + hinge(x[1] - x[2]) - x[2]", "pieces"),
        ("E[e ~ normal(0, 1)] hinge(1 - e * x[1]) - x[2]", ""),
        ("norm2(x) - x[1]", ""),
    ],
)
def test_an_infimum_over_polyhedral_pieces_is_attained(objective: str, why: str) -> None:
    """Its numbers may be so far apart that a run sees it fall ever more slowly."""
    analysis = fccomodel.compile(HEAD.format(objective)).bind().plan().analysis
    found = excluded(analysis, None, "unattained")
    assert why in found and bool(why) == bool(found)
    assert not excluded(analysis, None, "unbounded")
