"""Linear and quadratic programs of few variables and many rows, each with variables of its own.

    minimise 1/2 z'Pz + q.z   s.t.   A z + s = b, s >= 0,   E z = e,   z = (x, t_1, t_2, ..)

where no row of A, and no entry of P, has entries of two of the small vectors t_c, and beside t_c
there are multiples of a few vectors u_c1, u_c2, .. (of one where a function has kinks along one
affine function of x): so are means of piecewise functions. A step of an interior-point method
(``barrier``) solves for x with sum_c U_c'W_c U_c, weighted products of the rows with themselves;
with rows g_i.U_c x + a_i.t_c of weights d_i,

    W_c = min over V of sum_i d_i (g_i + V'a_i)(g_i + V'a_i)' + V'P_c V,

sums of what is not negative, so that rounding takes nothing from them.
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
LARGEST_OWN = 3
#: Largest number of entries of different t_c in one row. A longer row becomes an equation with a
#: variable of its own.
LARGEST_ROW = 8
#: Largest number of vectors u of a t_c.
LARGEST_DIRECTIONS = 3
#: Largest number of equations.
LARGEST_EQUATIONS = 200
#: Largest number of entries of x.
LARGEST_SHARED = 600
#: How far two rows may be from multiples of one another, relative to the larger.
ALIKE = 1e-13
# Seconds of an iteration, on one core at 2.5 GHz.
#: For each number of the vectors u.
NUMBER_S = 4e-9
#: For each number of the vectors u and each entry of x.
PRODUCT_S = 1.2e-10
#: For each row.
ROW_S = 1.2e-7
#: For each cube of entries of x.
CUBE_S = 2e-10
#: In any case.
ONCE_S = 4e-4
#: Iterations that a solve is expected to take.
EXPECTED_ITERATIONS = 20


class Local(NamedTuple):
    """Inequalities with a t_c: ``which`` they are, ``of`` what c, the coefficients ``a`` (k, rows) of
    t_c, and ``g`` (j, rows) of its vectors u."""

    which: np.ndarray | slice
    of: np.ndarray
    a: np.ndarray
    g: np.ndarray


class Free(NamedTuple):
    """Inequalities without a t_c: ``which`` they are, the vector u of each."""

    which: np.ndarray
    vector: np.ndarray


@dataclass(frozen=True, eq=False)
class Arrow:
    """A program by its parts, scaled: ``columns`` and ``sides`` are what z and the rows are multiplied
    by, ``unit`` the value.

    z = (x, t) has p entries of x and k of each t_c, of which some are none; ``shared`` (p,) and
    ``own`` (k, c) say what columns of the program they are, -1 of none, ``width`` how many it has.

    P, q, E, e   objective and equations
    U, T, b      inequalities A z <= b, where A z = T (Ux, t): U' (p, n) has the vectors u, and the
                 rows without a t_c
    held         (k, k, c): P_c, and 1 where t_c has no entry, or one that nothing holds;   curved:
                 P_c, None where all are zero
    place        (j, c): the vectors u of t_c, -1 where there is none
    local, free  the inequalities, with a t_c and without
    order        the rows of the program that they are, inequalities first, where those of many t_c
                 are equations whose slack is
                 a further x
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

    #: seconds that none is foreseen to take less than
    LEAST: ClassVar[float] = EXPECTED_ITERATIONS * ONCE_S

    def along(self, x: np.ndarray) -> np.ndarray:
        """Ux."""
        return (torch.from_numpy(x) @ self.U).numpy()

    def pulled(self, r: np.ndarray) -> np.ndarray:
        """U'r, of one r or of several."""
        return (torch.from_numpy(r) @ self.U.T).numpy()

    def times(self, z: np.ndarray) -> np.ndarray:
        """Az."""
        p = len(self.shared)
        return self.T @ np.concatenate([self.along(z[:p]), z[p:]])

    def back(self, r: np.ndarray) -> np.ndarray:
        """A'r."""
        both, n = self.turned @ r, self.U.shape[1]
        return np.concatenate([self.pulled(both[:n]), both[n:]])

    def unscaled(self, z: np.ndarray) -> np.ndarray:
        """As the columns of the program."""
        found, p, some = np.zeros(len(self.columns)), len(self.shared), self.own >= 0
        found[self.shared], found[self.own[some]] = z[:p], z[p:].reshape(self.own.shape)[some]
        return (found * self.columns)[: self.width]

    @cached_property
    def turned(self) -> sparse.csc_matrix:
        """T'."""
        return self.T.T

    @cached_property
    def ties(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each j the c that have a j-th vector u, and which it is."""
        return [(np.flatnonzero(places >= 0), places[places >= 0]) for places in self.place]

    @cached_property
    def quadratic(self) -> np.ndarray:
        """P's part of x."""
        p = len(self.shared)
        return self.P[:p, :p].toarray()

    @cached_property
    def equal(self) -> tuple[np.ndarray, np.ndarray | None]:
        """E's part of x, and the coefficients (rows, k, c) of every t_c, None where all are zero."""
        p = len(self.shared)
        beside = self.E[:, p:]
        return self.E[:, :p].toarray(), beside.toarray().reshape(-1, *self.own.shape) if beside.nnz else None

    @property
    def numbers(self) -> int:
        """Of the rows that kinks and bounds ask for."""
        return self.U.numel()

    @property
    def seconds(self) -> float:
        """Of the whole solve, foreseen."""
        p, n = self.U.shape
        each = (
            n * p * (NUMBER_S + PRODUCT_S * p)
            + ROW_S * (len(self.b) + self.own.size)
            + CUBE_S * (p + len(self.e)) ** 3
        )
        return EXPECTED_ITERATIONS * (each + ONCE_S)


def arrow(program: ConeProgram) -> Arrow | None:
    """The program as one of few shared variables, None where it is none."""
    if any(kind not in ("zero", "nonneg") for kind, *_ in program.cones) or not program.cones:
        return None
    kinds = np.repeat([kind == "zero" for kind, *_ in program.cones], [size for _, size, _ in program.cones])
    A, P = program.A.tocsr(), (program.P + sparse.triu(program.P, 1).T).tocsr()
    A.eliminate_zeros()
    for few in _few(A[~kinds], P):
        if (parts := _with(program, A, P, kinds, few)) is not None:
            return parts
    return None


def _with(
    program: ConeProgram, A: sparse.csr_matrix, P: sparse.csr_matrix, kinds: np.ndarray, few: np.ndarray
) -> Arrow | None:
    """With these columns as the t; rows of many of them as equations."""
    long, n = _long(A, few) & ~kinds, A.shape[1]
    slack, equal = np.flatnonzero(long), kinds | long
    if equal.sum() > LARGEST_EQUATIONS:
        return None
    count = len(slack)
    extra = sparse.csr_matrix((np.ones(count), (slack, np.arange(count))), shape=(len(kinds), count))
    A = sparse.hstack([A, extra], format="csr")
    below = sparse.csr_matrix(
        (-np.ones(count), (np.arange(count), n + np.arange(count))), shape=(count, n + count)
    )
    P = sparse.csr_matrix(
        (P.data, P.indices, np.concatenate([P.indptr, np.full(count, P.nnz)])), shape=(n + count,) * 2
    )
    few, q = (np.concatenate([part, np.zeros(count, dtype=part.dtype)]) for part in (few, program.q))
    order = np.concatenate([np.flatnonzero(~equal), np.full(count, -1), np.flatnonzero(equal)])
    upper, b = (
        sparse.vstack([A[~equal], below], format="csr"),
        np.concatenate([program.b[~equal], np.zeros(count)]),
    )
    return _parts(upper, b, A[equal], program.b[equal], P, q, few, order, n)


def _long(A: sparse.csr_matrix, few: np.ndarray) -> np.ndarray:
    """Rows with entries of many t."""
    return (_pattern(A) @ few.astype(float)) > LARGEST_ROW


def _pattern(A: sparse.csr_matrix) -> sparse.csr_matrix:
    return sparse.csr_matrix((np.ones(A.nnz), A.indices, A.indptr), shape=A.shape)


def _few(A: sparse.csr_matrix, P: sparse.csr_matrix) -> Iterator[np.ndarray]:
    """Which columns may be entries of a t_c, the most of them first: those of so few rows that they
    fall apart, rows of very many set aside."""
    counts, found = np.bincount(A.indices, minlength=A.shape[1]), [np.zeros(A.shape[1], dtype=bool)]
    for most in np.unique(counts)[:8]:
        few = counts <= most
        long = _long(A, few)
        which = _together(_pattern(A[~long])[:, np.flatnonzero(few)], P, few)
        if np.count_nonzero(long) > LARGEST_EQUATIONS or np.bincount(which).max(initial=0) > LARGEST_OWN:
            break
        found.append(few)
    return (few for few in reversed(found) if np.count_nonzero(~few) <= LARGEST_SHARED)


def _together(A: sparse.csr_matrix, P: sparse.csr_matrix, few: np.ndarray) -> np.ndarray:
    """For each of the t which component it is of, by rows and by P."""
    places = np.flatnonzero(few)
    by_form, rows = P[places][:, places].tocoo(), np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    beside = np.flatnonzero(rows[1:] == rows[:-1])  # entries of one row after one another
    one, other = np.append(by_form.row, A.indices[beside]), np.append(by_form.col, A.indices[beside + 1])
    least = np.arange(len(places))
    while (apart := least[one] != least[other]).any():
        one, other = one[apart], other[apart]
        np.minimum.at(least, np.maximum(least[one], least[other]), np.minimum(least[one], least[other]))
        while (further := least[least] != least).any():
            least[further] = least[least[further]]
    return np.unique(least, return_inverse=True)[1]


def _parts(
    A: sparse.csr_matrix,
    b: np.ndarray,
    E: sparse.csr_matrix,
    e: np.ndarray,
    P: sparse.csr_matrix,
    q: np.ndarray,
    few: np.ndarray,
    order: np.ndarray,
    width: int,
) -> Arrow | None:
    """Scaled, by components; None where rows of one are no multiples of one another, or P has entries
    of x and t."""
    shared, places = np.flatnonzero(~few), np.flatnonzero(few)
    if P[shared][:, places].nnz:
        return None
    columns, sides = _scales(A, E, P)
    m = A.shape[0]
    A, E = (_scaled(part, side, columns) for part, side in ((A, sides[:m]), (E, sides[m:])))
    P, q = _scaled(P, columns, columns), q * columns
    unit = 1 / (max(np.abs(q).max(initial=0.0), np.abs(P.data).max(initial=0.0)) or 1.0)
    P, q, b, e = P * unit, q * unit, b * sides[:m], e * sides[m:]
    bare = np.bincount(A.indices, minlength=A.shape[1]) + np.bincount(P.indices, minlength=A.shape[1]) == 0
    own = _own(_together(_pattern(A)[:, places], P, few), places)
    at, size = np.empty(A.shape[1], dtype=int), len(shared) + own.size
    at[shared], at[own[own >= 0]] = np.arange(len(shared)), len(shared) + np.flatnonzero(own.ravel() >= 0)
    A, E, P = (
        sparse.csr_matrix((part.data, at[part.indices], part.indptr), (part.shape[0], size))
        for part in (A, E, P)
    )
    found = _rows(A, len(shared), own.shape)
    if found is None:
        return None
    U, T, place, local, free = found
    form, objective = P.tocoo(), np.zeros(size)
    P, objective[at] = sparse.csr_matrix((form.data, (at[form.row], form.col)), (size, size)), q
    curved = _curved(P, len(shared), own.shape)
    held, k = curved.copy(), np.arange(len(own))
    held[k, k] += (own < 0) | bare[own]
    return Arrow(
        P=P,
        q=objective,
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
    """(k, c): the columns of each component, -1 where there is none."""
    counts = np.bincount(which)
    by = np.argsort(which, kind="stable")
    slot = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
    own = np.full((max(int(counts.max(initial=0)), 1), len(counts)), -1)
    own[slot, which[by]] = places[by]
    return own


def _curved(P: sparse.csr_matrix, p: int, shape: tuple[int, ...]) -> np.ndarray:
    """(k, k, c): P_c."""
    form, (size, count) = P.tocoo(), shape
    mine, curved = form.row >= p, np.zeros((size, size, count))
    slot, which = np.divmod(form.row[mine] - p, count)
    curved[slot, (form.col[mine] - p) // count, which] = form.data[mine]
    return curved


def _rows(
    A: sparse.csr_matrix, p: int, shape: tuple[int, ...]
) -> tuple[torch.Tensor, sparse.csr_matrix, np.ndarray, Local, Free] | None:
    """U', T, place, and the inequalities; None where those of one component have too many vectors u,
    or there is none."""
    (size, count), m = shape, A.shape[0]
    entries = A.tocoo()
    inside = entries.col >= p
    row, column, value = entries.row[inside], entries.col[inside] - p, entries.data[inside]
    slot, which = np.divmod(column, max(count, 1))
    of, a = np.full(m, -1), np.zeros((size, m))
    of[row], a[slot, row] = which, value
    AX = A[:, :p]
    found = _multiples(AX, of, np.diff(AX.indptr) > 0, count)
    if found is None or not found[0].size:
        return None
    U, place, vector, turn, g = found
    some, n = np.flatnonzero(vector >= 0), len(U)
    places = np.append(some, row), np.append(vector[some], n + column)
    T = sparse.csr_matrix((np.append(g[some], value), places), (m, n + count * size))
    inner, free = np.flatnonzero(of >= 0), np.flatnonzero((of < 0) & (vector >= 0))
    multiples = np.zeros((len(place), len(inner)))
    multiples[turn[inner], np.arange(len(inner))] = g[inner]
    local = Local(slice(None) if len(inner) == m else inner, of[inner], a[:, inner], multiples)
    return torch.from_numpy(np.ascontiguousarray(U.T)), T, place, local, Free(free, vector[free])


def _scaled(A: sparse.csr_matrix, rows: np.ndarray, columns: np.ndarray) -> sparse.csr_matrix:
    data = A.data * np.repeat(rows, np.diff(A.indptr)) * columns[A.indices]
    return sparse.csr_matrix((data, A.indices, A.indptr), shape=A.shape)


def _scales(
    A: sparse.csr_matrix, E: sparse.csr_matrix, P: sparse.csr_matrix, rounds: int = 3
) -> tuple[np.ndarray, np.ndarray]:
    """What makes the largest entries of rows and columns about 1 (D. Ruiz, 2001)."""
    both = abs(sparse.vstack([A, E], format="csr"))
    columns, sides = np.ones(A.shape[1]), np.ones(both.shape[0])
    for _ in range(rounds):
        now = _scaled(both, sides, columns)
        some, high = np.diff(now.indptr) > 0, np.zeros(A.shape[1])
        if some.any():
            sides[some] /= np.sqrt(np.maximum.reduceat(now.data, now.indptr[:-1][some]))
        else:
            sides[some] /= 1.0
        for part in (now, abs(_scaled(P, columns, columns))):
            np.maximum.at(high, part.indices, part.data)
        columns /= np.sqrt(np.where(high > 0, high, 1.0))
    return columns, sides


def _multiples(
    AX: sparse.csr_matrix, of: np.ndarray, some: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
    """The vectors u and the rows without t_c as one array, with those of each t_c, and each row's
    place in it, which of its t_c's it is, and its multiple; None where there are too many."""
    m = AX.shape[0]
    alone, left = np.flatnonzero(some & (of < 0)), np.flatnonzero(some & (of >= 0))
    arrays, row, turn, g = [AX[alone].toarray()], np.full(m, -1), np.zeros(m, dtype=int), np.zeros(m)
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
        same = np.abs(values - multiple[:, None] * U[mine]).max(axis=1) <= ALIKE * np.abs(values).max(axis=1)
        row[left[same]], turn[left[same]], g[left[same]] = start + mine[same], len(places), multiple[same]
        places.append(np.full(count, -1))
        places[-1][heads] = start + np.arange(len(heads))
        arrays.append(U)
        left = left[~same]
    return np.concatenate(arrays), np.stack(places or [np.full(count, -1)]), row, turn, g
