"""What the analysis claims of random expressions holds at random points; what CVXPY proves convex is
proved here too."""

from __future__ import annotations

import pytest
from support.claims import tried
from support.random_expressions import base, text

FREE, COMPACT = base(), base(compact=True)


@pytest.mark.parametrize("seed", range(250))
def test_claims_survive_random_points(seed: int) -> None:
    expr, wrong, _ = tried(COMPACT if seed % 3 == 0 else FREE, seed)
    assert not wrong, f"{text(expr)}: {wrong[:3]}"


@pytest.mark.parametrize("signs, compact", [(False, False), (True, False), (False, True)])
def test_everything_cvxpy_proves_is_proved(signs: bool, compact: bool) -> None:
    pytest.importorskip("cvxpy")
    from support.cvxpy_mirror import compared

    found = compared(COMPACT if compact else FREE, range(300), signs=signs, compact=compact)
    assert not found.missed
    assert found.theirs > 30
