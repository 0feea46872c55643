"""Models whose answers are easily wrong: what is said of them is true (``tests/bench/traps.py`` has
all of them)."""

import importlib
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[1] / "bench"
#: Those that take a moment, and whether they are solved too.
QUICK = {
    "logarithm_far": True, "logarithm_near": True, "saturation": True, "sigmoid_bound": True, "reciprocal_crosses": False,
    "reciprocal_of_mean_crosses": False, "witch": True, "features_of_all_sizes": True, "optimum_at_a_million": True,
    "tiny_objective_with_a_level": True, "cusp": False, "kuhn_and_tuckers_cusp": False, "sharp_corner_without_interior": True,
    "bounds_cross_slightly": True, "feasible_in_a_sliver": True, "maximum_of_smooth_at_zero": True, "rows_twice": True,
}  # fmt: skip


@pytest.fixture(scope="module")
def bench():
    sys.path.insert(0, str(BENCH))
    try:
        return importlib.import_module("traps")
    finally:
        sys.path.remove(str(BENCH))


@pytest.mark.parametrize("name", QUICK)
def test_nothing_wrong_is_called_right(name, bench):
    judged, said = bench.tried(bench.TRAPS[name], "5s")
    assert judged == "right" or judged == "honest" and not QUICK[name], said


def test_a_point_where_the_violation_is_stationary_is_left(bench):
    """The run from there has the time that it needs; it ends by itself."""
    judged, said = bench.tried(bench.TRAPS["violation_stationary_at_zero"], "60s")
    assert judged == "right", said
