"""Conic programs in units for which their numbers are near 1.

    z = size columns z',   s = size R^-1 s',   objective' = unit objective

R maps every cone to itself. It multiplies

    each row of half-lines and equations             by a number
    all rows of a second-order or semidefinite cone  by one number
    t, y and u of ``t y >= |u|^2``                   by a, b and sqrt(ab)

and in ``y exp(x / y) <= z`` it divides z by c and subtracts log(c) y from x. The factors are powers of
2. They minimise the sum of the squared logarithms of all numbers (A. Curtis, J. Reid, On the automatic
scaling of matrices for Gaussian elimination, 1972).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse import linalg as splinalg

from fccomodel.conic.cones import Assembled

#: Iterations of the least-squares method for the factors.
ITERATIONS = 100
#: Damping of the least squares; it keeps factors near 1 if no number of the program determines them.
DAMPING = 1e-3
#: Relative accuracy of the least squares; the factors are rounded to powers of 2 afterwards.
LSQR_TOLERANCE = 1e-4
#: The largest exponent of a factor, as a power of 2.
MAX_POWER = 300.0
#: Numbers above this, or below its inverse, are far from 1.
FAR_FROM_ONE = 1e5
#: The largest exponent c by which an exponential exp(u) is replaced by exp(u - c).
MAX_SHIFT = 600.0


class MethodOutcome(NamedTuple):
    """The outcome of a method.

    status      the method's word for the outcome
    x           the point, or a ray
    z           the multipliers of the rows
    obj_val     the objective
    iterations  the number of iterations
    """

    status: str
    x: np.ndarray
    z: np.ndarray
    obj_val: float
    iterations: int


@dataclass(frozen=True, eq=False)
class ScaledProgram:
    """A program in other units.

    columns  factors of the variables
    turn     the sparse matrix R
    size     the factor of all variables
    unit     the factor of the objective
    """

    program: Assembled
    columns: np.ndarray
    turn: sparse.csr_matrix
    size: float
    unit: float

    def point(self, z: np.ndarray) -> np.ndarray:
        """A point z' of the scaled program in the original units."""
        return self.columns * z * self.size

    def duals(self, y: np.ndarray) -> np.ndarray:
        """Multipliers of the scaled program's rows as multipliers of the original rows."""
        return (self.turn.T @ y) / (self.unit * self.size)

    def whole(self, outcome: MethodOutcome) -> MethodOutcome:
        """The outcome on the scaled program, in the original units."""
        value = outcome.obj_val / self.unit
        x, z = self.point(outcome.x), self.duals(outcome.z)
        return outcome._replace(x=x, z=z, obj_val=value)


def odd(program: Assembled) -> bool:
    """Whether some numbers are far from 1: entries and right sides, or all costs."""
    numbers = np.abs(np.concatenate([program.A.data, program.b]))
    numbers = numbers[numbers != 0]
    if (numbers > FAR_FROM_ONE).any() or (numbers < 1 / FAR_FROM_ONE).any():
        return True
    costs = np.abs(np.concatenate([program.P.data, program.q]))
    largest_cost = costs.max(initial=0.0)
    return bool(largest_cost > FAR_FROM_ONE or 0 < largest_cost < 1 / FAR_FROM_ONE)


def scaled(program: Assembled, near: np.ndarray | None = None) -> ScaledProgram:
    """The program in units for which its numbers are near 1.

    ``near`` is a point around which exponentials are scaled.
    """
    shift = _shift(program, near)
    A = sparse.csr_matrix(shift @ program.A)
    P = sparse.csr_matrix(program.P + sparse.triu(program.P, 1).T)
    program = replace(program, b=shift @ program.b)
    exponents = _balanced(program, A, P)
    size = float(np.exp2(-exponents.side))
    unit = float(np.exp2(exponents.cost + exponents.side))
    factors = np.exp2(exponents.columns)
    of_columns = sparse.diags_array(factors)
    turn = _turn(program, exponents.rows)
    form = of_columns @ P @ of_columns
    balanced = replace(
        program,
        P=sparse.triu(form * (unit * size**2), format="csc"),
        q=factors * program.q * (unit * size),
        A=sparse.csc_matrix(turn @ A @ of_columns),
        b=(turn @ program.b) / size,
        constant=0.0,
    )
    return ScaledProgram(
        program=balanced,
        columns=factors,
        turn=sparse.csr_matrix(turn @ shift),
        size=size,
        unit=unit,
    )


