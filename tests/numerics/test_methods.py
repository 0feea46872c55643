"""Numerical methods on small problems whose answers are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from fccomodel.core.work import Meter
from fccomodel.numerics import fista, golden_sections, power_method
from fccomodel.numerics.cone_programs import ConeProgram, solved

A = np.random.default_rng(0).normal(size=(12, 5))
B = np.random.default_rng(1).normal(size=12)


def test_the_power_method_finds_the_largest_eigenvalue():
    exact = np.linalg.eigvalsh(A.T @ A).max()
    found = power_method.largest_eigenvalue(lambda z: A.T @ (A @ z), 5, rounds=200)
    assert 0.99 * exact <= found <= exact * (1 + 1e-12)
    assert power_method.largest_eigenvalue(np.zeros_like, 5, rounds=10) == 0.0


def test_golden_sections_find_a_peak():
    places = []

    def value(x):
        places.append(x)
        return -((x - 0.3) ** 2)

    found, where = golden_sections.largest(value, -1.0, 2.0, (value(0.0), 0.0), rounds=40)
    assert where == pytest.approx(0.3, abs=1e-7) and found == value(where)
    assert all(-1 < x < 2 for x in places)
    assert golden_sections.largest(lambda x: -x, 0.0, 1.0, (5.0, 0.5), rounds=3) == (5.0, 0.5)


def least_squares(project, iterations=20_000):
    lipschitz = 1.1 * np.linalg.eigvalsh(A.T @ A).max()
    return fista.least_squares(
        lambda z: A @ z - B, lambda rest: A.T @ rest, project, np.zeros(5),
        lipschitz=lipschitz, price=0.0, meter=Meter(), iterations=iterations,
    )  # fmt: skip


def test_projected_gradients_end_at_the_least_squares():
    found = least_squares(lambda z: z)
    assert found.z == pytest.approx(np.linalg.lstsq(A, B, rcond=None)[0], abs=1e-8)
    positive = least_squares(lambda z: np.maximum(z, 0))
    slope = A.T @ (A @ positive.z - B)
    assert (
        positive.exact
        and (positive.z >= 0).all()
        and (slope >= -1e-7).all()
        and abs(slope @ positive.z) <= 1e-7
    )


def test_projected_gradients_say_that_they_were_cut_short():
    assert not least_squares(lambda z: z, iterations=2).exact


def program(
    kind: str, rows: np.ndarray, sides: np.ndarray, exponent: float = 0.0, **quadratic
) -> ConeProgram:
    """minimise -sum z over z with sides - rows z in one cone."""
    n = rows.shape[1]
    P = quadratic.get("P", np.zeros((n, n)))
    return ConeProgram(
        sparse.csc_matrix(P), -np.ones(n), sparse.csc_matrix(rows), sides, [(kind, len(sides), exponent)]
    )


@pytest.mark.parametrize(
    ("made", "best"),
    [
        (program("nonneg", np.eye(2), np.ones(2)), -2.0),
        (program("zero", np.eye(2), np.array([3.0, 4.0])), -7.0),
        (
            program("second_order", np.vstack([np.zeros(2), -np.eye(2)]), np.array([1.0, 0.0, 0.0])),
            -np.sqrt(2),
        ),
        # [[1, z / sqrt 2], [z / sqrt 2, 1]] has no negative eigenvalue
        (program("semidefinite", np.array([[0.0], [-1.0], [0.0]]), np.array([1.0, 0.0, 1.0])), -np.sqrt(2)),
        # sqrt(1 * 4) >= |z|
        (program("power", np.array([[0.0], [0.0], [-1.0]]), np.array([1.0, 4.0, 0.0]), exponent=0.5), -2.0),
        # 1 * exp(z / 1) <= e
        (program("exponential", np.array([[-1.0], [0.0], [0.0]]), np.array([0.0, 1.0, np.e])), -1.0),
        (program("nonneg", np.eye(1), np.array([10.0]), P=np.eye(1)), -0.5),
    ],
)
def test_cone_programs_are_solved(made: ConeProgram, best: float):
    found = solved(made, accuracy=1e-9)
    assert str(found.status) == "Solved" and found.obj_val == pytest.approx(best, abs=1e-6)


def test_limits_end_a_cone_program_early():
    made = program("second_order", np.vstack([np.zeros(2), -np.eye(2)]), np.array([1.0, 0.0, 0.0]))
    assert str(solved(made, accuracy=1e-9, iterations=1).status) == "MaxIterations"


def test_least_squares_end_once_the_clock_has_ended_them():
    """They end between two iterations, not at the next look at the residual."""
    meter, projected = Meter(), []

    def project(z):
        projected.append(z)
        meter.until = 0.0
        return np.clip(z, -0.1, 0.1)

    lipschitz = 1.1 * np.linalg.eigvalsh(A.T @ A).max()
    fista.least_squares(
        lambda z: A @ z - B, lambda rest: A.T @ rest, project, np.zeros(5),
        lipschitz=lipschitz, price=0.0, meter=meter, iterations=1000,
    )  # fmt: skip
    assert len(projected) <= 3 and meter.timed
