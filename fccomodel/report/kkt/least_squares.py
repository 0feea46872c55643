"""The least squares by which multipliers and weights of kinks are chosen: a sum of a few dense rows
and of sparse ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from fccomodel.report.kkt.groups import Array, Group, Simple


class Linear(Protocol):
    """A matrix, by its products."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def T(self) -> Any: ...

    def __matmul__(self, z: Array, /) -> Array: ...


@dataclass(frozen=True, eq=False, kw_only=True)
class Squares:
    """Minimise half the sum of these squares, z in the groups' sets:

        matrix z + offset                               after ``tangent``: a gradient (d)
        sum of rate z of those that k owns + constant   what the subgradients of function k miss
        diagonal z                                      multipliers times values of constraints

    tangent   the part of a gradient that no normal of the variables' simple sets can cancel; None
              for all of it
    """

    matrix: Linear
    offset: Array
    owner: Array
    rate: Array
    constant: Array
    diagonal: Array
    groups: Sequence[Group] = ()
    tangent: Callable[[Array], Array] | None = None

    @property
    def size(self) -> int:
        return len(self.rate)

    @property
    def dense(self) -> bool:
        return isinstance(self.matrix, np.ndarray)

    def residual(self, z: Array) -> Array:
        """What is squared, one after the other."""
        slope = self.matrix @ z + self.offset
        if self.tangent is None:
            slope = slope
        else:
            slope = self.tangent(slope)
        missed = np.bincount(self.owner, self.rate * z, len(self.constant)) + self.constant
        return np.concatenate([slope, missed, self.diagonal * z])

    def pulled(self, rest: Array) -> Array:
        """The gradient in z, by what is squared."""
        slope, missed, products = np.split(rest, [len(self.offset), len(self.offset) + len(self.constant)])
        return self.matrix.T @ slope + self.rate * missed[self.owner] + self.diagonal * products

    def stacked(self) -> tuple[Array, Array]:
        """(M, b): what is squared is M z + b; of no more rows than M has columns and one."""
        missed = np.zeros((len(self.constant), self.size))
        missed[self.owner, np.arange(self.size)] = self.rate
        kept = np.flatnonzero(self.diagonal)
        products = np.zeros((len(kept), self.size))
        products[np.arange(len(kept)), kept] = self.diagonal[kept]
        used = np.flatnonzero(missed.any(1) | (self.constant != 0))
        matrix = np.concatenate([np.asarray(self.matrix), missed[used], products])
        return _compressed(matrix, np.concatenate([self.offset, self.constant[used], np.zeros(len(kept))]))

    def compressed(self) -> Squares:
        """The same with no more dense rows than unknowns and one."""
        if self.tangent is not None or not self.dense:
            return self
        matrix, offset = _compressed(np.asarray(self.matrix), self.offset)
        return replace(self, matrix=matrix, offset=offset)

    def scaled(self, scale: Array) -> Squares:
        """The same for z / scale; its groups are left out."""
        if isinstance(self.matrix, np.ndarray):
            matrix = self.matrix * scale
        else:
            matrix = Scaled(self.matrix, scale)
        return replace(self, matrix=matrix, rate=self.rate * scale, diagonal=self.diagonal * scale, groups=())

    def over(self, tangent: Callable[[Array], Array]) -> Squares:
        """The same of gradients after ``tangent``."""
        return replace(self, tangent=tangent)

    def extended(self, columns: Array, free: Array) -> Squares:
        """With more unknowns, these columns of the matrix, at least 0 or ``free``."""
        more = np.zeros(len(free))
        groups = (
            [*self.groups, Simple(at=self.size + np.arange(len(free)), free=free)]
            if len(free)
            else self.groups
        )
        return replace(
            self,
            matrix=np.concatenate([np.asarray(self.matrix), columns], 1),
            owner=np.concatenate([self.owner, more.astype(int)]),
            rate=np.concatenate([self.rate, more]),
            diagonal=np.concatenate([self.diagonal, more]),
            groups=groups,
        )

    def norms(self, draws: int = 8) -> Array:
        """The norms of the columns; of a matrix known by its products, estimates from random rows."""
        if isinstance(self.matrix, np.ndarray):
            squares = (self.matrix**2).sum(0)
        else:
            random = np.random.default_rng(0)
            rows = (self.matrix.T @ random.choice([-1.0, 1.0], len(self.offset)) for _ in range(draws))
            squares = np.asarray(sum(row**2 for row in rows)) / draws
        return np.sqrt(squares + self.rate**2 + self.diagonal**2)


@dataclass(frozen=True, eq=False)
class Products:
    """A matrix by two functions: it times z, and its transpose times a vector."""

    shape: tuple[int, ...]
    times: Callable[[Array], Array]
    transposed: Callable[[Array], Array]

    def __matmul__(self, z: Array) -> Array:
        return self.times(z)

    @property
    def T(self) -> Products:
        return Products(self.shape[::-1], self.transposed, self.times)


class Scaled(Products):
    """A matrix whose columns are multiplied by a scale."""

    def __init__(self, matrix: Linear, scale: Array):
        super().__init__(matrix.shape, lambda z: matrix @ (scale * z), lambda rest: scale * (matrix.T @ rest))


def _compressed(matrix: Array, offset: Array) -> tuple[Array, Array]:
    """Fewer rows with the same norms."""
    if len(offset) <= matrix.shape[1] + 1:
        return matrix, offset
    stacked: Array = np.asarray(np.linalg.qr(np.column_stack([matrix, offset]), mode="r"))
    return stacked[:, :-1], stacked[:, -1]