class Exponents(NamedTuple):
    """The factors of a program as powers of 2: the exponents.

    columns  of the columns
    rows     of the rows
    side     of all right sides
    cost     of all costs
    """

    columns: np.ndarray
    rows: np.ndarray
    side: float
    cost: float


class ScalableNumbers(NamedTuple):
    """Numbers of a program, and the exponents that their factors are made of.

    values   the numbers
    rows     the matrix that selects the exponents of rows, None if these do not matter
    columns  the matrix that selects the exponents of columns, None if these do not matter
    side     how often the exponent of the right sides counts
    cost     how often the exponent of the costs counts
    weight   the weight of the numbers among the squares
    """

    values: np.ndarray
    rows: sparse.csr_matrix | None
    columns: sparse.csr_matrix | None
    side: float
    cost: float
    weight: float = 1.0

    def equations(self, rows: int, columns: int) -> tuple[sparse.csr_matrix, np.ndarray]:
        """The equations by which the numbers times their factors are 1, in powers of 2."""
        count = len(self.values)
        of_rows = self.rows
        if of_rows is None:
            of_rows = sparse.csr_matrix((count, rows))
        of_columns = self.columns
        if of_columns is None:
            of_columns = sparse.csr_matrix((count, columns))
        of_all = sparse.csr_matrix(np.tile([self.side, self.cost], (count, 1)))
        matrix = sparse.hstack([of_rows, of_columns, of_all])
        return matrix * self.weight, -np.log2(np.abs(self.values)) * self.weight


def _balanced(program: Assembled, A: sparse.csr_matrix, P: sparse.csr_matrix) -> Exponents:
    """The exponents of the factors, which minimise the sum of the squared logarithms of all numbers."""
    m, n = A.shape
    shared = _shared(program)
    k = shared.shape[1]
    entries = A.tocoo()
    form = P.tocoo()
    b = np.flatnonzero(program.b)
    q = np.flatnonzero(program.q)
    of_form = _picked(form.row, n) + _picked(form.col, n)
    weight_of_b = _weight(entries.nnz, len(b))
    weight_of_q = _weight(entries.nnz, len(q))
    groups = [
        ScalableNumbers(entries.data, shared[entries.row], _picked(entries.col, n), side=0.0, cost=0.0),
        ScalableNumbers(program.b[b], shared[b], None, side=1.0, cost=0.0, weight=weight_of_b),
        ScalableNumbers(program.q[q], None, _picked(q, n), side=0.0, cost=1.0, weight=weight_of_q),
        ScalableNumbers(form.data, None, of_form, side=-1.0, cost=1.0),
    ]
    matrices = []
    right_sides = []
    for numbers in groups:
        matrix, right = numbers.equations(k, n)
        matrices.append(matrix)
        right_sides.append(right)
    whole = sparse.vstack(matrices, format="csr")
    solution, *_ = splinalg.lsqr(
        whole,
        np.concatenate(right_sides),
        damp=DAMPING,
        atol=LSQR_TOLERANCE,
        btol=LSQR_TOLERANCE,
        iter_lim=ITERATIONS,
    )
    powers = np.clip(solution, -MAX_POWER, MAX_POWER)
    # Exponents of free factors are even, so that sqrt(ab) is a power of 2 too.
    rows = shared @ np.round(powers[:k] / 2) * 2
    side, cost = np.round(powers[k + n :])
    return Exponents(np.round(powers[k : k + n]), rows, float(side), float(cost))


def _weight(all_numbers: int, some: int) -> float:
    """The weight that gives a few numbers the same influence as all numbers."""
    return math.sqrt(max(all_numbers, 1) / max(some, 1))


def _picked(places: np.ndarray, count: int) -> sparse.csr_matrix:
    """The matrix that selects the entries at some places of a vector."""
    rows = np.arange(len(places))
    ones = np.ones(len(places))
    return sparse.csr_matrix((ones, (rows, places)), shape=(len(places), count))


