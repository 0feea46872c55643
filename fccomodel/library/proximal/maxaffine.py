"""The maximum of affine functions of a vector, by a small quadratic program over the simplex."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import TYPE_CHECKING

from fccomodel.library.proximal._base import Proximal
from fccomodel.library.proximal.operations import literal

if TYPE_CHECKING:
    import torch

#: The largest number of pieces. All 2^pieces faces of the simplex are tried.
MAX_PIECES = 8


@dataclass(frozen=True, kw_only=True, eq=False)
class MaxAffine(Proximal):
    """f(u) = max_k a_k.u + b_k.

    The slope is y = A' q, where q maximises q.(A x + b) - lam/2 |A' q|^2 over the simplex (by
    active sets).
    """

    rows: tuple[tuple[float, ...], ...]
    b: tuple[float, ...]

    @classmethod
    def of(cls, rows: Sequence[Sequence[float]], b: Sequence[float]) -> MaxAffine | str:
        """The function, or why it has no prox here: the number of faces doubles with every
        piece."""
        if len(rows) > MAX_PIECES:
            return (
                f"a maximum of {len(rows)} affine functions that overlap: only up to {MAX_PIECES} are gone "
                "through"
            )
        slopes = tuple(tuple(map(float, row)) for row in rows)
        lengths = [sqrt(sum(c * c for c in row)) for row in slopes]
        apart = [sqrt(sum((p - q) ** 2 for p, q in zip(r, s, strict=True))) for r in slopes for s in slopes]
        how = (
            "the largest of affine functions: the quadratic program of its dual, over every face of "
            "the simplex"
        )
        return cls(
            rows=slopes, b=tuple(map(float, b)), rank=1, lipschitz=max(lengths), diameter=max(apart), how=how
        )

    def value_text(self, u: str, dims: tuple[int, ...]) -> str:
        """The text of the maximum."""
        return f"({u} @ {literal(self.rows, u)}.T + {literal(self.b, u)}).amax(-1)"

    def slope_text(self, x: str, lam: str, dims: tuple[int, ...]) -> str:
        """The text of the search over all faces of the simplex."""
        return f"steepest_mix({x}, {literal(self.rows, x)}, {literal(self.b, x)}, {lam})"

    def conjugate(self, y: torch.Tensor) -> torch.Tensor | None:
        """The minimum of -b.q over q in the simplex with A' q = y; inf outside the hull of the
        rows."""
        from scipy.optimize import linprog

        flat = y.reshape(-1, y.shape[-1])
        equal = [[*column] for column in zip(*self.rows, strict=True)] + [[1.0] * len(self.rows)]
        values = []
        for point in flat.tolist():
            solution = linprog([-v for v in self.b], A_eq=equal, b_eq=[*point, 1.0], bounds=(0, None))
            values.append(solution.fun if solution.status == 0 else inf)
        return y.new_tensor(values).reshape(y.shape[:-1])

    @property
    def domain(self) -> str:
        """The hull of the coefficients, in words."""
        return "the convex hull of the pieces' coefficients"
