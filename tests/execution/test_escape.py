"""Runs that end beside a better point which the report knows."""

import pytest

import fccomodel as fc


@pytest.mark.slow
def test_a_run_that_ends_beside_a_cusp_takes_the_better_point() -> None:
    """No step leads to the minimum of sqrt(abs(x)); the origin, where it is, is tried by the report."""
    result = fc.compile("var x in box(-3, 3); minimize sqrt(abs(x)) - x/4;").bind().solve(seed=0)
    assert abs(result.objective) < 1e-9
    assert result.status == "solved"
