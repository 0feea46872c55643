"""Multipliers and weights by cones: as near as any point of the sets, and optima at kinks that only
these sets hold."""

import numpy as np
import pytest

import fccomodel
from fccomodel import report
from fccomodel.core.work import Meter
from fccomodel.report.kinks.weights import WeightSet
from fccomodel.report.kkt import by_cones, least_squares, multipliers
from fccomodel.report.kkt.groups import Cone, KinkWeights, Simple, Weighing
from fccomodel.report.kkt.least_squares import Squares

KINDS = {
    "box": WeightSet(kind="box", low=-0.3, high=1.0),
    "simplex": WeightSet(kind="simplex", high=0.6),
    "ball": WeightSet(kind="ball"),
    "balls": WeightSet(kind="ball", columns=2),
    "positive": WeightSet(kind="positive"),
    "cross": WeightSet(kind="cross"),
    "spectral": WeightSet(kind="spectral", columns=2),
}


def squares(kind: str, seed: int) -> Squares:
    """Three rows of weights in the objective, two under a multiplier, one inside a weight, and two
    plain multipliers."""
    rng = np.random.default_rng(seed)
    at = np.arange(12).reshape(3, 4)
    inner = KinkWeights(at=np.array([[26, 27, 28, 29]]), weights=KINDS[kind])
    parts = (
        KinkWeights(at=at, weights=KINDS[kind]),
        KinkWeights(at=13 + np.arange(8).reshape(2, 4), weights=KINDS[kind]),
    )
    outer = KinkWeights(at=np.array([[21, 22, 23]]), weights=WeightSet(kind="simplex"), inside={22: (inner,)})
    groups = [Weighing(part=parts[0], scale=0.7), Cone(at=12, parts=(parts[1],)), Weighing(part=outer)]
    groups.append(Simple(at=np.array([24, 25]), free=np.array([False, True])))
    owner = np.where(np.arange(30) < 12, 0, 1)
    return Squares(
        matrix=rng.normal(size=(9, 30)), offset=5 * rng.normal(size=9), owner=owner, rate=0.1 * rng.random(30),
        constant=rng.normal(size=2), diagonal=np.where(np.arange(30) == 12, 0.3, 0.0), groups=groups,
    )  # fmt: skip


@pytest.mark.parametrize(("seed", "kind"), list(enumerate(KINDS)))
def test_no_point_of_the_sets_is_nearer(seed, kind):
    found = squares(kind, seed)
    z, ended = by_cones.solve(found, Meter(20.0))
    assert ended
    inside = z.copy()
    for group in found.groups:
        group.project(inside)
    np.testing.assert_allclose(inside, z, atol=1e-6)
    least = np.linalg.norm(found.residual(inside))
    slow = multipliers.descend(found, inside, Meter(20.0)).z
    assert least <= np.linalg.norm(found.residual(slow)) * (1 + 1e-7)
    rng = np.random.default_rng(seed)
    for size in np.geomspace(1e-4, 1, 30):
        near = inside + size * rng.normal(size=30)
        for group in found.groups:
            group.project(near)
        assert np.linalg.norm(found.residual(near)) >= least * (1 - 1e-9)


RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 6))
W = np.array([1.0, -0.5, 0.0, 0.0, 0.0, 0.0])
POINTS = np.array([[0.0, 0.0], [1.0, 0.1], [-1.0, 0.2], [0.1, 3.0], [0.2, -3.0]])
#: text, data, the optimum, a point that is none
EXACT = {
    "a root of squares that are 0": (
        "dim d; data D : table(x: real[d], y: real); var w[d]; minimize sqrt(E[z ~ D] (dot(w, z.x) - "
        "z.y)^2) + 0.01 * norm1(w);",
        {"D": {"x": X, "y": X @ W}},
        {"w": W},
        {"w": np.zeros(6)},
    ),
    "a root of squares of what is above 0, which nothing is": (
        "dim d; data D : table(x: real[d], y: real); var w[d];"
        "minimize sqrt(E[z ~ D] sqhinge(dot(w, z.x) - z.y)) + 0.01 * norm1(w);",
        {"D": {"x": X, "y": X @ W}},
        {"w": W},
        {"w": np.zeros(6)},
    ),
    "a standard deviation of 0": (
        "dim d; data D : table(x: real[d], y: real); var w[d];"
        "minimize sqrt(variance[z ~ D] (dot(w, z.x) - z.y)) + 0.01 * norm1(w);",
        {"D": {"x": X, "y": X @ W + 3}},
        {"w": W},
        {"w": np.zeros(6)},
    ),
    "three kinds, one inside another": (
        "data D : table(y: real); var w; let t = cvar(tail = 0.5)[z in D] max(w - z.y, 2 * (w - z.y) - 1);"
        "minimize max(t, 2 * t - 0.7) - 3.4 * w;",
        {"D": {"y": np.arange(4.0)}},
        {"w": 2.0},
        {"w": 2.1},
    ),
    "groups of 0": (
        "dim d; data D : table(x: real[d], y: real); var w[d]; minimize sumsq(w - 0.1) + group_norm(w, 2);",
        {"D": {"x": X, "y": X @ W}},
        {"w": np.zeros(6)},
        {"w": np.full(6, 0.1)},
    ),
    "distances of pairs with a condition": (
        "dim n; dim k; data p : real[n, k]; var x[n, k];"
        "minimize 0.01 * sumsq(x - p) + sum[i in n, j in n | j < i] norm2(x[i] - x[j]);",
        {"p": POINTS},
        {"x": np.tile(POINTS.mean(0), (5, 1))},
        {"x": np.tile(POINTS.mean(0) + 0.1, (5, 1))},
    ),
    "quantiles at levels of their own": (
        "dim k; data D : table(y: real); data level : real[k]; var q[k];"
        "minimize sum[i in k] E[z ~ D] pinball(z.y - q[i], level[i]);",
        {"D": {"y": np.arange(1.0, 10.0)}, "level": np.array([0.25, 0.5, 0.75])},
        {"q": np.array([3.0, 5.0, 7.0])},
        {"q": np.array([3.0, 4.0, 7.0])},
    ),
}


@pytest.mark.parametrize("name", EXACT)
def test_an_optimum_at_kinks(name):
    text, data, best, other = EXACT[name]
    bound = fccomodel.compile(text).bind(data=data).bound
    assert report.report(bound, best).epsilon < 1e-7
    assert report.report(bound, other).epsilon > 1e-3


def test_little_work_is_shared_by_the_methods():
    """A tail of tails where all are alike: a method that is cut short leaves the rest to others."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(170, 5)), np.repeat([1, 0], [40, 130])
    x[:40, 0] += 1
    bound = fccomodel.compile(
        "dim d; data D : table(x: real[d], y: {0, 1}); set P = {z in D | z.y == 1}; set N = {z in D | "
        "z.y == 0}; var w[d];"
        "minimize cvar(tail = 0.3)[p in P] (cvar(tail = 0.1)[n ~ N] sqhinge(1 - dot(w, p.x - n.x))) + "
        "0.001 * sumsq(w);"
    ).bind(D={"x": x, "y": y}).bound  # fmt: skip
    assert report.report(bound, {"w": np.zeros(5)}, work=Meter(0.05)).epsilon < 1e-6


def test_squares_with_many_zeros_are_stacked_as_a_sparse_matrix(monkeypatch):
    random = np.random.default_rng(0)
    rate = np.where(random.uniform(size=60) < 0.2, random.normal(size=60), 0.0)
    squares = Squares(
        matrix=np.where(random.uniform(size=(80, 60)) < 0.02, 1.0, 0.0),
        offset=random.normal(size=80),
        owner=random.integers(0, 4, 60),
        rate=rate,
        constant=np.array([0.0, 1.0, 0.0, 2.0]),
        diagonal=np.where(random.uniform(size=60) < 0.5, random.normal(size=60), 0.0),
    )
    z = random.normal(size=60)
    wanted = np.linalg.norm(squares.residual(z))
    dense, offset = squares.stacked()
    assert isinstance(dense, np.ndarray) and np.linalg.norm(dense @ z + offset) == pytest.approx(wanted)
    monkeypatch.setattr(least_squares, "SPARSE_FROM", 0)
    sparse, offset = squares.stacked()
    assert not isinstance(sparse, np.ndarray) and np.linalg.norm(sparse @ z + offset) == pytest.approx(wanted)
