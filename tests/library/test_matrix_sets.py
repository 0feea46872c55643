"""Sets of symmetric matrices: projections, tangents, normals and supports by their definitions."""

import inspect
import math

import numpy as np
import pytest
import torch
from scipy.optimize import nnls

from fccomodel import conic
from fccomodel.conic.cones import Cones, assembled
from fccomodel.library import sets
from fccomodel.program.emit.carried import carried

N = 4
SQUARE = [simple for simple in sets.all().values() if simple.square]
each = pytest.mark.parametrize("simple", SQUARE, ids=lambda simple: simple.name)


def matrices(count: int, scale: float = 1.5) -> torch.Tensor:
    rng = np.random.default_rng(5)
    low_rank = np.einsum("kir,kjr->kij", *rng.normal(size=(2, count, N, 2)))
    return torch.tensor(
        scale * (low_rank * rng.integers(0, 2, (count, 1, 1)) + rng.normal(size=(count, N, N)))
    )


@each
def test_projection_tangent_and_support(simple):
    others = torch.stack([simple.project(v) for v in matrices(60, 3.0)])
    for v, s in zip(matrices(30), matrices(30, 2.0).flip(0), strict=True):
        p = simple.project(v)
        assert simple.contains(p, tolerance=1e-12) and torch.allclose(simple.project(p), p, atol=1e-12)
        assert float(((others - p) * (v - p)).sum((1, 2)).max()) <= 1e-9 * (1 + float(v.norm()))
        assert float(simple.normal_distance(v - p, p, tolerance=1e-9)) < 1e-9
        step = (simple.project(p + 1e-6 * s) - p) / 1e-6
        assert torch.allclose(simple.tangent(s, p, tolerance=1e-9), step, atol=1e-4)
        assert float(simple.support(s)) == math.inf
        assert float(simple.support(v - p)) == 0.0
    assert simple.symmetric == (not simple.contains(p + torch.triu(torch.ones(N, N), 1), tolerance=1e-3))


@each
def test_normals_are_orthogonal_to_the_face(simple):
    for v in matrices(6):
        w = simple.project(v)
        normals = simple.normals(w, tolerance=1e-9)
        assert normals.equation and not bool(normals.low.any() | normals.high.any())
        rows = torch.cat([normals.rows, -normals.rows]).numpy()
        if normals.whole:
            assert nnls(rows.T, (v - w).reshape(-1).numpy())[1] < 1e-9
        for row in normals.rows:
            assert abs(float((row.reshape(N, N) * w).sum())) < 1e-9


@each
def test_the_set_as_a_conic_program(simple):
    v = matrices(1)[0]
    k = Cones()
    w = k.variable((N, N))
    simple.cone(k, w)
    program = assembled(k, k.squares((w - v).reshape(-1)))
    answer = conic.solve(conic.Conic(program, 1.0, {"w": (0, (N, N))}, {}))
    assert np.allclose(answer.variables["w"], simple.project(v), atol=1e-5)


@each
def test_projections_stand_by_themselves_in_any_precision(simple):
    scope = {"torch": torch}
    for function in carried([simple.project]):
        exec(compile(inspect.getsource(function), "solver", "exec"), scope)  # noqa: S102
    v = matrices(1)[0]
    project = scope[simple.project.__name__]
    assert torch.equal(project(v), simple.project(v)) and project(v.float()).dtype == torch.float32
    assert torch.allclose(project(v.float()).double(), simple.project(v), atol=1e-5)


def test_what_is_not_finite_stays_so():
    v = torch.eye(3, dtype=torch.float64)
    v[0, 0] = math.nan
    assert bool(sets.get("psd").project(v).isnan().any())
