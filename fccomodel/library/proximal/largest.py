"""The maximum entry and means of the largest entries: support functions of the simplex and the
capped simplex."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import TYPE_CHECKING

from fccomodel.library.proximal._base import Proximal
from fccomodel.library.reductions import Reduction
from fccomodel.library.reductions.max import MAX

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True, eq=False)
class Largest(Proximal):
    """f(u) = max of q.u over {0 <= q <= cap, sum q = 1}.

    The mean of the m largest of n entries has cap = 1/m. An entry of -inf is left out.

    kind   the reduction of the entries that f is
    level  the value of its option
    """

    kind: Reduction = MAX
    level: float = 1.0

    @classmethod
    def of(cls, kind: Reduction = MAX, level: float = 1.0, rank: int = 1) -> Largest:
        """The function for a reduction, its level and rank."""
        where = "the simplex" if kind.extreme else "the capped simplex"
        how = f"the projection on {where}, by sorting (Moreau's identity)"
        return cls(kind=kind, level=level, rank=rank, lipschitz=1.0, diameter=sqrt(2), how=how)

    def value_text(self, u: str, dims: tuple[int, ...]) -> str:
        """The text of the maximum or of the tail mean."""
        if self.kind.extreme:
            return f"({u}).amax({dims})"
        return f"largest_mean({u}, {self.cap(u, dims)}, {_dim(dims)})"

    def cap(self, u: str, dims: tuple[int, ...]) -> str:
        """The text of the largest weight of an entry."""
        assert self.kind.program_cap is not None
        return f"{self.kind.program_cap.__name__}({u}, {self.level!r}, {dims})"

    def slope_text(self, x: str, lam: str, dims: tuple[int, ...]) -> str:
        """The text of the projection of x / lam onto the (capped) simplex."""
        return self.weights_text(x, f"{x} / {lam}", dims)

    def centred_text(self, t: str, lam: str, c: str, dims: tuple[int, ...]) -> str:
        """The text of the projection of t / lam + c onto the (capped) simplex."""
        return self.weights_text(t, f"{t} / {lam}" + (f" + {c}" if c else ""), dims)

    def weights_text(self, t: str, point: str, dims: tuple[int, ...]) -> str:
        """The text of the nearest point of the (capped) simplex."""
        if self.kind.extreme:
            return f"onto_simplex({point}, {_dim(dims)})"
        return f"onto_capped_simplex({point}, {self.cap(t, dims)}, {_dim(dims)})"

    def envelope_from(
        self, y: str, t: str, lam: str, c: str, dims: tuple[int, ...], factor: str = ""
    ) -> str | None:
        """The text of y.t - lam/2 |y - c|^2, since f* is 0 on its domain, with any factor."""
        return f"support_value({t}, {y}, {c or '0'}, {lam}, {_dim(dims)})"

    def conjugate(self, y: torch.Tensor) -> torch.Tensor:
        """The indicator of the (capped) simplex: 0 inside, inf elsewhere."""
        from fccomodel.library.proximal._base import evaluated

        cap = 1.0 if self.kind.extreme else evaluated(self.cap("y", self.dims), {"y": y})
        inside = (y >= -1e-9).all(-1) & (y <= cap + 1e-9).all(-1) & ((y.sum(-1) - 1).abs() <= 1e-9)
        return y.new_zeros(inside.shape).masked_fill(~inside, inf)

    @property
    def dual(self) -> str:
        """The words for an indicator."""
        return "0 on"

    @property
    def domain(self) -> str:
        """The (capped) simplex, in words."""
        if self.kind.extreme:
            return "the simplex"
        return "the simplex with entries at most 1/m, m the number of entries averaged"


def _dim(dims: tuple[int, ...]) -> str:
    if len(dims) == 1:
        return str(dims[0])
    return str(dims)
