"""A conic program under construction: variables, and what its affine functions must satisfy.

    minimise  q.z + sum_k c_k |u_k(z)|^2   s.t.   affine functions of z in cones
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from fccomodel.solver.conic.affine import EXACT, OVER, UNDER, Affine, NotConic, constant, joined, stacked, widened


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of affine functions in one kind of cone: as many cones of ``size`` rows each.

    kind   zero, nonneg, second_order, exponential or power (with ``power``: its exponent)
    """

    kind: str
    rows: sparse.csr_matrix
    const: np.ndarray
    size: int = 1
    power: float = 0.5


@dataclass(frozen=True, eq=False)
class Squares:
    """t_k >= |u_k|^2 for the rows u_k of an array: ``first`` is t's first column."""

    first: int
    count: int
    rows: sparse.csr_matrix
    const: np.ndarray
    size: int


class Cones:
    """What atoms, reductions and sets state of their arguments (see ``library.cones``)."""

    def __init__(self) -> None:
        self.columns = 0
        self.blocks: list[Block] = []
        self.squares_: list[Squares] = []

    # ------------------------------------------------------------------------------------------------------------ variables
    def variable(self, shape: Sequence[int]) -> Affine:
        """New variables."""
        count = math.prod(shape)
        place = np.arange(count)
        rows = sparse.csr_matrix((np.ones(count), (place, self.columns + place)), shape=(count, self.columns + count))
        self.columns += count
        return Affine(rows, np.zeros(count), np.full(count, EXACT, dtype=np.int8), place.reshape(shape))

    # ---------------------------------------------------------------------------------------------------------- conditions
    def nonneg(self, u: Affine) -> int:
        """u >= 0, entry by entry; where u is an estimate, it is a lower one. Gives the place of the block."""
        return self._add("nonneg", u, UNDER)

    def zero(self, u: Affine) -> int:
        """u == 0; u is exact."""
        return self._add("zero", u, EXACT)

    def second_order(self, t: Any, u: Affine) -> int:
        """t >= |u|_2 along u's last dim."""
        parts = [_affine(t), *(u.select(-1, k) for k in range(u.shape[-1]))]
        return self._cone("second_order", parts, (UNDER, *[EXACT] * u.shape[-1]))

    def exponential(self, x: Any, y: Any, z: Any) -> int:
        """y exp(x / y) <= z, y > 0."""
        return self._cone("exponential", [_affine(x), _affine(y), _affine(z)], (OVER, EXACT, UNDER))

    def power(self, x: Any, y: Any, z: Any, exponent: float) -> int:
        """x^a y^(1-a) >= |z| for an exponent a in (0, 1)."""
        return self._cone("power", [_affine(x), _affine(y), _affine(z)], (UNDER, UNDER, EXACT), exponent)

    def quotient(self, t: Any, y: Any, u: Any) -> int:
        """t y >= u^2, y >= 0."""
        t, y, u = _affine(t), _affine(y), _affine(u)
        return self.second_order(t + y, stacked([t - y, u * 2.0]))

    def squares(self, u: Affine) -> Affine:
        """Upper estimates of |u|^2 along the last dim."""
        if not u.exact:
            raise NotConic("the square of an estimate")
        t = self.variable(u.shape[:-1])
        rows, const, _ = u.entries()
        self.squares_.append(Squares(int(self.columns - t.numel()), t.numel(), rows, const, u.shape[-1]))
        return t.upper()

    def norm_of(self, u: Affine) -> Affine | None:
        """The roots of sums c + sum_k c_k |u_k|^2 without negative c, from above; None of anything else."""
        rows, const, _ = u.entries()
        if (const < 0).any() or (rows.data < 0).any():
            return None
        t = self.variable((len(const),))
        for k, level in enumerate(const):
            row = rows[[k]]
            entries = [(int(column), float(weight)) for column, weight in zip(row.indices, row.data, strict=True) if weight]
            parts = [part for entry in entries if (part := self._root(*entry)) is not None]
            if not parts or len(parts) < len(entries):
                return None
            self.second_order(t[k], joined([*parts, constant(np.array([level**0.5]))]))
        return t.upper().reshape(u.shape)

    def _root(self, column: int, weight: float) -> Affine | None:
        """Of an estimate of |u|^2, u times the root of a weight."""
        for squares in self.squares_:
            if squares.first <= column < squares.first + squares.count:
                first = (column - squares.first) * squares.size
                part = slice(first, first + squares.size)
                exact = np.zeros(squares.size, dtype=np.int8)
                return Affine(squares.rows[part], squares.const[part], exact, np.arange(squares.size)) * weight**0.5
        return None

    # -------------------------------------------------------------------------------------------------------------- helpers
    def _add(self, kind: str, u: Affine, allowed: int) -> int:
        rows, const, kinds = u.entries()
        _check(kinds, allowed)
        self.blocks.append(Block(kind, rows, const))
        return len(self.blocks) - 1

    def _cone(self, kind: str, parts: list[Affine], allowed: Sequence[int], power: float = 0.5) -> int:
        shape = np.broadcast_shapes(*(part.index.shape for part in parts))
        for part, kinds in zip(parts, allowed, strict=True):
            _check(part.kind[part.index].ravel(), kinds)
        whole = stacked([part.laid(np.broadcast_to(part.index, shape)) for part in parts])
        rows, const, _ = whole.entries()
        self.blocks.append(Block(kind, rows, const, len(parts), power))
        return len(self.blocks) - 1


