"""First values of centres."""

from __future__ import annotations

import numpy as np
import pytest

import fccomodel
from fccomodel.evaluation import centres

MODEL = """dim d; set K = 1 .. 4; data D: table(x: real[d]); var c[K, d];
minimize E[z ~ D] min[k in K] {loss};"""
CORNERS = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0], [9.0, 9.0]])


def clustered(rows: int = 60) -> np.ndarray:
    """Rows near four corners."""
    rng = np.random.default_rng(0)
    return CORNERS[np.arange(rows) % 4] + 0.1 * rng.normal(size=(rows, 2))


@pytest.mark.parametrize("loss", ["sumsq(z.x - c[k])", "sumsq(c[k] - z.x)", "norm2(z.x - c[k])"])
def test_centres_are_rows_far_apart(loss: str) -> None:
    x = clustered()
    bound = fccomodel.compile(MODEL.format(loss=loss)).bind(D={"x": x}).bound
    for seed in range(5):
        first = centres.apart(bound, seed)["c"]
        assert all((x == row).all(axis=1).any() for row in first)
        corners = {int(np.square(CORNERS - row).sum(axis=1).argmin()) for row in first}
        assert corners == {0, 1, 2, 3}


def test_seeds_draw_other_centres_and_the_same_seed_draws_the_same() -> None:
    bound = fccomodel.compile(MODEL.format(loss="sumsq(z.x - c[k])")).bind(D={"x": clustered()}).bound
    one, again, other = (centres.apart(bound, seed)["c"] for seed in (0, 0, 1))
    assert (one == again).all()
    assert (one != other).any()


@pytest.mark.parametrize(
    "changed",
    [
        ("var c[K, d]", "var c[K, d] start 0"),
        ("var c[K, d]", "var c[K, d] in box(0, 1)"),
        ("z.x - c[k]", "z.x - 2 * c[k]"),
    ],
)
def test_other_variables_start_as_before(changed: tuple[str, str]) -> None:
    text = MODEL.format(loss="sumsq(z.x - c[k])").replace(*changed)
    assert centres.apart(fccomodel.compile(text).bind(D={"x": clustered()}).bound, 0) == {}


def test_few_rows_and_equal_rows() -> None:
    compiled = fccomodel.compile(MODEL.format(loss="sumsq(z.x - c[k])"))
    assert centres.apart(compiled.bind(D={"x": np.zeros((3, 2))}).bound, 0) == {}
    assert (centres.apart(compiled.bind(D={"x": np.ones((9, 2))}).bound, 0)["c"] == 1).all()


@pytest.mark.slow
def test_k_means_ends_at_the_clusters() -> None:
    x = clustered()
    result = fccomodel.compile(MODEL.format(loss="sumsq(z.x - c[k])")).bind(D={"x": x}).solve(seed=0)
    best = np.mean([np.square(x[k::4] - x[k::4].mean(axis=0)).sum(axis=1).mean() for k in range(4)])
    assert result.objective == pytest.approx(best, rel=1e-6)
