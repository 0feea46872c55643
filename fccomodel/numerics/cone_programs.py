"""Linear and quadratic programs over cones, and their solution by Clarabel (P. Goulart, Y. Chen, 2024).

minimise   1/2 z'Pz + q.z   subject to   A z + s = b,   s in a product of cones
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse


@dataclass(frozen=True, eq=False)
class ConeProgram:
    """A program as numbers.

    P      upper triangle of the quadratic form, (n, n)
    A, b   rows (m, n) and right sides (m)
    cones  one entry for each cone, in the order of the rows: its kind, its number of rows, and the
           exponent of a power cone.
           Kinds: ``zero``, ``nonneg``, ``second_order``, ``exponential``, ``power``, and
           ``semidefinite``, whose rows are the upper triangle of a matrix, column by column, with
           entries beside the diagonal multiplied by sqrt 2
    """

    P: sparse.csc_matrix
    q: np.ndarray
    A: sparse.csc_matrix
    b: np.ndarray
    cones: list[tuple[str, int, float]]


def solved(
    program: ConeProgram,
    *,
    accuracy: float,
    accepted: float | None = None,
    step: float | None = None,
    iterations: int | None = None,
    seconds: float | None = None,
) -> Any:
    """Clarabel's solution: ``x``, the duals ``z``, ``status``, ``iterations``, ``obj_val``.

    accuracy    tolerance of the gap and of the residuals, absolute and relative
    accepted    tolerance that still counts as almost solved; Clarabel's own if None
    step        largest share of the way to the boundary that a step takes; Clarabel's own if None
    iterations  at most this many, and no more than Clarabel allows by itself
    seconds     time limit by the clock
    """
    import clarabel

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = accuracy
    if accepted is not None:
        settings.reduced_tol_gap_abs = settings.reduced_tol_gap_rel = settings.reduced_tol_feas = accepted
    if step is not None:
        settings.max_step_fraction = step
    if iterations is not None:
        settings.max_iter = min(iterations, settings.max_iter)
    if seconds is not None:
        settings.time_limit = seconds
    cones = [_cone(kind, rows, exponent) for kind, rows, exponent in program.cones]
    solver = clarabel.DefaultSolver(program.P, program.q, program.A, program.b, cones, settings)
    return solver.solve()


def _cone(kind: str, rows: int, exponent: float) -> Any:
    """Clarabel's description of one cone."""
    import clarabel

    if kind == "exponential":
        return clarabel.ExponentialConeT()
    if kind == "power":
        return clarabel.PowerConeT(exponent)
    if kind == "semidefinite":
        return clarabel.PSDTriangleConeT((math.isqrt(8 * rows + 1) - 1) // 2)
    kinds = {
        "zero": clarabel.ZeroConeT,
        "nonneg": clarabel.NonnegativeConeT,
        "second_order": clarabel.SecondOrderConeT,
    }
    return kinds[kind](rows)