def _shared(program: Assembled) -> sparse.csr_matrix:
    """The matrix that gives the logarithms of all rows' factors from those of the free factors.

    Factors that it gives map every cone to itself.
    """
    of_kind: dict[tuple[str, int, float], list[int]] = {}
    for number, cone in enumerate(program.cones):
        of_kind.setdefault(cone, []).append(number)
    sizes = np.array([size for _, size, _ in program.cones], dtype=int)
    free = np.zeros(len(sizes), dtype=int)
    patterns = {cone: _pattern(*cone) for cone in of_kind}
    for cone, numbers in of_kind.items():
        free[numbers] = patterns[cone].free
    first_row, first_free = np.cumsum(sizes) - sizes, np.cumsum(free) - free
    rows = []
    columns = []
    values = []
    for cone, numbers in of_kind.items():
        pattern = patterns[cone]
        rows.append((first_row[numbers][:, None] + pattern.rows).ravel())
        columns.append((first_free[numbers][:, None] + pattern.columns).ravel())
        values.append(np.tile(pattern.shares, len(numbers)))
    shape = int(sizes.sum()), int(free.sum())
    if not rows:
        return sparse.csr_matrix(shape)
    places = np.concatenate(rows), np.concatenate(columns)
    return sparse.csr_matrix((np.concatenate(values), places), shape=shape)


class Pattern(NamedTuple):
    """The shares of a cone's free factors in the logarithms of its rows' factors, by their places.

    free   the number of free factors
    """

    rows: np.ndarray
    columns: np.ndarray
    shares: np.ndarray
    free: int


def _pattern(kind: str, size: int, power: float) -> Pattern:
    """The pattern of a cone."""
    if kind in ("zero", "nonneg"):
        return Pattern(np.arange(size), np.arange(size), np.ones(size), size)
    entries = [
        (row, place, share)
        for row, of_row in enumerate(_shares(kind, size, power))
        for place, share in of_row.items()
    ]
    rows, columns, shares = zip(*entries, strict=True)
    return Pattern(np.array(rows), np.array(columns), np.array(shares), len(set(columns)))


def _shares(kind: str, size: int, power: float) -> list[dict[int, float]]:
    """For each row of a cone other than half-lines and equations, the shares of the cone's free factors in
    the logarithm of its factor."""
    if kind == "exponential":
        return [{0: 1.0}, {0: 1.0}, {1: 1.0}]
    if kind == "power":
        return [{0: 1.0}, {1: 1.0}, {0: power, 1: 1 - power}]
    if kind == "rotated":
        average = {0: 0.5, 1: 0.5}
        return [{0: 1.0}, {1: 1.0}, *[average] * (size - 2)]
    return [{0: 1.0}] * size


def _shift(program: Assembled, near: np.ndarray | None) -> sparse.csr_matrix:
    """The matrix that divides z of ``y exp(x / y) <= z`` by exp(c) and subtracts c y from x.

    c is x / y at the point ``near``.
    """
    m = len(program.b)
    if near is None:
        return sparse.csr_matrix(sparse.eye_array(m))
    x_rows = exponentials(program)
    y_rows = x_rows + 1
    z_rows = x_rows + 2
    slack = program.b - program.A @ near
    with np.errstate(all="ignore"):
        ratio = slack[x_rows] / slack[y_rows]
    c = np.nan_to_num(ratio, nan=0.0, posinf=0.0, neginf=0.0)
    c = np.clip(np.round(c), -MAX_SHIFT, MAX_SHIFT)
    factors = np.ones(m)
    factors[z_rows] = np.exp(-c)
    shear = sparse.csr_matrix((-c, (x_rows, y_rows)), shape=(m, m))
    return sparse.csr_matrix(sparse.diags_array(factors) + shear)


def _turn(program: Assembled, rows: np.ndarray) -> sparse.csr_matrix:
    """The matrix R for some exponents of the rows' factors."""
    factors = np.exp2(rows)
    at = exponentials(program)
    # c is the factor of y divided by the factor of z.
    log_c = (rows[at] - rows[at + 2]) * math.log(2)
    turn = sparse.csr_matrix(sparse.diags_array(factors))
    slopes = -log_c * factors[at]
    shear = sparse.csr_matrix((slopes, (at, at + 1)), shape=turn.shape)
    return sparse.csr_matrix(turn + shear)


def exponentials(program: Assembled) -> np.ndarray:
    """The first row of each exponential cone."""
    sizes = np.array([size for _, size, _ in program.cones], dtype=int)
    first = np.cumsum(sizes) - sizes
    return first[[kind == "exponential" for kind, *_ in program.cones]]
