"""A conic program under construction: its variables, and cones that contain affine functions of them.

minimise q.z + sum_k c_k |u_k(z)|^2   subject to affine functions of z in cones
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from fccomodel.conic.affine import EXACT, OVER, UNDER, Affine, NotConic, constant, joined, stacked, widened
from fccomodel.numerics.cone_programs import ConeProgram

#: The largest number of nonzero entries of a program's matrices.
MAX_NUMBERS = 6_000_000
#: The largest number of cones that are not symmetric.
MAX_CURVED = 60_000
#: The largest number of entries in the triangle of a semidefinite matrix.
MAX_TRIANGLE = 3_240
#: The largest denominator of exponents that second-order cones state.
MAX_DENOMINATOR = 16
#: Difference of an exponent from a fraction that counts as rounding.
SAME_EXPONENT = 1e-14
#: Kinds of cones that are not symmetric.
CURVED = ("exponential", "power")


@dataclass(frozen=True, eq=False)
class ConeBlock:
    """Rows of affine functions in cones of one kind.

    kind   zero, nonneg, second_order, rotated (t y >= |u|^2 for rows t, y, u), exponential, power
           or semidefinite (the upper triangles, column by column, with entries beside the diagonal
           times sqrt 2)
    rows   matrix of the affine functions
    const  constants of the affine functions
    size   number of rows of one cone
    power  exponent of power cones
    """

    kind: str
    rows: sparse.csr_matrix
    const: np.ndarray
    size: int = 1
    power: float = 0.5


@dataclass(frozen=True, eq=False)
class Powers:
    """The conditions t_k >= |u_k|_p^p for the rows u_k of an array.

    first        the first column of t
    count        the number of entries of t
    rows, const  the entries of all u_k
    size         the number of entries of one u_k
    exponent     p
    """

    first: int
    count: int
    rows: sparse.csr_matrix
    const: np.ndarray
    size: int = 1
    exponent: float = 2.0

    @property
    def columns(self) -> np.ndarray:
        """The columns of all t."""
        return np.arange(self.first, self.first + self.count)

    def of(self, columns: np.ndarray, weights: np.ndarray) -> Affine:
        """The rows u_k for some columns t_k, each times its weight to the power 1/p, one after the other."""
        k = columns - self.first
        first_places = k[:, None] * self.size
        places = (first_places + np.arange(self.size)).ravel()
        entries = _exact(self.rows[places], self.const[places])
        factors = weights ** (1 / self.exponent)
        return entries * np.repeat(factors, self.size)


class Cones:
    """The program to which atoms, reductions and sets add their conditions (see ``library.cones``).

    NotConic is raised as soon as the program exceeds the limits on size.
    """

    def __init__(self) -> None:
        self.columns = self.numbers = self.curved = 0
        self.blocks: list[ConeBlock] = []
        self.squares_: list[Powers] = []
        self.powers_: list[Powers] = []

    # ------------------------------------------------------------------------------------ variables
    def variable(self, shape: Sequence[int]) -> Affine:
        """Add variables of this shape."""
        count = math.prod(shape)
        place = np.arange(count)
        columns = self.columns + place
        self.columns += count
        ones = np.ones(count)
        rows = sparse.csr_matrix((ones, (place, columns)), shape=(count, self.columns))
        kind = np.full(count, EXACT, dtype=np.int8)
        return Affine(rows, np.zeros(count), kind, place.reshape(shape))

    # ----------------------------------------------------------------------------------- conditions
    def nonneg(self, u: Affine) -> int:
        """State u >= 0, entry by entry, and return the number of the block.

        u is exact or a lower estimate.
        """
        return self._add("nonneg", u, UNDER)

    def zero(self, u: Affine) -> int:
        """State u == 0 for an exact u."""
        return self._add("zero", u, EXACT)

    def second_order(self, t: Any, u: Affine) -> int:
        """State t >= |u|_2 along u's last dimension."""
        n = u.shape[-1]
        entries = [u.select(-1, k) for k in range(n)]
        kinds = (UNDER, *[EXACT] * n)
        return self._cone("second_order", [_affine(t), *entries], kinds)

    def exponential(self, x: Any, y: Any, z: Any) -> int:
        """State y exp(x / y) <= z, y > 0."""
        parts = [_affine(x), _affine(y), _affine(z)]
        return self._cone("exponential", parts, (OVER, EXACT, UNDER))

    def power(self, x: Any, y: Any, z: Any, exponent: float) -> int:
        """State x^a y^(1-a) >= |z| for an exponent a in (0, 1).

        If a is a fraction, second-order cones state it, because these are symmetric.
        """
        x = _affine(x)
        y = _affine(y)
        z = _affine(z)
        fraction = Fraction(exponent).limit_denominator(MAX_DENOMINATOR)
        if abs(float(fraction) - exponent) > SAME_EXPONENT:
            return self._cone("power", [x, y, z], (UNDER, UNDER, EXACT), exponent)
        shape = np.broadcast_shapes(x.index.shape, y.index.shape, z.index.shape)
        w = self.variable(shape)
        self.nonneg(w - z)
        self.nonneg(w + z)
        a = fraction.numerator
        b = fraction.denominator
        whole = 1 << (b - 1).bit_length()
        factors = [(self._below(x), a), (self._below(y), b - a), (w, whole - b)]
        return self._tower(w, factors, whole)

    def _below(self, u: Affine) -> Affine:
        """New variables below a lower estimate; an exact array is returned as it is."""
        if u.exact:
            return u
        fresh = self.variable(u.shape)
        self.nonneg(u - fresh)
        return fresh

    def _tower(self, w: Affine, parts: list[tuple[Affine, int]], whole: int) -> int:
        """State that w^n is at most the product of the parts, each as often as its count says.

        n = ``whole`` is a power of 2. The condition is stated by geometric means of pairs, of pairs of
        these means, and so on (F. Alizadeh, D. Goldfarb, Second-order cone programming, 2003).
        """
        while True:
            once = [u for u, count in parts if count % 2]
            parts = [(u, count // 2) for u, count in parts if count > 1]
            if whole == 2:
                return self.quotient(once[0], once[1], w)
            for left, right in zip(once[::2], once[1::2], strict=True):
                shape = np.broadcast_shapes(left.index.shape, right.index.shape)
                mean = self.variable(shape)
                self.quotient(left, right, mean)
                parts.append((mean, 1))
            whole //= 2

    def quotient(self, t: Any, y: Any, u: Any) -> int:
        """State t y >= u^2, y >= 0."""
        parts = [_affine(t), _affine(y), _affine(u)]
        return self._cone("rotated", parts, (UNDER, UNDER, EXACT))

    def semidefinite(self, u: Affine) -> int:
        """State that symmetric matrices (last two dimensions of u) have no negative eigenvalue."""
        n = u.shape[-1]
        j, i = np.tril_indices(n)
        triangle = u[..., i, j] * np.where(i == j, 1.0, 2**0.5)
        if len(i) > MAX_TRIANGLE:
            raise NotConic("a larger semidefinite matrix than an interior-point method takes")
        rows, const, kinds = triangle.entries()
        _check(kinds, EXACT)
        return self._append(ConeBlock("semidefinite", rows, const, len(i)))

    def squares(self, u: Affine) -> Affine:
        """Upper estimates of |u|^2 along the last dimension."""
        if not u.exact:
            raise NotConic("the square of an estimate")
        t = self.variable(u.shape[:-1])
        rows, const, _ = u.entries()
        self._count(rows.nnz)
        count = t.numel()
        first_column = self.columns - count
        self.squares_.append(Powers(first_column, count, rows, const, u.shape[-1]))
        return t.upper()

    def powers(self, u: Affine, p: float) -> Affine:
        """Upper estimates of |u|^p."""
        if not u.exact:
            raise NotConic("the power of an estimate")
        t = self.variable(u.shape)
        rows, const, _ = u.entries()
        count = t.numel()
        self.powers_.append(Powers(self.columns - count, count, rows, const, exponent=p))
        return t.upper()

    def norm_of(self, u: Affine, p: float = 2.0) -> Affine | None:
        """Upper estimates of u^(1/p) for sums u = c + sum_k c_k |u_k|^p, or None.

        It is None if u is not such a sum, or if c or a c_k is negative.
        """
        rows, const, _ = u.entries()
        rows.eliminate_zeros()
        if (const < 0).any() or (rows.data < 0).any():
            return None
        records = [record for record in (*self.squares_, *self.powers_) if record.exponent == p]
        first_columns = [record.first for record in records]
        end_columns = [record.first + record.count for record in records]
        starts = np.array([*first_columns, self.columns])
        ends = np.array([*end_columns, 0])
        owner = np.searchsorted(starts, rows.indices, side="right") - 1
        has_none = (owner < 0) | (rows.indices >= ends[owner])
        if has_none.any():
            return None
        t = self.variable((len(const),))
        for alike in _alike(rows, owner, const):
            parts = _weighted_parts(records, rows, owner, alike)
            levels = const[alike] ** (1 / p)
            if len(alike) == 1:
                positive = constant(levels[levels > 0])
                self.norm(t[alike[0]], joined([*parts, positive]), p)
                continue
            (part,) = parts
            columns_of_norm = [part.reshape(len(alike), -1)]
            if levels[0]:
                columns_of_norm.append(constant(levels[:, None]))
            self.norm(t[alike], joined(columns_of_norm, -1), p)
        return t.upper().reshape(u.shape)

    def dual(self, kind: str, y: Affine, power: float = 0.5) -> None:
        """State that the rows of an array lie in the dual cones of a kind."""
        n = y.shape[-1]
        if kind == "nonneg":
            self.nonneg(y)
        elif kind == "second_order":
            self.second_order(y.select(-1, 0), y.narrow(-1, 1, n - 1))
        elif kind == "rotated":
            inner = [y.select(-1, k) * 0.5 for k in range(2, n)]
            parts = [y.select(-1, 0), y.select(-1, 1), *inner]
            sides = [UNDER, UNDER] + [EXACT] * len(inner)
            self._cone("rotated", parts, tuple(sides))
        elif kind == "exponential":
            u, v, w = (y.select(-1, k) for k in range(3))
            self.exponential(u - v, -u, w)
        elif kind == "power":
            u, v, w = (y.select(-1, k) for k in range(3))
            self.power(u / power, v / (1 - power), w, power)
        elif kind == "semidefinite":
            rows, const, _ = y.entries()
            self._append(ConeBlock(kind, rows, const, n))

    def norm(self, t: Affine, u: Affine, p: float) -> None:
        """State t >= |u|_p along u's last dimension: r_k^(1/p) t^(1 - 1/p) >= |u_k|, sum r <= t."""
        if p == 2:
            self.second_order(t, u)
            return
        r = self.variable(u.shape)
        self.power(r, t.unsqueeze(-1), u, 1 / p)
        self.nonneg(t - r.sum(-1))

    def stated(self, powers: Powers) -> None:
        """State the conditions of a record by cones."""
        t = _exact(_unit(powers.columns), np.zeros(powers.count))
        ones = np.ones(powers.count)
        u = powers.of(powers.columns, ones).reshape(powers.count, powers.size)
        if powers.exponent != 2:
            self.power(t, 1.0, u.squeeze(-1), 1 / powers.exponent)
            return
        entries = [u.select(-1, k) for k in range(powers.size)]
        kinds = (UNDER, UNDER, *[EXACT] * powers.size)
        self._cone("rotated", [t, constant(ones), *entries], kinds)

    def used(self) -> np.ndarray:
        """A mask of the variables that occur in a condition."""
        used = np.zeros(self.columns, dtype=bool)
        matrices = [block.rows for block in self.blocks]
        matrices += [squares.rows for squares in self.squares_]
        matrices += [powers.rows for powers in self.powers_]
        for matrix in matrices:
            used[matrix.indices] = True
        return used

    # -------------------------------------------------------------------------------------- helpers
    def _add(self, kind: str, u: Affine, allowed: int) -> int:
        """Add a block of cones with one row each."""
        rows, const, kinds = u.entries()
        _check(kinds, allowed)
        return self._append(ConeBlock(kind, rows, const))

    def _cone(self, kind: str, parts: list[Affine], allowed: Sequence[int], power: float = 0.5) -> int:
        """Add a block of cones whose rows are the entries of ``parts``; ``allowed`` are their kinds."""
        shape = np.broadcast_shapes(*(part.index.shape for part in parts))
        if kind in CURVED:
            count = math.prod(shape)
            self.room(count)
            self.curved += count
        for part, kinds in zip(parts, allowed, strict=True):
            _check(part.kind[part.index].ravel(), kinds)
        spread = [part.laid(np.broadcast_to(part.index, shape)) for part in parts]
        rows, const, _ = stacked(spread).entries()
        return self._append(ConeBlock(kind, rows, const, len(parts), power))

    def _append(self, block: ConeBlock) -> int:
        self._count(block.rows.nnz)
        self.blocks.append(block)
        return len(self.blocks) - 1

    def _count(self, numbers: int) -> None:
        self.numbers += numbers
        self.room(0)

    def room(self, curved: int) -> None:
        """Raise NotConic if ``curved`` more cones that are not symmetric would make the program too large."""
        if self.numbers > MAX_NUMBERS or self.curved + curved > MAX_CURVED:
            raise NotConic("a larger program than an interior-point method takes")


def _weighted_parts(
    records: Sequence[Powers], rows: sparse.csr_matrix, owner: np.ndarray, some: np.ndarray
) -> list[Affine]:
    """The u_k that some rows of ``norm_of`` are made of, weighted, by the record that has them."""
    entries_of_rows = [np.arange(rows.indptr[k], rows.indptr[k + 1]) for k in some]
    entries = np.concatenate(entries_of_rows)
    columns = rows.indices[entries]
    weights = rows.data[entries]
    record = owner[entries]
    parts = []
    for r in np.unique(record):
        of_record = record == r
        parts.append(records[r].of(columns[of_record], weights[of_record]))
    return parts


def _alike(rows: sparse.csr_matrix, owner: np.ndarray, const: np.ndarray) -> list[np.ndarray]:
    """Groups of rows that can be stated together.

    The rows of a group have equal lengths and one owner, and all of them or none has a constant.
    """
    counts = np.diff(rows.indptr)
    row = np.repeat(np.arange(len(const)), counts)
    first = np.full(len(const), np.iinfo(np.int64).max)
    last = np.full(len(const), -1)
    np.minimum.at(first, row, owner)
    np.maximum.at(last, row, owner)
    # A row with several owners is a group of its own.
    alone = np.where(first == last, -1, np.arange(len(const)))
    keys = np.stack([counts, last, const > 0, alone])
    _, group = np.unique(keys, axis=1, return_inverse=True)
    group = group.ravel()
    order = np.argsort(group, kind="stable")
    if not len(order):
        return []
    last_of_groups = np.flatnonzero(np.diff(group[order]))
    return np.split(order, last_of_groups + 1)


def _exact(rows: sparse.csr_matrix, const: np.ndarray) -> Affine:
    """A vector of exact affine functions."""
    count = len(const)
    kinds = np.full(count, EXACT, dtype=np.int8)
    return Affine(rows, const, kinds, np.arange(count))


def _affine(value: Any) -> Affine:
    """The value itself, or a constant as affine functions."""
    if isinstance(value, Affine):
        return value
    return constant(np.asarray(value, dtype=np.float64))


def _check(kinds: np.ndarray, allowed: int) -> None:
    """Raise NotConic unless every row is exact or an estimate of the allowed kind.

    Then the condition on an estimate implies the condition on the estimated function.
    """
    if ((kinds != EXACT) & (kinds != allowed)).any():
        raise NotConic(
            "a convex function where only a concave or affine one keeps the problem convex, or the reverse"
        )


@dataclass(frozen=True, eq=False)
class Assembled(ConeProgram):
    """A program and its origin.

    ``places`` are the first rows of the blocks, ``constant`` is the objective at z = 0.
    """

    places: list[int]
    constant: float


#: The largest number of variables whose quadratic form replaces a sum of squares. For more variables,
#: the rows of the squares become new variables.
MAX_QUADRATIC_VARIABLES = 400


def assembled(cones: Cones, objective: Affine) -> Assembled:
    """The program as numbers.

    Squares that only the objective uses become its quadratic part; other squares become cones.
    """
    rows, const, kinds = objective.entries()
    _check(kinds, OVER)
    q = np.zeros(cones.columns)
    q[: rows.shape[1]] = rows.toarray()[0]
    used = cones.used()
    for powers in cones.powers_:
        if used[powers.columns].any() or q[powers.columns].any():
            cones.stated(powers)
    total = ConicObjective(q, float(const[0]))
    for squares in cones.squares_:
        costs = total.q[squares.columns]
        if used[squares.columns].any() or (costs < 0).any():
            cones.stated(squares)
        else:
            total.expand(cones, squares)
    n = cones.columns
    A, b, kinds_of_cones, starts = _conditions(cones.blocks, n)
    P = sparse.triu(total.form(n), format="csc")
    return Assembled(P, total.linear(n), A, b, kinds_of_cones, starts, total.constant)


class ConicObjective:
    """An objective q.z + 1/2 z'Pz + constant, to which squares are added one record at a time.

    forms  terms of P
    """

    def __init__(self, q: np.ndarray, constant: float) -> None:
        self.q = q
        self.constant = constant
        self.forms: list[sparse.csr_matrix] = []

    def expand(self, cones: Cones, squares: Powers) -> None:
        """Replace variables t_k >= |u_k|^2 of the linear part by the squares themselves.

        u = rows z + const, and sum_k w_k |u_k|^2 adds 2 rows'W rows to P, 2 rows'W const to q.
        """
        weights = np.repeat(self.q[squares.columns], squares.size)
        self.q[squares.columns] = 0.0
        positive = weights > 0
        rows = squares.rows[positive]
        const = squares.const[positive]
        weights = weights[positive]
        variables = np.count_nonzero(np.bincount(rows.indices))
        if variables > MAX_QUADRATIC_VARIABLES and rows.nnz > 2 * rows.shape[0]:
            u = cones.variable((rows.shape[0],))
            cones.zero(_exact(rows, const) - u)
            self.q = self.linear(cones.columns)
            rows = u.rows
            const = np.zeros(rows.shape[0])
        self.q[: rows.shape[1]] += 2 * (rows.T @ (weights * const))
        self.constant += float(weights @ const**2)
        weighted_squares = rows.T @ sparse.diags_array(weights) @ rows
        self.forms.append((2 * weighted_squares).tocsr())

    def linear(self, n: int) -> np.ndarray:
        """q for all n variables."""
        return np.concatenate([self.q, np.zeros(n - len(self.q))])

    def form(self, n: int) -> sparse.csc_matrix:
        """P for all n variables."""
        P = sparse.csc_matrix((n, n))
        for form in self.forms:
            term = form.tocoo()
            P = P + sparse.csc_matrix((term.data, (term.row, term.col)), shape=(n, n))
        return P


def _conditions(
    blocks: Sequence[ConeBlock], n: int
) -> tuple[sparse.csc_matrix, np.ndarray, list[tuple[str, int, float]], list[int]]:
    """A, b and the cones of A z + s = b, s in cones, and the first row of each block."""
    matrices = [sparse.csr_matrix((0, n))]
    sides = [np.zeros(0)]
    cones: list[tuple[str, int, float]] = []
    starts = []
    first = 0
    for block in blocks:
        count = len(block.const)
        starts.append(first)
        first += count
        matrices.append(-widened(block.rows, n))
        sides.append(block.const)
        if block.kind in ("zero", "nonneg"):
            cones.append((block.kind, count, 0.0))
        else:
            cones += [(block.kind, block.size, block.power)] * (count // block.size)
    return sparse.vstack(matrices, format="csc"), np.concatenate(sides), cones, starts


def _unit(places: np.ndarray) -> sparse.csr_matrix:
    """The matrix that selects the variables at some ascending places."""
    shape = (len(places), int(places[-1]) + 1)
    count = len(places)
    return sparse.csr_matrix((np.ones(count), (np.arange(count), places)), shape=shape)
