"""The least-squares problem that chooses multipliers and weights of kinks: a few dense rows and many
sparse ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from fccomodel.numerics.min_norm import Matrix
from fccomodel.report.kkt.groups import Array, Group, Simple

#: Entries from which on a matrix with many zeros is held as a sparse one.
SPARSE_FROM = 100_000
#: Share of entries other than 0 below which a large matrix is held as a sparse one.
SPARSE_SHARE = 0.05


class LinearOperator(Protocol):
    """A matrix, by its products."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(rows, columns)."""
        ...

    @property
    def T(self) -> Any:
        """The transpose."""
        ...

    def __matmul__(self, z: Array, /) -> Array: ...


@dataclass(frozen=True, eq=False, kw_only=True)
class Squares:
    """Minimise half the sum of these squares, z in the groups' sets:

        matrix z + offset                                  after ``tangent``: a gradient (d)
        sum of rate z over the z owned by k, + constant    error of function k's subgradients
        diagonal z                                         multipliers times values of constraints

    tangent   maps a gradient to the part that no normal of the variables' simple sets can cancel;
              None if there are no such sets
    """

    matrix: LinearOperator
    offset: Array
    owner: Array
    rate: Array
    constant: Array
    diagonal: Array
    groups: Sequence[Group] = ()
    tangent: Callable[[Array], Array] | None = None

    @property
    def size(self) -> int:
        """The number of unknowns."""
        return len(self.rate)

    @property
    def dense(self) -> bool:
        """Whether the matrix is known by its entries."""
        return isinstance(self.matrix, np.ndarray)

    def residual(self, z: Array) -> Array:
        """All numbers that are squared, in one vector."""
        slope = self.matrix @ z + self.offset
        if self.tangent is not None:
            slope = self.tangent(slope)
        missed = np.bincount(self.owner, self.rate * z, len(self.constant)) + self.constant
        return np.concatenate([slope, missed, self.diagonal * z])

    def pulled(self, rest: Array) -> Array:
        """The gradient in z, from the residual."""
        first = len(self.offset)
        second = first + len(self.constant)
        slope, missed, products = np.split(rest, [first, second])
        return self.matrix.T @ slope + self.rate * missed[self.owner] + self.diagonal * products

    def stacked(self) -> tuple[Matrix, Array]:
        """(M, b) with the same squares |M z + b|^2: M sparse if most of its entries are 0, else with at
        most one row more than columns."""
        nonzero = np.flatnonzero(self.diagonal)
        owned = np.bincount(self.owner, self.rate != 0, len(self.constant))
        used = np.flatnonzero((owned > 0) | (self.constant != 0))
        offset = np.concatenate([self.offset, self.constant[used], np.zeros(len(nonzero))])
        matrix = np.asarray(self.matrix)
        if matrix.size > SPARSE_FROM and np.count_nonzero(matrix) < SPARSE_SHARE * matrix.size:
            return self._sparse(matrix, used, nonzero), offset
        missed = np.zeros((len(self.constant), self.size))
        missed[self.owner, np.arange(self.size)] = self.rate
        products = np.zeros((len(nonzero), self.size))
        products[np.arange(len(nonzero)), nonzero] = self.diagonal[nonzero]
        return _compressed(np.concatenate([matrix, missed[used], products]), offset)

    def _sparse(self, matrix: Array, used: Array, nonzero: Array) -> Matrix:
        """The rows of all squares as a sparse matrix: those of the matrix, of the errors of some functions'
        subgradients, and of the products that are not 0."""
        from scipy import sparse

        missed = sparse.csr_array(
            (self.rate, (self.owner, np.arange(self.size))), shape=(len(self.constant), self.size)
        )
        products = sparse.diags_array(self.diagonal, format="csr")
        parts = [sparse.csr_array(matrix), missed[used], products[nonzero]]
        stacked: Matrix = sparse.vstack(parts, format="csr")
        return stacked

    def compressed(self) -> Squares:
        """An equivalent problem with at most one dense row more than unknowns."""
        if self.tangent is not None or not self.dense:
            return self
        matrix, offset = _compressed(np.asarray(self.matrix), self.offset)
        return replace(self, matrix=matrix, offset=offset)

    def scaled(self, scale: Array) -> Squares:
        """The problem in the unknowns z / scale, without its groups."""
        matrix: LinearOperator
        if isinstance(self.matrix, np.ndarray):
            matrix = self.matrix * scale
        else:
            matrix = ScaledColumns(self.matrix, scale)
        return replace(self, matrix=matrix, rate=self.rate * scale, diagonal=self.diagonal * scale, groups=())

    def restricted(self, places: Array) -> Squares:
        """The problem in the unknowns at these places, without its groups; all others are 0."""
        return replace(
            self,
            matrix=np.asarray(self.matrix)[:, places],
            owner=self.owner[places],
            rate=self.rate[places],
            diagonal=self.diagonal[places],
            groups=(),
        )

    def homogeneous(self) -> Squares:
        """The problem without the constants of its squares."""
        return replace(self, offset=np.zeros(len(self.offset)), constant=np.zeros(len(self.constant)))

    def over_groups(self, groups: Sequence[Group]) -> Squares:
        """The problem with these sets of the unknowns."""
        return replace(self, groups=groups)

    def over(self, tangent: Callable[[Array], Array]) -> Squares:
        """The problem for the gradients after the map ``tangent``."""
        return replace(self, tangent=tangent)

    def extended(self, columns: Array, free: Array) -> Squares:
        """The problem with more unknowns, one for each of these columns of the matrix; each is at least
        0, or of any sign if ``free``."""
        more = np.zeros(len(free))
        groups = self.groups
        if len(free):
            groups = [*groups, Simple(at=self.size + np.arange(len(free)), free=free)]
        return replace(
            self,
            matrix=np.concatenate([np.asarray(self.matrix), columns], 1),
            owner=np.concatenate([self.owner, more.astype(int)]),
            rate=np.concatenate([self.rate, more]),
            diagonal=np.concatenate([self.diagonal, more]),
            groups=groups,
        )

    def norms(self, draws: int = 8) -> Array:
        """The norms of the columns. For a matrix known by its products they are estimates from random
        combinations of its rows."""
        if isinstance(self.matrix, np.ndarray):
            squares = (self.matrix**2).sum(0)
        else:
            random = np.random.default_rng(0)
            rows = (self.matrix.T @ random.choice([-1.0, 1.0], len(self.offset)) for _ in range(draws))
            squares = np.asarray(sum(row**2 for row in rows)) / draws
        return np.sqrt(squares + self.rate**2 + self.diagonal**2)


@dataclass(frozen=True, eq=False)
class ProductOperator:
    """A matrix by two functions: it times z, and its transpose times a vector."""

    shape: tuple[int, ...]
    times: Callable[[Array], Array]
    transposed: Callable[[Array], Array]

    def __matmul__(self, z: Array) -> Array:
        return self.times(z)

    @property
    def T(self) -> ProductOperator:
        """The transpose."""
        return ProductOperator(self.shape[::-1], self.transposed, self.times)


class ScaledColumns(ProductOperator):
    """A matrix whose columns are multiplied by a scale."""

    def __init__(self, matrix: LinearOperator, scale: Array):
        super().__init__(matrix.shape, lambda z: matrix @ (scale * z), lambda rest: scale * (matrix.T @ rest))


def _compressed(matrix: Array, offset: Array) -> tuple[Array, Array]:
    """Fewer rows that give the same norms of ``matrix z + offset``."""
    if len(offset) <= matrix.shape[1] + 1:
        return matrix, offset
    stacked: Array = np.asarray(np.linalg.qr(np.column_stack([matrix, offset]), mode="r"))
    return stacked[:, :-1], stacked[:, -1]
