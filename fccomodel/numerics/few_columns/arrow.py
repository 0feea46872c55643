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
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from scipy import sparse
from scipy.sparse import csgraph

from fccomodel.numerics.cone_programs import ConeProgram

#: Largest number of entries of a t_c.
LARGEST_GROUP = 3
#: Entries of t in one row, above which the row becomes an equation with a slack among the x.
LONGEST_ROW = 8
#: Largest number of vectors u of one t_c.
LARGEST_DIRECTIONS = 3
#: Largest number of equations.
LARGEST_EQUATIONS = 200
#: Rows of a dense block while multiples of one vector are looked for.
ROWS_AT_ONCE = 1 << 14
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
        x = z[:p]
        t = z[p:].reshape(self.own.shape)
        is_entry = self.own >= 0
        values = np.zeros(len(self.columns))
        values[self.shared] = x
        values[self.own[is_entry]] = t[is_entry]
        return (values * self.columns)[: self.width]

    @cached_property
    def turned(self) -> sparse.csc_matrix:
        """T'."""
        return self.T.T

    @cached_property
    def ties(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each j: the c that have a j-th vector u, and the numbers of these vectors."""
        pairs = []
        for places in self.place:
            has_vector = places >= 0
            pairs.append((np.flatnonzero(has_vector), places[has_vector]))
        return pairs

    @cached_property
    def quadratic(self) -> np.ndarray:
        """The block of P that belongs to x."""
        p = len(self.shared)
        return self.P[:p, :p].toarray()

    @cached_property
    def equal(self) -> tuple[np.ndarray, np.ndarray | None]:
        """The columns of E that belong to x; those of t as (rows, k, c), or None if all are 0."""
        p = len(self.shared)
        of_x = self.E[:, :p].toarray()
        of_t = self.E[:, p:]
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
        product_s = n * p * (NUMBER_S + PRODUCT_S * p)
        rows_s = ROW_S * (len(self.b) + self.own.size)
        factor_s = CUBE_S * (p + len(self.e)) ** 3
        return ITERATIONS * (product_s + rows_s + factor_s + ITERATION_S)


@dataclass(frozen=True, eq=False, kw_only=True)
class Sorted:
    """A program whose rows are sorted into inequalities and equations, and its columns into x and t.

    A, b   inequalities A z <= b
    E, e   equations E z = e
    P, q   objective z'Pz / 2 + q'z
    few    mask of the columns that are entries of t
    order  see Arrow
    width  see Arrow
    """

    A: sparse.csr_matrix
    b: np.ndarray
    E: sparse.csr_matrix
    e: np.ndarray
    P: sparse.csr_matrix
    q: np.ndarray
    few: np.ndarray
    order: np.ndarray
    width: int


def arrow(program: ConeProgram) -> Arrow | None:
    """The program as one with few shared variables, or None if it does not have this form."""
    kinds = [kind for kind, *_ in program.cones]
    sizes = [size for _, size, _ in program.cones]
    if not kinds or not set(kinds) <= {"zero", "nonneg"}:
        return None
    equal = np.repeat([kind == "zero" for kind in kinds], sizes)
    A = program.A.tocsr()
    A.eliminate_zeros()
    below_diagonal = sparse.triu(program.P, 1).T
    P = (program.P + below_diagonal).tocsr()
    for few in _own_columns(A[~equal], P):
        by_kind = _sorted(program, A, P, equal, few)
        if by_kind is None:
            continue
        parts = _parts(by_kind)
        if parts is not None:
            return parts
    return None


def _sorted(
    program: ConeProgram,
    A: sparse.csr_matrix,
    P: sparse.csr_matrix,
    equations: np.ndarray,
    few: np.ndarray,
) -> Sorted | None:
    """The program with the columns ``few`` as t; None if it has too many equations.

    A row of many of these columns becomes an equation, whose slack is a new column at the end.
    """
    n = A.shape[1]
    long = _long(A, few) & ~equations
    equal = equations | long
    if equal.sum() > LARGEST_EQUATIONS:
        return None
    rows_with_slack = np.flatnonzero(long)
    count = len(rows_with_slack)
    slack = np.arange(count)
    ones = np.ones(count)
    coefficients = sparse.csr_matrix((ones, (rows_with_slack, slack)), shape=(len(equations), count))
    A = sparse.hstack([A, coefficients], format="csr")
    slack_columns = n + slack
    minus_slack = sparse.csr_matrix((-ones, (slack, slack_columns)), shape=(count, n + count))
    indptr = np.concatenate([P.indptr, np.full(count, P.nnz)])
    no_costs = np.zeros(count, dtype=program.q.dtype)
    not_few = np.zeros(count, dtype=few.dtype)
    inequality_rows = np.flatnonzero(~equal)
    equality_rows = np.flatnonzero(equal)
    added_rows = np.full(count, -1)
    return Sorted(
        A=sparse.vstack([A[~equal], minus_slack], format="csr"),
        b=np.concatenate([program.b[~equal], np.zeros(count)]),
        E=A[equal],
        e=program.b[equal],
        P=sparse.csr_matrix((P.data, P.indices, indptr), shape=(n + count, n + count)),
        q=np.concatenate([program.q, no_costs]),
        few=np.concatenate([few, not_few]),
        order=np.concatenate([inequality_rows, added_rows, equality_rows]),
        width=n,
    )


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
        columns = np.flatnonzero(few)
        short_rows = _pattern(A[~long])[:, columns]
        group_sizes = np.bincount(_components(short_rows, P, few))
        too_many_long_rows = np.count_nonzero(long) > LARGEST_EQUATIONS
        if too_many_long_rows or group_sizes.max(initial=0) > LARGEST_GROUP:
            break
        candidates.append(few)
    return (few for few in reversed(candidates) if np.count_nonzero(~few) <= LARGEST_SHARED)


def _components(A: sparse.csr_matrix, P: sparse.csr_matrix, few: np.ndarray) -> np.ndarray:
    """For each column of ``few``, the number of its component; rows and entries of P connect columns."""
    places = np.flatnonzero(few)
    in_form = P[places][:, places].tocoo()
    entries_of_rows = np.diff(A.indptr)
    rows = np.repeat(np.arange(A.shape[0]), entries_of_rows)
    same_row = np.flatnonzero(rows[1:] == rows[:-1])  # an entry and the next one
    one_in_row = A.indices[same_row]
    next_in_row = A.indices[same_row + 1]
    one = np.append(in_form.row, one_in_row)
    other = np.append(in_form.col, next_in_row)
    connections = sparse.coo_matrix((np.ones(len(one)), (one, other)), shape=in_form.shape)
    _, number = csgraph.connected_components(connections, directed=False)
    return number


def _parts(program: Sorted) -> Arrow | None:
    """The scaled program; None if a group needs too many vectors u, or P couples x and t."""
    shared = np.flatnonzero(~program.few)
    places = np.flatnonzero(program.few)
    if program.P[shared][:, places].nnz:
        return None
    columns, sides = _scales(program.A, program.E, program.P)
    program, unit = _in_units(program, columns, sides)
    A, P = program.A, program.P
    components = _components(_pattern(A)[:, places], P, program.few)
    own = _own(components, places)
    p = len(shared)
    is_entry = own >= 0
    place_in_z = np.empty(A.shape[1], dtype=int)  # of each column of the program
    place_in_z[shared] = np.arange(p)
    place_in_z[own[is_entry]] = p + np.flatnonzero(is_entry.ravel())
    size = p + own.size
    rows = _rows(_moved(A, place_in_z, size), p, own.shape)
    if rows is None:
        return None
    U, T, place, local, free = rows
    form = _moved(P, place_in_z, size).tocoo()
    rows_of_z = place_in_z[form.row]
    P_of_z = sparse.csr_matrix((form.data, (rows_of_z, form.col)), (size, size))
    q_of_z = np.zeros(size)
    q_of_z[place_in_z] = program.q
    curved = _curved(P_of_z, p, own.shape)
    entries_of_column = np.bincount(A.indices, minlength=A.shape[1])
    entries_of_column += np.bincount(P.indices, minlength=A.shape[1])
    unbounded = entries_of_column == 0
    filled = curved.copy()
    diagonal = np.arange(len(own))
    filled[diagonal, diagonal] += ~is_entry | unbounded[own]
    return Arrow(
        P=P_of_z,
        q=q_of_z,
        E=_moved(program.E, place_in_z, size),
        e=program.e,
        U=U,
        T=T,
        b=program.b,
        held=filled,
        curved=curved if curved.any() else None,
        place=place,
        local=local,
        free=free,
        order=program.order,
        columns=columns,
        sides=sides,
        unit=unit,
        shared=shared,
        own=own,
        width=program.width,
    )


def _in_units(program: Sorted, columns: np.ndarray, sides: np.ndarray) -> tuple[Sorted, float]:
    """The program times factors of its columns and rows, and the factor of its objective.

    The largest number of the objective becomes 1.
    """
    m = program.A.shape[0]
    P = _scaled(program.P, columns, columns)
    q = program.q * columns
    largest_cost = np.abs(q).max(initial=0.0)
    largest_square = np.abs(P.data).max(initial=0.0)
    largest = max(largest_cost, largest_square)
    unit = 1 / (largest or 1.0)
    in_units = replace(
        program,
        A=_scaled(program.A, sides[:m], columns),
        b=program.b * sides[:m],
        E=_scaled(program.E, sides[m:], columns),
        e=program.e * sides[m:],
        P=P * unit,
        q=q * unit,
    )
    return in_units, unit


def _moved(matrix: sparse.csr_matrix, place: np.ndarray, size: int) -> sparse.csr_matrix:
    """A matrix whose columns are moved to other places among ``size``."""
    columns = place[matrix.indices]
    rows = matrix.shape[0]
    return sparse.csr_matrix((matrix.data, columns, matrix.indptr), (rows, size))


def _own(which: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The columns of each component, padded with -1, (k, c)."""
    counts = np.bincount(which)
    by_component = np.argsort(which, kind="stable")
    first = np.cumsum(counts) - counts
    slot = np.arange(len(places)) - np.repeat(first, counts)
    largest = max(int(counts.max(initial=0)), 1)
    own = np.full((largest, len(counts)), -1)
    own[slot, which[by_component]] = places[by_component]
    return own


def _curved(P: sparse.csr_matrix, p: int, shape: tuple[int, ...]) -> np.ndarray:
    """The matrices P_c, (k, k, c)."""
    size, count = shape
    form = P.tocoo()
    of_t = form.row >= p
    row, which = np.divmod(form.row[of_t] - p, count)
    column = (form.col[of_t] - p) // count
    curved = np.zeros((size, size, count))
    curved[row, column, which] = form.data[of_t]
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
    of_t = entries.col >= p
    row = entries.row[of_t]
    column = entries.col[of_t] - p
    value = entries.data[of_t]
    slot, which = np.divmod(column, max(count, 1))
    group = np.full(m, -1)
    group[row] = which
    a = np.zeros((size, m))
    a[slot, row] = value
    AX = A[:, :p]
    has_x = np.diff(AX.indptr) > 0
    directions = _directions(AX, group, has_x, count)
    if directions is None or not directions.U.size:
        return None
    n = len(directions.U)
    with_x = np.flatnonzero(directions.row >= 0)
    values_of_T = np.append(directions.g[with_x], value)
    rows_of_T = np.append(with_x, row)
    columns_of_T = np.append(directions.row[with_x], n + column)
    places_in_T = (rows_of_T, columns_of_T)
    T = sparse.csr_matrix((values_of_T, places_in_T), (m, n + count * size))
    inner = np.flatnonzero(group >= 0)
    multiples = np.zeros((len(directions.place), len(inner)))
    turns = directions.turn[inner]
    columns = np.arange(len(inner))
    multiples[turns, columns] = directions.g[inner]
    if len(inner) == m:
        local_rows: slice | np.ndarray = slice(None)
    else:
        local_rows = inner
    local = Local(local_rows, group[inner], a[:, inner], multiples)
    alone = np.flatnonzero((group < 0) & (directions.row >= 0))
    U = torch.from_numpy(np.ascontiguousarray(directions.U.T))
    return U, T, directions.place, local, Free(alone, directions.row[alone])


def _scaled(A: sparse.csr_matrix, rows: np.ndarray, columns: np.ndarray) -> sparse.csr_matrix:
    """A matrix with its rows and columns multiplied by factors."""
    row_factors = np.repeat(rows, np.diff(A.indptr))
    data = A.data * row_factors * columns[A.indices]
    return sparse.csr_matrix((data, A.indices, A.indptr), shape=A.shape)


def _scales(
    A: sparse.csr_matrix, E: sparse.csr_matrix, P: sparse.csr_matrix, rounds: int = SCALING_ROUNDS
) -> tuple[np.ndarray, np.ndarray]:
    """Factors of columns and rows that make their largest entries about 1 (D. Ruiz, 2001)."""
    rows = abs(sparse.vstack([A, E], format="csr"))
    columns = np.ones(A.shape[1])
    sides = np.ones(rows.shape[0])
    for _ in range(rounds):
        scaled_rows = _scaled(rows, sides, columns)
        scaled_form = abs(_scaled(P, columns, columns))
        some = np.diff(scaled_rows.indptr) > 0
        if some.any():
            first_entries = scaled_rows.indptr[:-1][some]
            largest_of_row = np.maximum.reduceat(scaled_rows.data, first_entries)
            sides[some] /= np.sqrt(largest_of_row)
        largest_of_column = np.zeros(A.shape[1])
        np.maximum.at(largest_of_column, scaled_rows.indices, scaled_rows.data)
        np.maximum.at(largest_of_column, scaled_form.indices, scaled_form.data)
        columns /= np.sqrt(np.where(largest_of_column > 0, largest_of_column, 1.0))
    return columns, sides


class Directions(NamedTuple):
    """The vectors u.

    U      the rows without a t_c, then the vectors u
    place  for each t_c the numbers of its vectors u in U, (j, c)
    row    for each row its number in U, -1 if it has no entry of x
    turn   for each row the j of its vector u
    g      for each row its multiple of that vector
    """

    U: np.ndarray
    place: np.ndarray
    row: np.ndarray
    turn: np.ndarray
    g: np.ndarray


def _directions(AX: sparse.csr_matrix, group: np.ndarray, some: np.ndarray, count: int) -> Directions | None:
    """The vectors u, or None if a t_c needs too many of them.

    Of the rows of each t_c the first becomes a vector, the rows that are multiples of it are done, and
    so on with the rows that are left.

    AX     the coefficients of x
    group  the number of each row's t_c, -1 for none
    some   whether each row has an entry of x
    count  the number of all t_c
    """
    m = AX.shape[0]
    alone = np.flatnonzero(some & (group < 0))
    left = np.flatnonzero(some & (group >= 0))
    arrays = [AX[alone].toarray()]
    row = np.full(m, -1)
    turn = np.zeros(m, dtype=int)
    g = np.zeros(m)
    row[alone] = np.arange(len(alone))
    g[alone] = 1.0
    places: list[np.ndarray] = []
    while len(left):
        if len(places) == LARGEST_DIRECTIONS:
            return None
        heads, first = np.unique(group[left], return_index=True)
        own = np.searchsorted(heads, group[left])  # of each row, the place of its t_c among the heads
        start = sum(map(len, arrays))
        U = AX[left[first]].toarray()
        multiple, same = _multiples(AX[left], U, own)
        row[left[same]] = start + own[same]
        turn[left[same]] = len(places)
        g[left[same]] = multiple[same]
        place = np.full(count, -1)
        place[heads] = start + np.arange(len(heads))
        places.append(place)
        arrays.append(U)
        left = left[~same]
    if not places:
        places.append(np.full(count, -1))
    return Directions(np.concatenate(arrays), np.stack(places), row, turn, g)


def _multiples(rows: sparse.csr_matrix, U: np.ndarray, own: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each row, which multiple of its own vector of U it is, and whether it is one."""
    multiple, same = np.zeros(len(own)), np.zeros(len(own), dtype=bool)
    largest = np.abs(U).argmax(axis=1)
    for first in range(0, len(own), ROWS_AT_ONCE):
        some = slice(first, first + ROWS_AT_ONCE)
        vectors, values = U[own[some]], rows[some].toarray()
        places = np.arange(len(values)), largest[own[some]]
        multiple[some] = values[places] / vectors[places]
        vectors *= multiple[some, None]
        difference = np.abs(values - vectors).max(axis=1)
        same[some] = difference <= SAME_DIRECTION * np.abs(values).max(axis=1)
    return multiple, same
