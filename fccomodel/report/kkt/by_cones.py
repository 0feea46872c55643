"""Least squares over the sets of multipliers and weights, by an interior-point method on their cones
(Clarabel): for any sets, and for matrices of moderate size or sparse ones.

    minimise t   subject to   t >= |M z + b|,   each row of weights in s Q, s a number or an unknown
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from fccomodel.core.work import Meter, multiplied
from fccomodel.numerics.ball_maxima import CHI2, TV
from fccomodel.numerics.cone_programs import ConeProgram, solved
from fccomodel.report.kinks.weights import WeightSet
from fccomodel.report.kkt.groups import Array, Cone, Group, KinkWeights, Simple, Weighing
from fccomodel.report.kkt.least_squares import Squares

#: Accuracy that the solver is asked for.
ACCURACY = 1e-12
#: Numbers in the rows of a program, at most.
MOST_NUMBERS = 300_000
#: Entries in the triangle of a semidefinite matrix, at most.
MOST_TRIANGLE = 1_500
#: Least time limit, in seconds by the clock.
LEAST_S = 0.05
#: Iterations that the solver needs as a rule.
USUAL_ITERATIONS = 25
#: Statuses of a solver that came to its end.
ENDED = ("Solved", "AlmostSolved")
#: Affine functions of the unknowns: a matrix, and constants.
Rows = tuple[sparse.csr_matrix, Array]


def solve(squares: Squares, meter: Meter) -> tuple[Array, bool] | None:
    """The z with the least residual, and whether the solver came to its end there.

    The groups' projections may still move z a little. None if the matrix is known by its products
    alone, if the program is too large, or if too little work is left.
    """
    if squares.tangent is not None or not isinstance(squares.matrix, np.ndarray):
        return None
    program = _Program(squares.size)
    for group in squares.groups:
        program.add(group)
    numbers = program.with_least_length(_stacked(squares))
    if numbers.A.nnz > MOST_NUMBERS or program.triangle > MOST_TRIANGLE:
        return None
    price = _price(numbers.A)
    affordable = meter.left / price
    if affordable < USUAL_ITERATIONS:  # an answer cut short is worth less than the same work otherwise
        return None
    iterations = None
    if math.isfinite(affordable):
        iterations = int(affordable)
    seconds = None
    if math.isfinite(meter.until):
        seconds = max(meter.until - time.perf_counter(), LEAST_S)
    result = solved(numbers, accuracy=ACCURACY, iterations=iterations, seconds=seconds)
    meter.spend(price * result.iterations)
    z = np.asarray(result.x)[: squares.size]
    if len(z) and np.isfinite(z).all():
        return (z, str(result.status) in ENDED)
    return None


def _price(A: sparse.csc_matrix) -> float:
    """Counted seconds of an iteration, from the products of the entries in each row."""
    entries = np.diff(sparse.csr_matrix(A).indptr).astype(float)
    return multiplied(float((entries**2).sum()) + 100.0 * A.nnz, calls=20)


def _stacked(squares: Squares) -> Rows:
    """The residual as affine functions: the gradient, the errors of each function's subgradients, and
    multipliers times values."""
    size = squares.size
    missed = sparse.csr_matrix(
        (squares.rate, (squares.owner, np.arange(size))), shape=(len(squares.constant), size)
    )
    nonzero = np.flatnonzero(squares.diagonal)
    count = len(nonzero)
    entries = (squares.diagonal[nonzero], (np.arange(count), nonzero))
    products = sparse.csr_matrix(entries, shape=(count, size))
    matrix = sparse.csr_matrix(np.asarray(squares.matrix))
    return (
        sparse.vstack([matrix, missed, products], format="csr"),
        np.concatenate([squares.offset, squares.constant, np.zeros(len(nonzero))]),
    )


def _wide(rows: sparse.csr_matrix, columns: int) -> sparse.csr_matrix:
    """The matrix with more columns, which are 0."""
    shape = (rows.shape[0], columns)
    return sparse.csr_matrix((rows.data, rows.indices, rows.indptr), shape=shape)


class _Program:
    """The groups' sets as cones.

    rows       affine functions of the unknowns and of ``more`` added variables
    cones      the kind and the number of rows of each cone
    triangle   entries in the largest triangle of a semidefinite matrix
    """

    def __init__(self, size: int):
        self.size, self.more, self.triangle = size, 0, 0
        self.rows: list[Rows] = []
        self.cones: list[tuple[str, int]] = []

    def add(self, group: Group) -> None:
        """The set of a group."""
        if isinstance(group, Simple):
            self.nonneg(self.at(group.at[~group.free]))
        elif isinstance(group, Cone):
            self.nonneg(self.at(np.array([group.at])))
            for part in group.parts:
                self.part(part, group.at, 1.0)
        elif isinstance(group, Weighing):
            self.part(group.part, -1, group.scale)

    def part(self, part: KinkWeights, place: int, scale: float) -> None:
        """Each row of weights in its set times the unknown at ``place`` (-1: times ``scale``), and the
        weights of kinks inside."""
        q = part.weights
        if q.kind == "box":
            self.box(part, place, scale)
        elif q.kind == "simplex":
            self.simplex(part, place, scale)
        elif q.kind == "cross":
            self.cross(part, place, scale)
        elif q.centre:
            for row in part.at:
                self.distribution(q, row, place, scale)
        else:
            for row in part.at:
                self.curved(q.kind, row, q.columns, self.times(place, scale, 1))
        for at, inside in part.inside.items():
            for inner in inside:
                self.part(inner, at, 1.0)

    def box(self, part: KinkWeights, place: int, scale: float) -> None:
        """low s <= q <= high s."""
        flat = part.at.ravel()
        for side, end in ((1.0, part.weights.low), (-1.0, part.weights.high)):
            limit = (-side * end, self.times(place, scale, len(flat)))
            self.nonneg(_sum((side, self.at(flat)), limit))

    def simplex(self, part: KinkWeights, place: int, scale: float) -> None:
        """0 <= q <= high s, and each row's sum is total s."""
        q, flat = part.weights, part.at.ravel()
        self.nonneg(self.at(flat))
        if q.high < q.total:
            limit = (q.high, self.times(place, scale, len(flat)))
            self.nonneg(_sum((-1.0, self.at(flat)), limit))
        total = (-q.total, self.times(place, scale, len(part.at)))
        self.append("zero", _sum((1.0, self.summed(part.at)), total))

    def cross(self, part: KinkWeights, place: int, scale: float) -> None:
        """|q|_1 <= s in each row, by an added variable for every entry's size."""
        flat = part.at.ravel()
        size = self.size + self.more + np.arange(len(flat))
        self.more += len(flat)
        for side in (1.0, -1.0):
            self.nonneg(_sum((1.0, self.at(size)), (side, self.at(flat))))
        limit = (1.0, self.times(place, scale, len(part.at)))
        self.nonneg(_sum((-1.0, self.summed(size.reshape(part.at.shape))), limit))

    def distribution(self, q: WeightSet, row: Array, place: int, scale: float) -> None:
        """q >= 0 of sum s within a divergence s r of s p, for a ball with centre p and radius r."""
        p = np.array(q.centre)
        factor = self.times(place, scale, len(row))
        centre = (sparse.diags(p) @ factor[0]).tocsr(), p * factor[1]
        one = self.times(place, scale, 1)
        self.nonneg(self.at(row))
        self.append("zero", _sum((1.0, self.summed(row[None])), (-1.0, one)))
        if q.kind == CHI2:
            apart, const = _sum((1.0, self.at(row)), (-1.0, centre))
            unit = sparse.diags(1 / np.sqrt(p))
            reach = _sum((math.sqrt(q.radius), one))
            self.append("second_order", _joined([reach, ((unit @ apart).tocsr(), const / np.sqrt(p))]))
            return
        far = self.size + self.more + np.arange(len(row))
        self.more += len(row)
        if q.kind == TV:
            for side in (0.5, -0.5):
                self.nonneg(_sum((1.0, self.at(far)), (side, self.at(row)), (-side, centre)))
        else:
            for k in range(len(row)):
                entry = centre[0][k], centre[1][[k]]
                self.append(
                    "exponential", _joined([_sum((-1.0, self.at(far[[k]]))), self.at(row[[k]]), entry])
                )
        self.nonneg(_sum((q.radius, one), (-1.0, self.summed(far[None]))))

    def curved(self, kind: str, row: Array, columns: int, scale: Rows) -> None:
        """|q| <= s, perhaps with q >= 0, or a condition on the matrix q."""
        if kind in ("ball", "positive"):
            if kind == "positive":
                self.nonneg(self.at(row))
            for group in row.reshape(-1, columns or len(row)):
                self.append("second_order", _joined([scale, self.at(group)]))
        elif kind == "spectral":
            self.spectral(row, columns, scale)
        elif kind == "nuclear":
            self.nuclear(row, columns, scale)
        else:
            self.spectraplex(row.reshape(columns, columns), scale)

    def nuclear(self, row: Array, columns: int, scale: Rows) -> None:
        """Singular values with a sum of at most s: a symmetric [[A, q], [q', B]] has no negative eigenvalue
        and a trace of at most 2 s."""
        n, m = len(row) // columns, columns
        whole = np.zeros((n + m, n + m), dtype=int)
        whole[:n, n:] = row.reshape(n, m)
        j, i = np.tril_indices(n + m)
        own = (i < n) == (j < n)
        added = self.size + self.more + np.arange(int(own.sum()))
        self.more += len(added)
        whole[i[own], j[own]] = added
        self.semidefinite(whole[i, j], i == j)
        trace = self.at(whole[np.arange(n + m), np.arange(n + m)])
        once = sparse.csr_matrix(np.ones((1, n + m)))
        self.nonneg(_sum((2.0, scale), (-1.0, (once @ trace[0], np.zeros(1)))))

    def spectraplex(self, places: Array, scale: Rows) -> None:
        """A symmetric q without a negative eigenvalue, of trace s."""
        j, i = np.tril_indices(len(places))
        self.semidefinite(places[i, j], i == j)
        apart = i != j
        self.append("zero", _sum((1.0, self.at(places[i, j][apart])), (-1.0, self.at(places[j, i][apart]))))
        self.append("zero", _sum((1.0, self.summed(np.diag(places)[None])), (-1.0, scale)))

    def semidefinite(self, places: Array, on_diagonal: Array) -> None:
        """Demand that a symmetric matrix has no negative eigenvalue, by its upper triangle, column after
        column."""
        rows, const = self.at(places)
        factors = sparse.diags_array(np.where(on_diagonal, 1.0, 2**0.5))
        self.triangle = max(self.triangle, len(places))
        self.append("semidefinite", (sparse.csr_matrix(factors @ rows), const))

    def spectral(self, row: Array, columns: int, scale: Rows) -> None:
        """Singular values of at most s: [[s I, q], [q', s I]] has no negative eigenvalue."""
        n, m = len(row) // columns, columns
        j, i = np.tril_indices(n + m)
        ends = (i == j).astype(float)
        mixed = np.flatnonzero((i < n) & (j >= n))
        place = row.reshape(n, m)[i[mixed], j[mixed] - n]
        roots_of_2 = np.full(len(mixed), 2**0.5)
        shape = (len(i), self.size + self.more)
        entries = sparse.csr_matrix((roots_of_2, (mixed, place)), shape=shape)
        wide = _wide(scale[0], self.size + self.more)
        triangle = entries + sparse.csr_matrix(ends[:, None]) @ wide, ends * scale[1][0]
        self.triangle = max(self.triangle, len(i))
        self.rows.append(triangle)
        self.cones.append(("semidefinite", len(i)))

    def with_least_length(self, residual: Rows) -> ConeProgram:
        """The program with one more variable t, the least that is at least |M z + b|."""
        M, b = residual
        t = self.size + self.more
        minus_t = sparse.csr_matrix((np.array([-1.0]), (np.array([0]), np.array([t]))), shape=(1, t + 1))
        of_residual = -_wide(M, t + 1)
        of_groups = (-_wide(rows, t + 1) for rows, _ in self.rows)
        A = sparse.vstack([minus_t, of_residual, *of_groups], format="csc")
        right = np.concatenate([np.zeros(1), b, *(const for _, const in self.rows)])
        cones = [("second_order", 1 + len(b), 0.0), *((kind, size, 0.0) for kind, size in self.cones)]
        objective = np.append(np.zeros(t), 1.0)
        no_squares = sparse.csc_matrix((t + 1, t + 1))
        return ConeProgram(no_squares, objective, A, right, cones)

    # ----------------------------------------------------------------------------------------- rows
    def at(self, places: Array) -> Rows:
        """The unknowns at these places."""
        count = len(places)
        shape = (count, self.size + self.more)
        entries = sparse.csr_matrix((np.ones(count), (np.arange(count), places)), shape=shape)
        return entries, np.zeros(count)

    def summed(self, places: Array) -> Rows:
        """The sum of the unknowns in each row of places."""
        count, width = places.shape
        rows = np.repeat(np.arange(count), width)
        shape = (count, self.size + self.more)
        entries = sparse.csr_matrix((np.ones(places.size), (rows, places.ravel())), shape=shape)
        return entries, np.zeros(count)

    def times(self, place: int, scale: float, count: int) -> Rows:
        """The number that scales a set, ``count`` times: the unknown at ``place``, or ``scale`` if that
        is negative."""
        if place < 0:
            return sparse.csr_matrix((count, self.size + self.more)), np.full(count, scale)
        return self.at(np.full(count, place))

    def nonneg(self, rows: Rows) -> None:
        """Demand that these rows are at least 0."""
        self.append("nonneg", rows)

    def append(self, kind: str, rows: Rows) -> None:
        """Demand that these rows are in a cone of this kind."""
        if len(rows[1]):
            self.rows.append(rows)
            self.cones.append((kind, len(rows[1])))


def _sum(*parts: tuple[float, Rows]) -> Rows:
    """The sum of affine functions, each times a factor."""
    columns = max(rows.shape[1] for _, (rows, _) in parts)
    total: Any = sum(factor * _wide(rows, columns) for factor, (rows, _) in parts)
    const: Any = sum(factor * const for factor, (_, const) in parts)
    return total, const


def _joined(parts: Sequence[Rows]) -> Rows:
    """All affine functions of the parts, one below the other."""
    columns = max(rows.shape[1] for rows, _ in parts)
    matrix = sparse.vstack([_wide(rows, columns) for rows, _ in parts], format="csr")
    return matrix, np.concatenate([const for _, const in parts])
