"""Proofs that a conic program has no optimum.

The proofs are rays, which are checked here whatever method has computed them:

    no z satisfies s = b - A z in K      if some y has y in K*, A'y = 0, b.y < 0   (J. Farkas, 1902)
    q.z + z'Pz / 2 falls without bound   from every such z along d, if P d = 0, -A d in K, q.d < 0

A ray in floating point satisfies its equations up to rounding. It is a proof in these cases, which are
tried in order:

1. The program itself states bounds of its variables, and these make up for the residuals.
2. An exact ray is near. Let M be the matrix of the equations, with columns times weights w_i and rows
   of length 1. If it has no singular value below c, M (y + e) = 0 has a solution with
   |e_i| <= w_i |M y| / c. If y + e is in the cone for all such e, it is the exact ray. This holds for
   all matrices within some roundings of M (as in C. Jansson, Rigorous lower and upper bounds in linear
   programming, 2004).
3. A ray of small fractions, or a ray by exact elimination, satisfies the equations exactly.

Otherwise A'y = r still proves that no feasible z has |r||z| < -b.y, so none is within a radius.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy import linalg, sparse

from fccomodel.conic.cones import Assembled

#: Relative rounding of one operation.
ROUNDING = 2.0**-53
#: Relative error of the program's numbers, in roundings.
ROUNDINGS = 8.0
#: Entries of a ray below this share of the largest count as 0.
ZERO_SHARE = 1e-9
#: The largest number of rows and of columns of a matrix that is factored.
MAX_FACTORED = 2500
#: The largest number of rows and of columns of a matrix that is eliminated exactly.
MAX_ELIMINATED = 40
#: The largest number of rows and of columns of a matrix whose independent rows are determined.
MAX_RANKED = 300
#: Lower bounds of eigenvalues that are tried.
LEVELS = (1e-3, 1e-6, 1e-9)
#: Pivots below this share of the largest count as 0.
DEPENDENT = 1e-10
#: Largest denominators of the fractions that are tried.
DENOMINATORS = (1, 12, 1000)
#: Corrections of a ray before it is checked.
CORRECTIONS = 3


@dataclass(frozen=True, eq=False)
class ConflictProof:
    """Multipliers which prove that no point satisfies all conditions.

    If ``radius`` is finite, the proof excludes only points whose entries of the model's variables
    have at most that norm.
    """

    y: np.ndarray
    radius: float


def blocks(program: Assembled) -> Iterator[tuple[str, slice, float]]:
    """Kind, rows and exponent of each cone; the rows of a block of half-lines or equations are one."""
    first = 0
    for kind, size, power in program.cones:
        yield kind, slice(first, first + size), power
        first += size


# -------------------------------------------------------------------------------------------- cones
def _nearest_dual(kind: str, y: np.ndarray, power: float) -> np.ndarray:
    """A point of the dual cone near y, up to rounding."""
    y = y.copy()
    if kind == "nonneg":
        return np.maximum(y, 0.0)
    if kind == "second_order":
        rounded_up = 1 + 4 * ROUNDING * len(y)
        y[0] = max(y[0], float(np.linalg.norm(y[1:])) * rounded_up)
    elif kind == "rotated":
        y[:2] = np.maximum(y[:2], 0.0)
        largest_norm = 2 * math.sqrt(y[0] * y[1])
        y[2:] *= _shrunk(largest_norm, float(np.linalg.norm(y[2:])))
    elif kind == "exponential":
        u, v, w = y
        if u >= 0:
            return np.array([0.0, max(v, 0.0), max(w, 0.0)])
        y[2] = max(w, _exponential(u, v) * (1 + 16 * ROUNDING))
    elif kind == "power":
        y[:2] = np.maximum(y[:2], 0.0)
        largest = _power(y[0], y[1], power)
        y[2] *= _shrunk(largest, abs(y[2]))
    elif kind == "semidefinite":
        least = float(np.linalg.eigvalsh(_matrix(y)).min())
        n = _side(y)
        if least < 0:
            y[_diagonal(n)] += -least * (1 + 4 * ROUNDING * n)
    return y


def _shrunk(most: float, size: float) -> float:
    """The factor that makes a size at most ``most``, up to rounding."""
    if size <= most:
        return 1.0
    return most / size * (1 - 16 * ROUNDING)


def _exponential(u: float, v: float) -> float:
    """The least w with (u, v, w) in the dual of the exponential cone, u < 0."""
    with np.errstate(over="ignore"):
        return float(-u * np.exp(v / u - 1))


def _power(u: float, v: float, a: float) -> float:
    """The largest |w| with (u, v, w) in the dual of the power cone."""
    return float((u / a) ** a * (v / (1 - a)) ** (1 - a))


def _side(y: np.ndarray) -> int:
    """The number of rows of the symmetric matrix with this upper triangle."""
    return (math.isqrt(8 * len(y) + 1) - 1) // 2


def _diagonal(n: int) -> np.ndarray:
    """The places of the diagonal in the upper triangle, column by column."""
    return np.cumsum(np.arange(1, n + 1)) - 1


def _matrix(y: np.ndarray) -> np.ndarray:
    """The symmetric matrix with this upper triangle, as rows of a semidefinite cone."""
    n = _side(y)
    j, i = np.tril_indices(n)
    upper = np.zeros((n, n))
    upper[i, j] = y * np.where(i == j, 1.0, 0.5**0.5)
    return upper + np.triu(upper, 1).T


def _holds_dual(kind: str, y: np.ndarray, around: np.ndarray, power: float) -> bool:
    """Whether all points whose entries differ from y's by at most ``around`` are in the dual cone."""
    slack = 8 * ROUNDING * np.abs(y).max(initial=0.0)
    low = y - around
    if kind == "zero":
        return True
    if kind == "nonneg":
        return bool((low >= 0).all())
    if kind == "second_order":
        return bool(low[0] - slack >= _largest_norm(y[1:], around[1:], len(y)))
    if kind == "semidefinite":
        n = _side(y)
        least = float(np.linalg.eigvalsh(_matrix(y)).min())
        return least >= float(np.linalg.norm(around)) + 4 * n * slack
    if kind == "exponential":
        return _holds_exponential(y, around)
    if low[:2].min() < 0:
        return False
    if kind == "rotated":
        largest = 2 * math.sqrt(low[0] * low[1]) * (1 - 4 * ROUNDING)
        return largest >= _largest_norm(y[2:], around[2:], len(y))
    largest = _power(low[0], low[1], power) * (1 - 16 * ROUNDING)
    return largest >= abs(y[2]) + around[2]


