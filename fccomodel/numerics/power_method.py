"""The largest eigenvalue of a symmetric matrix, from products with vectors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

#: Relative change of the estimate at which the method ends.
SETTLED = 1e-3


def largest_eigenvalue(times: Callable[[np.ndarray], np.ndarray], size: int, rounds: int) -> float:
    """An estimate from below of the largest eigenvalue of a positive semidefinite matrix.

    times   product of the matrix with a vector (size)
    rounds  largest number of products; the method ends earlier once the estimate settles
    """
    z, estimate = np.random.default_rng(0).standard_normal(size), 0.0
    for _ in range(rounds):
        length = float(np.linalg.norm(z))
        if not length:
            break
        z = times(z / length)
        before, estimate = estimate, float(np.linalg.norm(z))
        if abs(estimate - before) < SETTLED * estimate:
            break
    return estimate
