"""Linear and quadratic programs with few shared variables x and many small groups t_c of their own.

    minimise 1/2 z'Pz + q.z   s.t.   A z + s = b, s >= 0,   E z = e,   z = (x, t_1, t_2, ..)

No row of A, and no entry of P, involves two of the small vectors t_c. In the rows of t_c, the
coefficients of x are multiples of a few vectors u_c1, u_c2, .. Means of piecewise functions have this
form; if a function has its kinks along one affine function of x, one vector u is enough.

A step of the interior-point method (``barrier``) solves for x with the matrix sum_c U_c'W_c U_c, a
weighted product of the rows with themselves. For rows g_i.U_c x + a_i.t_c with weights d_i,

    W_c = min over V of sum_i d_i (g_i + V'a_i)(g_i + V'a_i)' + V'P_c V.

All terms are nonnegative, so rounding cannot cancel them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from scipy import sparse

from fccomodel.numerics.cone_programs import ConeProgram

#: Largest number of entries of a t_c.
LARGEST_GROUP = 3
#: Entries of t in one row, above which the row becomes an equation with a slack among the x.
LONGEST_ROW = 8
#: Largest number of vectors u of one t_c.
LARGEST_DIRECTIONS = 3
#: Largest number of equations.
LARGEST_EQUATIONS = 200
#: Largest number of entries of x.
LARGEST_SHARED = 600
#: Smallest column counts that are tried as those of t.
TRIED_COUNTS = 8
#: Relative difference below which a row is a multiple of another.
SAME_DIRECTION = 1e-13
#: Seconds of an iteration for each number of the vectors u. All rates are of one core at 2.5 GHz.
NUMBER_S = 4e-9
#: Seconds of an iteration for each number of the vectors u and each entry of x.
PRODUCT_S = 1.2e-10
#: Seconds of an iteration for each row.
ROW_S = 1.2e-7
#: Seconds of an iteration for each (entries of x and equations) cubed.
CUBE_S = 2e-10
#: Seconds of an iteration in any case.
ITERATION_S = 4e-4
#: Iterations that a solve is expected to take.
ITERATIONS = 20
#: Rounds of scaling.
SCALING_ROUNDS = 3


class Local(NamedTuple):
    """Inequalities that involve a t_c.

    which  the numbers of the inequalities
    of     the number c of each inequality's t_c
    a      coefficients of t_c, (k, rows)
    g      multiples of the vectors u of t_c, (j, rows)
    """

    which: np.ndarray | slice
    of: np.ndarray
    a: np.ndarray
    g: np.ndarray


class Free(NamedTuple):
    """Inequalities without a t_c.

    which   the numbers of the inequalities
    vector  the number of each inequality's vector u
    """

    which: np.ndarray
    vector: np.ndarray


@dataclass(frozen=True, eq=False)
class Arrow:
    """A scaled program in parts.

    z = (x, t) has p entries of x, and k entries for each t_c; a shorter t_c is padded.

    P, q, E, e   objective and equations
    U, T, b      inequalities A z <= b with A z = T (Ux, t). U is stored transposed, (p, n): the
                 vectors u, and the rows without a t_c
    held         P_c, with 1 on the diagonal for padding and for entries that nothing else bounds,
                 (k, k, c)
    curved       P_c, (k, k, c); None if all are 0
    place        for each t_c the numbers of its vectors u, -1 for none, (j, c)
    local, free  the inequalities with a t_c, and those without
    order        the row of the program for each row here, inequalities first, -1 for none. Rows of
                 many t_c are equations here; their slack is a further entry of x
    columns      factors by which the columns were scaled
    sides        factors by which the rows were scaled
    unit         factor by which the objective was scaled
    shared       for each entry of x, its column of the program, (p,)
    own          for each entry of t, its column of the program, -1 for padding, (k, c)
    width        number of columns of the program
    """

    P: sparse.csr_matrix
    q: np.ndarray
    E: sparse.csr_matrix
    e: np.ndarray
    U: torch.Tensor
    T: sparse.csr_matrix
    b: np.ndarray
    held: np.ndarray
    curved: np.ndarray | None
    place: np.ndarray
    local: Local
    free: Free
    order: np.ndarray
    columns: np.ndarray
    sides: np.ndarray
    unit: float
    shared: np.ndarray
    own: np.ndarray
    width: int

    #: The smallest value of ``seconds``.
    LEAST: ClassVar[float] = ITERATIONS * ITERATION_S

    def along(self, x: np.ndarray) -> np.ndarray:
        """Ux."""
        return (torch.from_numpy(x) @ self.U).numpy()

    def pulled(self, r: np.ndarray) -> np.ndarray:
        """U'r, for one r or for several."""
        return (torch.from_numpy(r) @ self.U.T).numpy()

    def times(self, z: np.ndarray) -> np.ndarray:
        """Az."""
        p = len(self.shared)
        return self.T @ np.concatenate([self.along(z[:p]), z[p:]])

    def back(self, r: np.ndarray) -> np.ndarray:
        """A'r."""
        n = self.U.shape[1]
        both = self.turned @ r
        return np.concatenate([self.pulled(both[:n]), both[n:]])

    def unscaled(self, z: np.ndarray) -> np.ndarray:
        """The values of the program's columns at z."""
        p = len(self.shared)
        entries = self.own >= 0
        values = np.zeros(len(self.columns))
        values[self.shared] = z[:p]
        values[self.own[entries]] = z[p:].reshape(self.own.shape)[entries]
        return (values * self.columns)[: self.width]

    @cached_property
    def turned(self) -> sparse.csc_matrix:
        """T'."""
        return self.T.T

    @cached_property
    def ties(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each j: the c that have a j-th vector u, and the numbers of these vectors."""
        return [(np.flatnonzero(places >= 0), places[places >= 0]) for places in self.place]

    @cached_property
    def quadratic(self) -> np.ndarray:
        """The block of P that belongs to x."""
        p = len(self.shared)
        return self.P[:p, :p].toarray()

    @cached_property
    def equal(self) -> tuple[np.ndarray, np.ndarray | None]:
        """The columns of E that belong to x; those of t as (rows, k, c), or None if all are 0."""
        p = len(self.shared)
        of_x, of_t = self.E[:, :p].toarray(), self.E[:, p:]
        if not of_t.nnz:
            return of_x, None
        return of_x, of_t.toarray().reshape(-1, *self.own.shape)

    @property
    def numbers(self) -> int:
        """Number of entries of U."""
        return self.U.numel()

    @property
    def seconds(self) -> float:
        """Expected seconds of the whole solve."""
        p, n = self.U.shape
        each = (
            n * p * (NUMBER_S + PRODUCT_S * p)
            + ROW_S * (len(self.b) + self.own.size)
            + CUBE_S * (p + len(self.e)) ** 3
        )
        return ITERATIONS * (each + ITERATION_S)


def arrow(program: ConeProgram) -> Arrow | None:
    """The program as one with few shared variables, or None if it does not have this form."""
    if any(kind not in ("zero", "nonneg") for kind, *_ in program.cones) or not program.cones:
        return None
    equal = np.repeat([kind == "zero" for kind, *_ in program.cones], [size for _, size, _ in program.cones])
    A, P = program.A.tocsr(), (program.P + sparse.triu(program.P, 1).T).tocsr()
    A.eliminate_zeros()
    for own in _own_columns(A[~equal], P):
        if (parts := _with(program, A, P, equal, own)) is not None:
            return parts
    return None


def _with(
    program: ConeProgram, A: sparse.csr_matrix, P: sparse.csr_matrix, equations: np.ndarray, few: np.ndarray
) -> Arrow | None:
    """The program with the columns ``few`` as t, and rows of many of them as equations; None if unfit."""
    n = A.shape[1]
    long = _long(A, few) & ~equations
    slack = np.flatnonzero(long)
    equal = equations | long
    if equal.sum() > LARGEST_EQUATIONS:
        return None
    count = len(slack)
    extra = sparse.csr_matrix((np.ones(count), (slack, np.arange(count))), shape=(len(equations), count))
    A = sparse.hstack([A, extra], format="csr")
    below = sparse.csr_matrix(
        (-np.ones(count), (np.arange(count), n + np.arange(count))), shape=(count, n + count)
    )
    P = sparse.csr_matrix(
        (P.data, P.indices, np.concatenate([P.indptr, np.full(count, P.nnz)])), shape=(n + count,) * 2
    )
    few, q = (np.concatenate([part, np.zeros(count, dtype=part.dtype)]) for part in (few, program.q))
    order = np.concatenate([np.flatnonzero(~equal), np.full(count, -1), np.flatnonzero(equal)])
    upper = sparse.vstack([A[~equal], below], format="csr")
    b = np.concatenate([program.b[~equal], np.zeros(count)])
    return _parts((upper, b), (A[equal], program.b[equal]), (P, q), few, order, n)


def _long(A: sparse.csr_matrix, few: np.ndarray) -> np.ndarray:
    """A mask of the rows that have entries in many of the columns ``few``."""
    return (_pattern(A) @ few.astype(float)) > LONGEST_ROW


def _pattern(A: sparse.csr_matrix) -> sparse.csr_matrix:
    """A matrix with 1 at each entry of A."""
    return sparse.csr_matrix((np.ones(A.nnz), A.indices, A.indptr), shape=A.shape)


def _own_columns(A: sparse.csr_matrix, P: sparse.csr_matrix) -> Iterator[np.ndarray]:
    """Sets of columns, as masks, that may be the entries of t; the largest first.

    They have entries in so few rows that they fall into small groups, apart from a few long rows.
    """
    counts = np.bincount(A.indices, minlength=A.shape[1])
    candidates = [np.zeros(A.shape[1], dtype=bool)]
    for bound in np.unique(counts)[:TRIED_COUNTS]:
        few = counts <= bound
        long = _long(A, few)
        which = _components(_pattern(A[~long])[:, np.flatnonzero(few)], P, few)
        if np.count_nonzero(long) > LARGEST_EQUATIONS or np.bincount(which).max(initial=0) > LARGEST_GROUP:
            break
        candidates.append(few)
    return (few for few in reversed(candidates) if np.count_nonzero(~few) <= LARGEST_SHARED)


def _components(A: sparse.csr_matrix, P: sparse.csr_matrix, few: np.ndarray) -> np.ndarray:
    """For each column of ``few``, the number of its component; rows and entries of P connect columns."""
    places = np.flatnonzero(few)
    in_form = P[places][:, places].tocoo()
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    neighbours = np.flatnonzero(rows[1:] == rows[:-1])  # successive entries of one row
    one = np.append(in_form.row, A.indices[neighbours])
    other = np.append(in_form.col, A.indices[neighbours + 1])
    root = np.arange(len(places))
    while (apart := root[one] != root[other]).any():
        one, other = one[apart], other[apart]
        np.minimum.at(root, np.maximum(root[one], root[other]), np.minimum(root[one], root[other]))
        while (further := root[root] != root).any():
            root[further] = root[root[further]]
    return np.unique(root, return_inverse=True)[1]


def _parts(
    inequalities: tuple[sparse.csr_matrix, np.ndarray],
    equations: tuple[sparse.csr_matrix, np.ndarray],
    objective: tuple[sparse.csr_matrix, np.ndarray],
    few: np.ndarray,
    order: np.ndarray,
    width: int,
) -> Arrow | None:
    """The scaled program; None if a group needs too many vectors u, or P couples x and t.

    inequalities  A and b of A z <= b
    equations     E and e of E z = e
    objective     P and q of z' P z / 2 + q' z
    few           mask of the columns that are entries of t
    order         see Arrow
    width         see Arrow
    """
    (A, b), (E, e), (P, q) = inequalities, equations, objective
    shared, places = np.flatnonzero(~few), np.flatnonzero(few)
    if P[shared][:, places].nnz:
        return None
    columns, sides = _scales(A, E, P)
    m = A.shape[0]
    A, E = (_scaled(part, side, columns) for part, side in ((A, sides[:m]), (E, sides[m:])))
    P, q = _scaled(P, columns, columns), q * columns
    unit = 1 / (max(np.abs(q).max(initial=0.0), np.abs(P.data).max(initial=0.0)) or 1.0)
    P, q, b, e = P * unit, q * unit, b * sides[:m], e * sides[m:]
    unbounded = (
        np.bincount(A.indices, minlength=A.shape[1]) + np.bincount(P.indices, minlength=A.shape[1]) == 0
    )
    own = _own(_components(_pattern(A)[:, places], P, few), places)
    size = len(shared) + own.size
    at = np.empty(A.shape[1], dtype=int)  # for each column of the program, its place in z
    at[shared] = np.arange(len(shared))
    at[own[own >= 0]] = len(shared) + np.flatnonzero(own.ravel() >= 0)
    A, E, P = (
        sparse.csr_matrix((part.data, at[part.indices], part.indptr), (part.shape[0], size))
        for part in (A, E, P)
    )
    rows = _rows(A, len(shared), own.shape)
    if rows is None:
        return None
    U, T, place, local, free = rows
    form = P.tocoo()
    P = sparse.csr_matrix((form.data, (at[form.row], form.col)), (size, size))
    linear = np.zeros(size)
    linear[at] = q
    curved = _curved(P, len(shared), own.shape)
    diagonal = np.arange(len(own))
    held = curved.copy()
    held[diagonal, diagonal] += (own < 0) | unbounded[own]
    return Arrow(
        P=P,
        q=linear,
        E=E,
        e=e,
        U=U,
        T=T,
        b=b,
        held=held,
        curved=curved if curved.any() else None,
        place=place,
        local=local,
        free=free,
        order=order,
        columns=columns,
        sides=sides,
        unit=unit,
        shared=shared,
        own=own,
        width=width,
    )


def _own(which: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The columns of each component, padded with -1, (k, c)."""
    counts = np.bincount(which)
    by = np.argsort(which, kind="stable")
    slot = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
    own = np.full((max(int(counts.max(initial=0)), 1), len(counts)), -1)
    own[slot, which[by]] = places[by]
    return own


def _curved(P: sparse.csr_matrix, p: int, shape: tuple[int, ...]) -> np.ndarray:
    """The matrices P_c, (k, k, c)."""
    size, count = shape
    form = P.tocoo()
    of_t = form.row >= p
    curved = np.zeros((size, size, count))
    slot, which = np.divmod(form.row[of_t] - p, count)
    curved[slot, (form.col[of_t] - p) // count, which] = form.data[of_t]
    return curved


def _rows(
    A: sparse.csr_matrix, p: int, shape: tuple[int, ...]
) -> tuple[torch.Tensor, sparse.csr_matrix, np.ndarray, Local, Free] | None:
    """U', T, place and the inequalities of an Arrow.

    None if a t_c needs too many vectors u, or U is empty.
    """
    size, count = shape
    m = A.shape[0]
    entries = A.tocoo()
    inside = entries.col >= p
    row, column, value = entries.row[inside], entries.col[inside] - p, entries.data[inside]
    slot, which = np.divmod(column, max(count, 1))
    of = np.full(m, -1)
    of[row] = which
    a = np.zeros((size, m))
    a[slot, row] = value
    AX = A[:, :p]
    directions = _multiples(AX, of, np.diff(AX.indptr) > 0, count)
    if directions is None or not directions[0].size:
        return None
    U, place, vector, turn, g = directions
    n = len(U)
    some = np.flatnonzero(vector >= 0)
    places = np.append(some, row), np.append(vector[some], n + column)
    T = sparse.csr_matrix((np.append(g[some], value), places), (m, n + count * size))
    inner = np.flatnonzero(of >= 0)
    free = np.flatnonzero((of < 0) & (vector >= 0))
    multiples = np.zeros((len(place), len(inner)))
    multiples[turn[inner], np.arange(len(inner))] = g[inner]
    local = Local(slice(None) if len(inner) == m else inner, of[inner], a[:, inner], multiples)
    return torch.from_numpy(np.ascontiguousarray(U.T)), T, place, local, Free(free, vector[free])


def _scaled(A: sparse.csr_matrix, rows: np.ndarray, columns: np.ndarray) -> sparse.csr_matrix:
    """A matrix with its rows and columns multiplied by factors."""
    data = A.data * np.repeat(rows, np.diff(A.indptr)) * columns[A.indices]
    return sparse.csr_matrix((data, A.indices, A.indptr), shape=A.shape)


def _scales(
    A: sparse.csr_matrix, E: sparse.csr_matrix, P: sparse.csr_matrix, rounds: int = SCALING_ROUNDS
) -> tuple[np.ndarray, np.ndarray]:
    """Factors of columns and rows that make their largest entries about 1 (D. Ruiz, 2001)."""
    both = abs(sparse.vstack([A, E], format="csr"))
    columns, sides = np.ones(A.shape[1]), np.ones(both.shape[0])
    for _ in range(rounds):
        now = _scaled(both, sides, columns)
        some = np.diff(now.indptr) > 0
        high = np.zeros(A.shape[1])
        if some.any():
            sides[some] /= np.sqrt(np.maximum.reduceat(now.data, now.indptr[:-1][some]))
        for part in (now, abs(_scaled(P, columns, columns))):
            np.maximum.at(high, part.indices, part.data)
        columns /= np.sqrt(np.where(high > 0, high, 1.0))
    return columns, sides


def _multiples(
    AX: sparse.csr_matrix, of: np.ndarray, some: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
    """The vectors u, found by grouping the rows of each t_c that are multiples of one another.

    Returns None if a t_c needs too many vectors, and otherwise

    U       the rows without a t_c, then the vectors u
    place   for each t_c the numbers of its vectors u in U, (j, c)
    row     for each row its number in U, -1 if it has no entry of x
    turn    for each row the j of its vector u
    g       for each row its multiple of that vector
    """
    m = AX.shape[0]
    alone, left = np.flatnonzero(some & (of < 0)), np.flatnonzero(some & (of >= 0))
    arrays = [AX[alone].toarray()]
    row = np.full(m, -1)
    turn = np.zeros(m, dtype=int)
    g = np.zeros(m)
    row[alone], g[alone] = np.arange(len(alone)), 1.0
    places: list[np.ndarray] = []
    while len(left):
        if len(places) == LARGEST_DIRECTIONS:
            return None
        heads, first = np.unique(of[left], return_index=True)
        U, start = AX[left[first]].toarray(), sum(map(len, arrays))
        values, mine = AX[left].toarray(), np.searchsorted(heads, of[left])
        largest = np.abs(U).argmax(axis=1)[mine]
        multiple = values[np.arange(len(left)), largest] / U[mine, largest]
        difference = np.abs(values - multiple[:, None] * U[mine]).max(axis=1)
        same = difference <= SAME_DIRECTION * np.abs(values).max(axis=1)
        row[left[same]] = start + mine[same]
        turn[left[same]] = len(places)
        g[left[same]] = multiple[same]
        places.append(np.full(count, -1))
        places[-1][heads] = start + np.arange(len(heads))
        arrays.append(U)
        left = left[~same]
    return np.concatenate(arrays), np.stack(places or [np.full(count, -1)]), row, turn, g