def _largest_norm(u: np.ndarray, around: np.ndarray, entries: int) -> float:
    """An upper bound of the norms of all vectors near u; ``entries`` bounds the roundings."""
    return float(np.linalg.norm(np.abs(u) + around)) * (1 + ROUNDING * entries)


def _holds_exponential(y: np.ndarray, around: np.ndarray) -> bool:
    """Whether all points near y are in the dual of the exponential cone."""
    u, v, _ = y
    du, dv, _ = around
    low = y - around
    if u == du == 0:
        return bool(low[1] >= 0 and low[2] >= 0)
    if u + du >= 0:
        return False
    # The least w is convex in u and decreases in v, so it is largest at a corner.
    least_w = max(_exponential(u - du, v - dv), _exponential(u + du, v - dv))
    return bool(least_w * (1 + 32 * ROUNDING) <= low[2])


# --------------------------------------------------------------------------------------- infeasible
def conflict(program: Assembled, y: np.ndarray, own: np.ndarray, units: np.ndarray) -> ConflictProof | None:
    """The proof by multipliers y that are near a ray, or None.

    own    mask of the columns that are variables of the model
    units  the entry of each column for one of the model's units
    """
    size = float(np.abs(y).max(initial=0.0))
    if not 0 < size < math.inf or not np.isfinite(y).all():
        return None
    y = _projected(program, y / size)
    value = _value(program.b, y)
    if value <= 0:
        return None
    rows = np.flatnonzero(y)
    A = program.A.tocsr()[rows]
    low, high = _bounds(program)
    if _bounded(A, y[rows], low, high, value):
        return ConflictProof(y, math.inf)
    columns = np.unique(A.indices)
    far = np.maximum(np.abs(low), np.abs(high))[columns]
    corrected = None
    if max(len(rows), len(columns)) <= MAX_FACTORED:
        M = A[:, columns].toarray().T
        corrected = _corrected(program, y, rows, M, own[columns])
    if corrected is not None:
        y, left, value = corrected
        if not len(left):
            return ConflictProof(y, math.inf)
    if max(len(rows), len(columns)) <= MAX_FACTORED:
        exact = _exact(program, y, rows)
        if exact is not None:
            return ConflictProof(exact, math.inf)
    if corrected is not None:
        missed = np.zeros(len(columns))
        missed[left[:, 0].astype(int)] = left[:, 1]
    else:
        r, error = _missed(A, y[rows])
        missed = (np.abs(r) + error)[columns]
    return _within(y, missed, columns, far, value, own, units)


