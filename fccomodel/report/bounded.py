"""Least squares under bounds, for many unknowns: a primal-dual interior-point method.

    minimise |M z + b|^2 / 2   subject to   G z <= h,   E z = e,   each row of G with at most two entries

S. Mehrotra's predictor and corrector (J. Nocedal, S. Wright, Numerical Optimization, 2006, Algorithm 16.4). The number of rounds
hardly depends on the number of unknowns, which methods that move from vertex to vertex pay for.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import torch

Array = np.ndarray
#: Rounds at most; the complementarity, relative to the first, at which it ends; what is added to the matrix's diagonal.
ROUNDS, SMALL, RIDGE = 60, 1e-19, 1e-15


@dataclass(frozen=True, eq=False, kw_only=True)
class Rows:
    """Row k of G z <= h:  near[k] z[at[k]] + far[k] z[beside[k]] <= h[k]  (``beside`` is ``at`` where ``far`` is 0)."""

    at: Array
    near: Array
    beside: Array
    far: Array
    h: Array

    def times(self, z: Array) -> Array:
        return self.near * z[self.at] + self.far * z[self.beside]

    def transposed(self, y: Array, size: int) -> Array:
        return np.bincount(self.at, self.near * y, size) + np.bincount(self.beside, self.far * y, size)

    def add_square(self, matrix: Array, weight: Array) -> None:
        """matrix += G' diag(weight) G."""
        for left, a in ((self.at, self.near), (self.beside, self.far)):
            for right, b in ((self.at, self.near), (self.beside, self.far)):
                np.add.at(matrix, (left, right), weight * a * b)

    def scaled(self, scale: Array) -> Rows:
        """The same for z / scale."""
        near, far = self.near * scale[self.at], self.far * scale[self.beside]
        return Rows(at=self.at, near=near, beside=self.beside, far=far, h=self.h)


def solve(matrix: Array, offset: Array, rows: Rows, equations: tuple[Array, Array], deadline: float) -> Array:
    """The z with the least residual, which may miss bounds and ``equations`` (E, e) by rounding; the last one by ``deadline``
    (perf_counter)."""
    norms = np.linalg.norm(matrix, axis=0)
    scale = 1 / np.maximum(norms, 1e-2 * max(float(norms.max()), 1e-300))
    matrix, rows, E, e = matrix * scale, rows.scaled(scale), equations[0] * scale, equations[1]
    square, linear = matrix.T @ matrix, matrix.T @ offset
    size = len(linear)
    z, x = np.zeros(size), np.zeros(len(e))
    s = np.maximum(rows.h - rows.times(z), 1e-2)
    y = np.full(len(s), max(float(np.abs(linear).max()), 1e-12))
    first = float(s @ y) / len(s)
    for _ in range(ROUNDS):
        dual, primal = square @ z + linear + rows.transposed(y, size) + x @ E, rows.times(z) + s - rows.h
        mean = float(s @ y) / len(s)
        if mean <= SMALL * first or time.perf_counter() > deadline:
            break
        normal = square.copy()
        rows.add_square(normal, y / s)
        normal[np.diag_indices(size)] += RIDGE * normal.trace() / size
        lower, failed = torch.linalg.cholesky_ex(torch.from_numpy(normal))
        if failed:
            break
        across = torch.cholesky_solve(torch.from_numpy(E.T.copy()), lower).numpy()  # made^-1 E'
        missed = E @ z - e

        def step(target: Array, lower=lower, dual=dual, primal=primal, s=s, y=y, across=across, missed=missed):
            shift = target / s - y + y / s * primal
            right = -dual - rows.transposed(shift, size)
            dz = torch.cholesky_solve(torch.from_numpy(right)[:, None], lower)[:, 0].numpy()
            dx = np.linalg.lstsq(E @ across, E @ dz + missed, rcond=None)[0] if len(e) else np.zeros(0)
            dz = dz - across @ dx
            ds = -primal - rows.times(dz)
            return dz, dx, ds, target / s - y - y / s * ds

        _, _, ds, dy = step(np.zeros_like(s))
        reach = min(_reach(s, ds), _reach(y, dy))
        centring = (float((s + reach * ds) @ (y + reach * dy)) / len(s) / mean) ** 3
        dz, dx, ds, dy = step(centring * mean - ds * dy)
        reach = 0.995 * min(_reach(s, ds), _reach(y, dy))
        if not np.isfinite(dz).all() or reach < 1e-10:
            break
        z, x, s, y = z + reach * dz, x + reach * dx, s + reach * ds, y + reach * dy
    return z * scale


def _reach(values: Array, change: Array) -> float:
    """How far values may move along their change and stay positive; at most 1."""
    falling = change < 0
    return min(1.0, float((-values[falling] / change[falling]).min(initial=np.inf)))
