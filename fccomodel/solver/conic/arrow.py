"""Linear and quadratic programs of few variables and many rows, each with variables of its own.

    minimise 1/2 z'Pz + q.z   s.t.   A z + s = b, s >= 0,   E z = e,   z = (x, t_1, t_2, ..)

where no row of A, and no entry of P, has entries of two of the small vectors t_c, and beside t_c there are multiples of a few
vectors u_c1, u_c2, .. (of one where a function has kinks along one affine function of x): so are means of piecewise functions. A
step of an interior-point method (``barrier``) solves for x with sum_c U_c'W_c U_c, weighted products of the rows with themselves;
with rows g_i.U_c x + a_i.t_c of weights d_i,

    W_c = min over V of sum_i d_i (g_i + V'a_i)(g_i + V'a_i)' + V'P_c V,

sums of what is not negative, so that rounding takes nothing from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy import sparse

from fccomodel.solver.conic.cones import Assembled

#: The most entries of a t_c, and of different ones in a row, before that row becomes an equation with a variable of its own.
MOST_OWN, MOST_LONG = 3, 8
#: The most vectors u of a t_c.
MOST_TURNS = 3
#: The most equations, and the most entries of x.
MOST_EQUATIONS, MOST_SHARED = 200, 600
#: How far two rows may be from multiples of one another, relative to the larger.
ALIKE = 1e-13
#: Seconds of an iteration: for each number of u, and for it and each entry of x; for each row; for a cube of entries of x; and
#: in any case. Of one core at 2.5 GHz.
NUMBER_S, PRODUCT_S, ROW_S, CUBE_S, ONCE_S = 4e-9, 1.2e-10, 1.2e-7, 2e-10, 4e-4
ITERATIONS = 20


@dataclass(frozen=True, eq=False)
class Arrow:
    """A program by its parts, scaled: ``columns`` and ``sides`` are what z and the rows are multiplied by, ``unit`` the value.

    A, b, E, e   inequalities and equations; ``order``: the rows of the program that they are, inequalities first, where those of
                 many t_c are equations whose slack is a further x
    shared       the columns of x;   own (c, k): those of t_c, -1 where there is none
    P, q         of the objective;  curved (c, k, k): P_c, and 1 where t_c has no entry, or one that nothing holds
    U            the vectors u, and the rows without a t_c;   place (c, j): those of t_c, -1 where there is none
    row, turn    of U for each inequality, -1 of none, and its j;   g: its multiple;   of: c, or -1;   a (rows, k): coefficients
    """

    P: sparse.csr_matrix
    q: np.ndarray
    A: sparse.csr_matrix
    b: np.ndarray
    E: sparse.csr_matrix
    e: np.ndarray
    order: np.ndarray
    columns: np.ndarray
    sides: np.ndarray
    unit: float
    shared: np.ndarray
    own: np.ndarray
    curved: np.ndarray
    U: np.ndarray
    place: np.ndarray
    row: np.ndarray
    turn: np.ndarray
    g: np.ndarray
    a: np.ndarray
    of: np.ndarray
    width: int

    #: seconds that none is foreseen to take less than
    LEAST: ClassVar[float] = ITERATIONS * ONCE_S

    @cached_property
    def rows(self) -> tuple[np.ndarray, ...]:
        """Of the inequalities with a t_c: which they are, and their ``of``, ``a``, ``g``, ``turn``."""
        local = self.of >= 0
        return local, self.of[local], self.a[local], self.g[local], self.turn[local]

    @cached_property
    def transposed(self) -> sparse.csr_matrix:
        """A'."""
        return self.A.T.tocsr()

    @cached_property
    def quadratic(self) -> np.ndarray:
        """P's part of x."""
        return self.P[self.shared][:, self.shared].toarray()

    @property
    def numbers(self) -> int:
        """Of the rows that kinks and bounds ask for."""
        return int(self.U.size)

    @property
    def seconds(self) -> float:
        """Of the whole solve, foreseen."""
        n, p = self.U.shape
        each = n * p * (NUMBER_S + PRODUCT_S * p) + ROW_S * (len(self.b) + self.own.size) + CUBE_S * (p + len(self.e)) ** 3
        return ITERATIONS * (each + ONCE_S)