def _projected(program: Assembled, y: np.ndarray) -> np.ndarray:
    """A point of the dual cone near y, with small parts set to 0."""
    projected = np.zeros_like(y)
    for kind, rows, power in blocks(program):
        part = y[rows]
        if kind in ("zero", "nonneg"):
            part = np.where(np.abs(part) > ZERO_SHARE, part, 0.0)
        elif np.abs(part).max(initial=0.0) <= ZERO_SHARE:
            continue
        if kind == "zero":
            projected[rows] = part
        else:
            projected[rows] = _nearest_dual(kind, part, power)
    return projected


def _value(b: np.ndarray, y: np.ndarray) -> float:
    """-b.y, reduced by the largest rounding error."""
    products = b * y
    error = ROUNDINGS * ROUNDING * float(np.abs(products).sum())
    return -math.fsum(products) - error


def _missed(A: sparse.csr_matrix, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The residual A'y and a bound of its rounding error."""
    longest = float(np.bincount(A.indices).max(initial=0))
    sizes = abs(A).T @ np.abs(y)
    return A.T @ y, (longest + ROUNDINGS) * ROUNDING * sizes


def _bounds(program: Assembled) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of the columns, from rows with one entry and from bounded norms of single columns."""
    A = program.A.tocsr()
    n = A.shape[1]
    low = np.full(n, -math.inf)
    high = np.full(n, math.inf)
    counts = np.diff(A.indptr)
    kinds = _kind_of_rows(program)
    is_linear = np.isin(kinds, ("nonneg", "zero"))
    single = np.flatnonzero((counts == 1) & is_linear)
    single = single[A.data[A.indptr[single]] != 0]
    first_entries = A.indptr[single]
    columns = A.indices[first_entries]
    entries = A.data[first_entries]
    ends = program.b[single] / entries
    outwards = np.where(entries > 0, 1.0, -1.0)
    ends += outwards * 4 * ROUNDING * np.abs(ends)
    error = 8 * ROUNDING * np.abs(ends)
    equal = kinds[single] == "zero"
    above = (entries > 0) | equal
    below = (entries < 0) | equal
    highest = ends + error
    lowest = ends - error
    np.minimum.at(high, columns[above], highest[above])
    np.maximum.at(low, columns[below], lowest[below])
    for column, far in _bounded_by_norms(program, A, counts):
        high[column] = min(high[column], far)
        low[column] = max(low[column], -far)
    return low, high


def _bounded_by_norms(
    program: Assembled, A: sparse.csr_matrix, counts: np.ndarray
) -> Iterator[tuple[int, float]]:
    """Columns that are a single entry of a norm with a constant bound, with a bound of their size."""
    rounded_up = 1 + 8 * ROUNDING
    for kind, rows, _ in blocks(program):
        if kind != "second_order" or counts[rows.start] != 0:
            continue
        radius = program.b[rows.start]
        for k in range(rows.start + 1, rows.stop):
            if counts[k] != 1:
                continue
            first_entry = A.indptr[k]
            entry = A.data[first_entry]
            if entry != 0:
                farthest = (radius + abs(program.b[k])) / abs(entry)
                yield A.indices[first_entry], farthest * rounded_up


def _kind_of_rows(program: Assembled) -> np.ndarray:
    """The kind of the cone that each row is in."""
    kinds = np.empty(len(program.b), dtype=object)
    for kind, rows, _ in blocks(program):
        kinds[rows] = kind
    return kinds


def _bounded(A: sparse.csr_matrix, y: np.ndarray, low: np.ndarray, high: np.ndarray, value: float) -> bool:
    """Whether -r.z is less than -b.y in size for every z within the bounds, so that none is feasible."""
    r, error = _missed(A, y)
    lost = _lost(r, error, low, high)
    return value - float(lost.sum()) > 0


def _lost(r: np.ndarray, error: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The largest -r_j z_j for each column, with r known up to its error."""
    corners = []
    with np.errstate(invalid="ignore"):
        for slope in (r - error, r + error):
            for end in (low, high):
                product = -slope * end
                corners.append(np.where(np.isnan(product), 0.0, product))
    largest = np.maximum(np.max(corners, axis=0), 0.0)
    is_zero = (r == 0) & (error == 0)
    return np.where(is_zero, 0.0, largest) * (1 + 8 * ROUNDING)


def _within(
    y: np.ndarray,
    missed: np.ndarray,
    columns: np.ndarray,
    far: np.ndarray,
    value: float,
    own: np.ndarray,
    units: np.ndarray,
) -> ConflictProof | None:
    """The proof from upper bounds of the residual in some columns, or None.

    missed  upper bounds of the residual in these columns
    far     upper bounds of the sizes of the columns' variables

    If some variables have no bounds, the proof holds within a radius of these variables.
    """
    known = np.isfinite(far)
    rounded_up = 1 + len(columns) * ROUNDING
    value -= float((missed[known] * far[known]).sum()) * rounded_up
    rest = ~known & (missed > 0)
    if value <= 0 or (rest & ~own[columns]).any():
        return None
    size = float(np.linalg.norm(missed[rest] / units[columns][rest]))
    if not size:
        return ConflictProof(y, math.inf)
    return ConflictProof(y, value / size * (1 - 1e-6))


def _corrected(
    program: Assembled, y: np.ndarray, rows: np.ndarray, M: np.ndarray, own: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float] | None:
    """An approximation (y, left, value) of an exact solution of the independent equations, or None.

    The exact solution is near y and in the dual cone, and its -b.y is at least ``value``. ``left`` has
    the number of each other equation and a bound of its residual.
    """
    weights = _margins(program, y)[rows]
    some = np.arange(len(M))
    nearby = _nearby(M, weights)
    if nearby is None and max(M.shape) <= MAX_RANKED:
        some = _independent(M * weights, own)
        nearby = _nearby(M[some], weights)
    if nearby is None:
        return None
    B = M[some]
    z = y[rows].copy()
    for _ in range(CORRECTIONS):
        z -= nearby.step(B @ z)
    y = y.copy()
    y[rows] = z
    relative_error = (len(rows) + ROUNDINGS) * ROUNDING
    rounding = relative_error * (np.abs(B) @ np.abs(z))
    residual = np.abs(B @ z) + rounding
    around = nearby.around(residual)
    around_of_row = np.zeros_like(y)
    around_of_row[rows] = around
    for kind, part, power in blocks(program):
        if y[part].any() and not _held(kind, y[part], around_of_row[part], power):
            return None
    value = _value(program.b, y) - float(np.abs(program.b[rows]) @ around) * (1 + 1e-6)
    if value <= 0:
        return None
    rest = np.setdiff1d(np.arange(len(M)), some)
    if not len(rest):
        return y, np.zeros((0, 2)), value
    others = M[rest]
    rounding = relative_error * (np.abs(others) @ np.abs(z))
    missed = np.abs(others @ z) + rounding + np.abs(others) @ around
    return y, np.stack([rest, missed], axis=1), value


def _independent(M: np.ndarray, own: np.ndarray) -> np.ndarray:
    """The numbers of independent rows, in order; those that are not ``own`` are chosen first."""
    order = np.where(own, 1.0, 1e3)[:, None]
    _, upper, pivots = linalg.qr((M * order).T, mode="economic", pivoting=True)
    sizes = np.abs(np.diag(upper))
    rank = int((sizes > DEPENDENT * sizes.max(initial=0.0)).sum())
    return np.sort(pivots[:rank])


@dataclass(frozen=True, eq=False)
class _Nearby:
    """Solutions e of B e = r that are small relative to weights w.

    S        D B diag(w), with rows of length 1
    weights  w
    norms    1 / D
    factor   the Cholesky factor of S S'
    least    a number with |S' u| >= least |u| for every u
    """

    S: np.ndarray
    weights: np.ndarray
    norms: np.ndarray
    factor: tuple
    least: float

    def step(self, r: np.ndarray) -> np.ndarray:
        """An approximation of the e with B e = r."""
        solution = linalg.cho_solve(self.factor, r / self.norms)
        return self.weights * (self.S.T @ solution)

    def around(self, r: np.ndarray) -> np.ndarray:
        """Bounds of the entries of an e with B e = r, for every right side of at most these sizes."""
        size = float(np.linalg.norm(r / self.norms))
        return self.weights * (size / self.least * (1 + 1e-6))


def _nearby(B: np.ndarray, weights: np.ndarray) -> _Nearby | None:
    """The solver for the rows of B, or None if they are dependent or nearly dependent.

    If S S' - t I has a Cholesky factor in floating point, no eigenvalue of S S' is below t minus a
    multiple of the rounding (S. Rump, Verification of positive definiteness, 2006).
    """
    n, k = B.shape
    S = B * weights
    norms = np.linalg.norm(S, axis=1)
    if not n or not (norms > 0).all() or n > k:
        return None
    S /= norms[:, None]
    G = S @ S.T
    rounding = 4 * n * (n + k + 8 * ROUNDINGS) * ROUNDING
    for level in LEVELS:
        if level <= 2 * rounding:
            continue
        try:
            linalg.cholesky(G - level * np.eye(n), lower=True, check_finite=False)
            factor = linalg.cho_factor(G)
        except linalg.LinAlgError:
            continue
        return _Nearby(S, weights, norms, factor, math.sqrt(level - rounding))
    return None


def _held(kind: str, y: np.ndarray, around: np.ndarray, power: float) -> bool:
    """Whether all points near y are in the dual cone; entries of half-lines that are 0 remain 0."""
    if kind == "nonneg":
        some = y != 0
        return bool((y[some] - around[some] >= 0).all())
    return _holds_dual(kind, y, around, power)


def _margins(program: Assembled, y: np.ndarray) -> np.ndarray:
    """Approximately how far each entry may move within the dual cone."""
    margins = np.ones_like(y)
    for kind, rows, power in blocks(program):
        part = y[rows]
        if kind == "nonneg":
            margins[rows] = np.maximum(part, 0.0)
        elif kind != "zero":
            margins[rows] = _margin(kind, part, power)
    return np.maximum(np.nan_to_num(margins), 0.0)


def _margin(kind: str, y: np.ndarray, power: float) -> float:
    """Approximately how far every entry of one vector may move within the dual of a curved cone."""
    if kind == "second_order":
        return y[0] - np.linalg.norm(y[1:])
    if kind == "semidefinite":
        return np.linalg.eigvalsh(_matrix(y)).min() if y.any() else 0.0
    if kind == "rotated":
        largest = 2 * math.sqrt(max(y[0] * y[1], 0.0))
        return min(y[0], y[1], largest - np.linalg.norm(y[2:]))
    if kind == "power":
        inside_power = _power(y[0], y[1], power) - abs(y[2])
        return min(y[0], y[1], inside_power)
    assert kind == "exponential", kind
    u, v, w = y
    if u >= 0:
        return 0.0
    return min(-u, w - _exponential(u, v))


# -------------------------------------------------------------------------------------------- exact
def _exact(program: Assembled, y: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
    """A ray of half-lines and equations alone that satisfies A'y = 0 exactly, or None."""
    kinds = _kind_of_rows(program)[rows]
    if not np.isin(kinds, ("zero", "nonneg")).all():
        return None
    free = kinds == "zero"
    A = program.A.tocsr()[rows]
    b = [Fraction(float(v)) for v in program.b[rows]]
    rounded = _fractions(y[rows])
    exact = _eliminated(A, y[rows], free, program.b[rows])
    for values in (*rounded, *exact):
        in_cone = all(v >= 0 or either for v, either in zip(values, free, strict=True))
        if in_cone and _meets(A, values, b):
            ray = np.zeros_like(y)
            ray[rows] = [float(v) for v in values]
            return ray
    return None


def _fractions(values: np.ndarray) -> Iterator[list[Fraction]]:
    """Small fractions close to some numbers, in units of the largest and of the smallest of them."""
    sizes = np.abs(values)
    if len(values) > 20 * MAX_ELIMINATED:
        return
    for unit in (float(sizes.max()), float(sizes.min())):
        for denominator in DENOMINATORS:
            yield [Fraction(float(v) / unit).limit_denominator(denominator) for v in values]


def _meets(A: sparse.csr_matrix, y: list[Fraction], b: list[Fraction]) -> bool:
    """Whether A'y = 0 and b.y < 0 hold exactly."""
    sums: dict[int, Fraction] = {}
    for row, value in enumerate(y):
        if not value:
            continue
        for k in range(A.indptr[row], A.indptr[row + 1]):
            column = int(A.indices[k])
            product = Fraction(float(A.data[k])) * value
            sums[column] = sums.get(column, Fraction(0)) + product
    if any(sums.values()):
        return False
    products = (v * w for v, w in zip(b, y, strict=True))
    return sum(products, Fraction(0)) < 0


def _eliminated(
    A: sparse.csr_matrix, y: np.ndarray, free: np.ndarray, b: np.ndarray
) -> Iterator[list[Fraction]]:
    """A vertex of the set of rays, which has few rows, by exact elimination, with either sign."""
    if len(y) > 20 * MAX_ELIMINATED:
        return
    columns = np.unique(A.indices)
    equations = A.toarray().T[columns]
    vertex = _vertex(equations, free, b)
    if vertex is None:
        return
    sizes = np.abs(vertex)
    rows_left = np.flatnonzero(sizes > ZERO_SHARE * sizes.max(initial=0.0))
    if not 0 < len(rows_left) <= MAX_ELIMINATED:
        return
    exact_equations = [[Fraction(float(equation[k])) for k in rows_left] for equation in equations]
    ray = _kernel(exact_equations)
    if ray is None:
        return
    for sign in (1, -1):
        values = [Fraction(0)] * len(y)
        for k, value in zip(rows_left, ray, strict=True):
            values[k] = sign * value
        yield values


def _vertex(equations: np.ndarray, free: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    """A vertex of the rays y with b.y = -1 that satisfy the equations, by the simplex method, or None."""
    from scipy.optimize import linprog

    limits = [(None, None) if either else (0, None) for either in free]
    with np.errstate(all="ignore"):
        solution = linprog(
            np.where(free, 0.0, 1.0),
            A_eq=np.vstack([equations, b]),
            b_eq=np.append(np.zeros(len(equations)), -1.0),
            bounds=limits,
            method="highs-ds",
        )
    return solution.x


def _kernel(rows: list[list[Fraction]]) -> list[Fraction] | None:
    """The one solution, up to its length, of these homogeneous equations; None if it is not unique."""
    n = len(rows[0])
    pivots: list[int] = []
    for column in range(n):
        eliminated = len(pivots)
        candidates = (k for k in range(eliminated, len(rows)) if rows[k][column])
        pivot = next(candidates, None)
        if pivot is None:
            continue
        rows[eliminated], rows[pivot] = rows[pivot], rows[eliminated]
        head = rows[eliminated][column]
        rows[eliminated] = [v / head for v in rows[eliminated]]
        for k in range(len(rows)):
            factor = rows[k][column]
            if k != eliminated and factor:
                rows[k] = [v - factor * w for v, w in zip(rows[k], rows[eliminated], strict=True)]
        pivots.append(column)
    if len(pivots) != n - 1:
        return None
    (free,) = set(range(n)) - set(pivots)
    solution = [Fraction(0)] * n
    solution[free] = Fraction(1)
    for row, column in enumerate(pivots):
        solution[column] = -rows[row][free]
    return solution


# ---------------------------------------------------------------------------------------- unbounded
def falls(program: Assembled, d: np.ndarray) -> bool:
    """Whether an exact direction near d keeps every feasible point feasible and lets the objective
    fall for ever."""
    size = float(np.abs(d).max(initial=0.0))
    if not 0 < size < math.inf or not np.isfinite(d).all():
        return False
    d = np.where(np.abs(d) > ZERO_SHARE * size, d / size, 0.0)
    A = program.A.tocsr()
    s = -(A @ d)
    size_of_terms = abs(A) @ np.abs(d)
    s[np.abs(s) <= ZERO_SHARE * size_of_terms] = 0.0
    recession = _recession(program, A, s)
    if recession is None:
        return False
    return _falls_nearby(program, d, recession) or _falls_exactly(program, d, recession)


class _Recession(NamedTuple):
    """The conditions on a direction d of recession.

    equations   the rows of A and P, in which d must give 0
    conditions  kind, rows and exponent of the cones in whose interior -A d must stay
    """

    equations: sparse.csr_matrix
    conditions: list[tuple[str, slice, float]]


def _recession(program: Assembled, A: sparse.csr_matrix, s: np.ndarray) -> _Recession | None:
    """The conditions on directions with -A d near s; None if s is on the boundary of a curved cone."""
    zero_rows: list[int] = []
    conditions: list[tuple[str, slice, float]] = []
    empty = np.diff(A.indptr) == 0

    def half_line(row: int) -> None:
        """State that a row's ray is at least 0, or 0."""
        if s[row] == 0:
            zero_rows.append(row)
        else:
            conditions.append(("nonneg", slice(row, row + 1), 1.0))

    for kind, rows, power in blocks(program):
        first = rows.start
        places = range(first, rows.stop)
        if kind == "zero" or not s[rows].any():
            zero_rows += places
        elif kind == "nonneg":
            for row in places:
                half_line(row)
        elif kind == "exponential" and empty[first + 1]:  # (x, 0, z) with x <= 0 <= z
            if s[first]:
                conditions.append(("nonpos", slice(first, first + 1), 1.0))
            else:
                zero_rows.append(first)
            half_line(first + 2)
        elif kind in ("rotated", "power") and (empty[first] or empty[first + 1]):  # t, y >= 0 = u
            half_line(first)
            half_line(first + 1)
            zero_rows += places[2:]
        elif _inside(kind, s[rows], power):
            conditions.append((kind, rows, power))
        else:
            return None
    with_entries = np.array([row for row in zero_rows if not empty[row]], dtype=int)
    P = sparse.csr_matrix(program.P + sparse.triu(program.P, 1).T)
    return _Recession(sparse.vstack([A[with_entries], P], format="csr"), conditions)


def _inside(kind: str, s: np.ndarray, power: float) -> bool:
    """Whether s is in the interior of a cone, away from its boundary."""
    distance = 1e-6 * np.abs(s).max() * np.ones_like(s)
    return _holds(kind, s, distance, power)


def _holds(kind: str, s: np.ndarray, around: np.ndarray, power: float) -> bool:
    """Whether all points whose entries differ from those of s by at most ``around`` are in the cone."""
    if kind == "nonpos":
        return bool((s + around <= 0).all())
    if kind == "exponential":  # (x, y, z) is in it where (-y, -x, e z) is in its dual
        x, y, z = s
        dx, dy, dz = around
        turned = np.array([-y, -x, math.e * z])
        near = np.array([dy, dx, 3 * dz])
        return y > dy and _holds_dual(kind, turned, near, power)
    if kind == "rotated":
        scale = np.array([1, 1, *[2.0] * (len(s) - 2)])
        return _holds_dual(kind, s * scale, 2 * around, power)
    if kind == "power":
        scale = np.array([power, 1 - power, 1.0])
        return _holds_dual(kind, s * scale, around * scale, power)
    return _holds_dual(kind, s, around, power)


def _falls_nearby(program: Assembled, d: np.ndarray, recession: _Recession) -> bool:
    """Whether the equations for d are independent, so that an exact direction is close."""
    A = program.A.tocsr()
    some = np.flatnonzero(d)
    equations = recession.equations[:, some]
    equations = equations[np.flatnonzero(np.diff(equations.indptr))]
    if max(equations.shape) > MAX_FACTORED:
        return False
    M = equations.toarray()
    z = d[some].copy()
    around = np.zeros(len(some))
    if len(M):
        nearby = _nearby(M, np.abs(z))
        if nearby is None:
            return False
        for _ in range(CORRECTIONS):
            z -= nearby.step(M @ z)
        relative_error = (len(some) + ROUNDINGS) * ROUNDING
        rounding = relative_error * (np.abs(M) @ np.abs(z))
        around = nearby.around(np.abs(M @ z) + rounding)
    near = np.zeros_like(d)
    near[some] = z
    error = np.zeros_like(d)
    error[some] = around
    longest = float(np.diff(A.indptr).max(initial=0))
    s = -(A @ near)
    relative_error = (longest + ROUNDINGS) * ROUNDING
    uncertainty = abs(A) @ error + relative_error * (abs(A) @ np.abs(near))
    error_of_cost = error + ROUNDINGS * ROUNDING * np.abs(near)
    slope = math.fsum(program.q * near) + float(np.abs(program.q) @ error_of_cost)
    if not slope < 0:
        return False
    return all(_holds(kind, s[rows], uncertainty[rows], power) for kind, rows, power in recession.conditions)


def _falls_exactly(program: Assembled, d: np.ndarray, recession: _Recession) -> bool:
    """Whether small fractions near d satisfy all equations and inequalities exactly."""
    A = program.A.tocsr()
    equations, conditions = recession
    some = np.flatnonzero(d)
    signs = {"nonneg": -1, "nonpos": 1}
    if any(kind not in signs for kind, *_ in conditions) or not len(some):
        return False
    for values in _fractions(d[some]):
        direction = dict(zip(some.tolist(), values, strict=True))
        if any(_along(equations, row, direction) for row in range(equations.shape[0])):
            continue
        if any(signs[kind] * _along(A, rows.start, direction) < 0 for kind, rows, _ in conditions):
            continue
        products = (Fraction(float(program.q[k])) * v for k, v in direction.items())
        change = sum(products, Fraction(0))
        if change < 0:
            return True
    return False


def _along(matrix: sparse.csr_matrix, row: int, direction: dict[int, Fraction]) -> Fraction:
    """The product of a row and a direction, exactly."""
    total = Fraction(0)
    for k in range(matrix.indptr[row], matrix.indptr[row + 1]):
        value = direction.get(int(matrix.indices[k]))
        if value:
            total += Fraction(float(matrix.data[k])) * value
    return total