def _affine(value: Any) -> Affine:
    return value if isinstance(value, Affine) else constant(np.asarray(value, dtype=np.float64))


def _check(kinds: np.ndarray, allowed: int) -> None:
    """Estimates are on the side where what holds for them holds for what they estimate."""
    if ((kinds != EXACT) & (kinds != allowed)).any():
        raise NotConic("a convex function where only a concave or affine one keeps the problem convex, or the reverse")


@dataclass(frozen=True, eq=False)
class Assembled:
    """minimise 1/2 z'Pz + q.z s.t. A z + s = b, s in the cones in order; ``places``: each block's first row."""

    P: sparse.csc_matrix
    q: np.ndarray
    A: sparse.csc_matrix
    b: np.ndarray
    cones: list[tuple[str, int, float]]
    places: list[int]
    constant: float


#: A sum of squares becomes a quadratic form of its variables where these are at most so many, else of new ones.
DENSE = 400


def assembled(cones: Cones, objective: Affine) -> Assembled:
    """The program as numbers. Squares that the objective alone asks for are in its quadratic part, others are cones."""
    rows, const, kinds = objective.entries()
    _check(kinds, OVER)
    q = np.zeros(cones.columns)
    q[: rows.shape[1]] = rows.toarray()[0]
    total = float(const[0])
    used = np.zeros(cones.columns, dtype=bool)
    for block in cones.blocks:
        used[np.unique(block.rows.indices)] = True
    for squares in cones.squares_:
        used[np.unique(squares.rows.indices)] = True
    quadratic: list[sparse.csr_matrix] = []
    for squares in list(cones.squares_):
        places = np.arange(squares.first, squares.first + squares.count)
        weights = np.repeat(q[places], squares.size)
        if used[places].any() or (weights < 0).any():
            t = Affine(_unit(places), np.zeros(len(places)), np.zeros(len(places), dtype=np.int8), np.arange(len(places)))
            index = np.arange(len(squares.const)).reshape(squares.count, squares.size)
            u = Affine(squares.rows, squares.const, np.zeros(len(squares.const), dtype=np.int8), index)
            cones.second_order(t + 1.0, Affine(*_beside(u * 2.0, t + -1.0)))
            continue
        q[places] = 0.0
        u_rows, u_const, keep = squares.rows, squares.const, weights > 0
        u_rows, u_const, weights = u_rows[keep], u_const[keep], weights[keep]
        if len(np.unique(u_rows.indices)) > DENSE and u_rows.nnz > 2 * u_rows.shape[0]:
            fresh = cones.variable((u_rows.shape[0],))
            cones.zero(Affine(u_rows, u_const, np.zeros(len(u_const), dtype=np.int8), np.arange(len(u_const))) - fresh)
            q = np.concatenate([q, np.zeros(u_rows.shape[0])])
            u_rows, u_const = fresh.rows, np.zeros(u_rows.shape[0])
        q[: u_rows.shape[1]] += 2 * (u_rows.T @ (weights * u_const))
        total += float(weights @ u_const**2)
        quadratic.append((2 * (u_rows.T @ sparse.diags_array(weights) @ u_rows)).tocsr())
    n = cones.columns
    P = sparse.csc_matrix((n, n))
    for part in quadratic:
        part = part.tocoo()
        P = P + sparse.csc_matrix((part.data, (part.row, part.col)), shape=(n, n))
    q = np.concatenate([q, np.zeros(n - len(q))])
    matrices, sides, kinds_, places_ = [], [], [], []
    first = 0
    for block in cones.blocks:
        places_.append(first)
        first += len(block.const)
        matrices.append(-widened(block.rows, n))
        sides.append(block.const)
        if block.kind in ("zero", "nonneg"):
            kinds_.append((block.kind, len(block.const), 0.0))
        else:
            kinds_ += [(block.kind, block.size, block.power)] * (len(block.const) // block.size)
    A = sparse.vstack(matrices, format="csc") if matrices else sparse.csc_matrix((0, n))
    b = np.concatenate(sides) if sides else np.zeros(0)
    return Assembled(sparse.triu(P, format="csc"), q, A, b, kinds_, places_, total)


def _unit(places: np.ndarray) -> sparse.csr_matrix:
    return sparse.csr_matrix((np.ones(len(places)), (np.arange(len(places)), places)), shape=(len(places), int(places[-1]) + 1))


def _beside(u: Affine, t: Affine) -> tuple[sparse.csr_matrix, np.ndarray, np.ndarray, np.ndarray]:
    """(2u, t - 1) along the last dim: with t + 1 it says that t >= |u|^2."""
    n = max(u.rows.shape[1], t.rows.shape[1])
    rows = sparse.vstack([widened(u.rows, n), widened(t.rows, n)], format="csr")
    index = np.concatenate([u.index, t.index[:, None] + len(u.const)], 1)
    return rows, np.concatenate([u.const, t.const]), np.concatenate([u.kind, t.kind]), index