def arrow(program: Assembled) -> Arrow | None:
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


def _with(program: Assembled, A: sparse.csr_matrix, P: sparse.csr_matrix, kinds: np.ndarray, few: np.ndarray) -> Arrow | None:
    """With these columns as the t; rows of many of them as equations."""
    long, n = _long(A, few) & ~kinds, A.shape[1]
    slack, equal = np.flatnonzero(long), kinds | long
    if equal.sum() > MOST_EQUATIONS:
        return None
    count = len(slack)
    extra = sparse.csr_matrix((np.ones(count), (slack, np.arange(count))), shape=(len(kinds), count))
    A = sparse.hstack([A, extra], format="csr")
    below = sparse.csr_matrix((-np.ones(count), (np.arange(count), n + np.arange(count))), shape=(count, n + count))
    P = sparse.csr_matrix((P.data, P.indices, np.concatenate([P.indptr, np.full(count, P.nnz)])), shape=(n + count,) * 2)
    few, q = (np.concatenate([part, np.zeros(count, dtype=part.dtype)]) for part in (few, program.q))
    order = np.concatenate([np.flatnonzero(~equal), np.full(count, -1), np.flatnonzero(equal)])
    upper, b = sparse.vstack([A[~equal], below], format="csr"), np.concatenate([program.b[~equal], np.zeros(count)])
    return _parts(upper, b, A[equal], program.b[equal], P, q, few, order, n)


def _long(A: sparse.csr_matrix, few: np.ndarray) -> np.ndarray:
    """Rows with entries of many t."""
    return (_pattern(A) @ few.astype(float)) > MOST_LONG


def _pattern(A: sparse.csr_matrix) -> sparse.csr_matrix:
    return sparse.csr_matrix((np.ones(A.nnz), A.indices, A.indptr), shape=A.shape)


def _few(A: sparse.csr_matrix, P: sparse.csr_matrix) -> Iterator[np.ndarray]:
    """Which columns may be entries of a t_c, the most of them first: those of so few rows that they fall apart, rows of very many
    set aside."""
    counts, found = np.bincount(A.indices, minlength=A.shape[1]), [np.zeros(A.shape[1], dtype=bool)]
    for most in np.unique(counts)[:8]:
        few = counts <= most
        long = _long(A, few)
        _, which = _together(_pattern(A[~long])[:, np.flatnonzero(few)], P, few)
        if np.count_nonzero(long) > MOST_EQUATIONS or np.bincount(which).max() > MOST_OWN:
            break
        found.append(few)
    return (few for few in reversed(found) if np.count_nonzero(~few) <= MOST_SHARED)


def _together(A: sparse.csr_matrix, P: sparse.csr_matrix, few: np.ndarray) -> tuple[int, np.ndarray]:
    """The components of the t, by rows and by P."""
    from scipy.sparse import csgraph

    places = np.flatnonzero(few)
    graph = _pattern(P[places][:, places])
    several = np.diff(A.indptr) > 1
    if several.any():
        kept = A[several]
        graph = graph + kept.T @ kept
    return csgraph.connected_components(graph, directed=False)


def _parts(
    A: sparse.csr_matrix, b: np.ndarray, E: sparse.csr_matrix, e: np.ndarray, P: sparse.csr_matrix, q: np.ndarray,
    few: np.ndarray, order: np.ndarray, width: int,
) -> Arrow | None:  # fmt: skip
    """Scaled, by components; None where rows of one are no multiples of one another, or P has entries of x and t."""
    shared, places = np.flatnonzero(~few), np.flatnonzero(few)
    if P[shared][:, places].nnz:
        return None
    columns, sides = _scales(A, E, P)
    m = A.shape[0]
    A, E = (_scaled(part, side, columns) for part, side in ((A, sides[:m]), (E, sides[m:])))
    P, q = _scaled(P, columns, columns), q * columns
    unit = 1 / (max(np.abs(q).max(initial=0.0), np.abs(P.data).max(initial=0.0)) or 1.0)
    P, q, b, e = P * unit, q * unit, b * sides[:m], e * sides[m:]
    count, which = _together(_pattern(A)[:, places], P, few) if len(places) else (0, places)
    size = max(int(np.bincount(which).max()), 1) if count else 1
    by = np.argsort(which, kind="stable")
    starts = np.searchsorted(which[by], np.arange(count))
    slot = np.empty(len(places), dtype=int)
    slot[by] = np.arange(len(places)) - starts[which[by]]
    own = np.full((count, size), -1)
    own[which, slot] = places
    at, slots = np.full(A.shape[1], -1), np.zeros(A.shape[1], dtype=int)
    at[places], slots[places] = which, slot
    coo = A.tocoo()
    inside = at[coo.col] >= 0
    of, a = np.full(m, -1), np.zeros((m, size))
    of[coo.row[inside]] = at[coo.col[inside]]
    a[coo.row[inside], slots[coo.col[inside]]] = coo.data[inside]
    AX = A[:, shared]
    AX.eliminate_zeros()
    some = np.diff(AX.indptr) > 0
    found = _multiples(AX, of, some, count)
    if found is None or not found[0].size:
        return None
    U, place, row, turn, g = found
    curved = np.zeros((count, size, size))
    if P.nnz:
        full = P.tocoo()
        mine = at[full.row] >= 0
        curved[at[full.row[mine]], slots[full.row[mine]], slots[full.col[mine]]] = full.data[mine]
    bare = np.bincount(A.indices, minlength=A.shape[1]) + np.bincount(P.indices, minlength=A.shape[1]) == 0
    curved[:, np.arange(size), np.arange(size)] += (own < 0) | bare[own]
    return Arrow(
        P=P, q=q, A=A, b=b, E=E, e=e, order=order, columns=columns, sides=sides, unit=unit, shared=shared, own=own, curved=curved,
        U=U, place=place, row=row, turn=turn, g=g, a=a, of=of, width=width,
    )  # fmt: skip


def _scaled(A: sparse.csr_matrix, rows: np.ndarray, columns: np.ndarray) -> sparse.csr_matrix:
    data = A.data * np.repeat(rows, np.diff(A.indptr)) * columns[A.indices]
    return sparse.csr_matrix((data, A.indices, A.indptr), shape=A.shape)


def _scales(A: sparse.csr_matrix, E: sparse.csr_matrix, P: sparse.csr_matrix, rounds: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """What makes the largest entries of rows and columns about 1 (D. Ruiz, 2001)."""
    both = abs(sparse.vstack([A, E], format="csr"))
    columns, sides = np.ones(A.shape[1]), np.ones(both.shape[0])
    for _ in range(rounds):
        now = _scaled(both, sides, columns)
        some, high = np.diff(now.indptr) > 0, np.zeros(A.shape[1])
        sides[some] /= np.sqrt(np.maximum.reduceat(now.data, now.indptr[:-1][some])) if some.any() else 1.0
        for part in (now, abs(_scaled(P, columns, columns))):
            np.maximum.at(high, part.indices, part.data)
        columns /= np.sqrt(np.where(high > 0, high, 1.0))
    return columns, sides


def _multiples(
    AX: sparse.csr_matrix, of: np.ndarray, some: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
    """The vectors u and the rows without t_c as one array, with those of each t_c, and each row's place in it, which of its t_c's
    it is, and its multiple; None where there are too many."""
    m = AX.shape[0]
    alone, left = np.flatnonzero(some & (of < 0)), np.flatnonzero(some & (of >= 0))
    arrays, row, turn, g = [AX[alone].toarray()], np.full(m, -1), np.zeros(m, dtype=int), np.zeros(m)
    row[alone], g[alone] = np.arange(len(alone)), 1.0
    places: list[np.ndarray] = []
    while len(left):
        if len(places) == MOST_TURNS:
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
    return np.concatenate(arrays), np.stack(places or [np.full(count, -1)], axis=1), row, turn, g
