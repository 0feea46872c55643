"""Functions of the Euclidean norm: the prox moves along the ray of its argument."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from fccomodel.library.proximal._base import Proximal

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True, eq=False)
class Radial(Proximal):
    """phi(|u|) for an even phi: the slope at x is phi's at |x|, times x/|x| (Beck, First-Order
    Methods, theorem 6.18)."""

    inner: Proximal

    @classmethod
    def of(cls, inner: Proximal, rank: int = 1) -> Radial:
        return cls(
            inner=inner,
            rank=rank,
            lipschitz=inner.lipschitz,
            weak=inner.weak,
            diameter=inner.diameter,
            tolerance=inner.tolerance,
            how=f"along the ray of the argument: {inner.how}",
        )

    def value_text(self, u: str, dims: tuple[int, ...]) -> str:
        return self.inner.value_text(f"(({u}).square().sum({dims}).sqrt())", ())

    def slope_text(self, x: str, lam: str, dims: tuple[int, ...]) -> str:
        return f"along_ray(lambda r: {self.inner.slope_text('r', lam, ())}, {x}, {dims})"

    def conjugate(self, y: torch.Tensor) -> torch.Tensor | None:
        return self.inner.conjugate(y.square().sum(self.dims).sqrt())

    @property
    def domain(self) -> str:
        if self.lipschitz == inf:
            return "everything"
        return f"the Euclidean ball of radius {self.lipschitz:g}"
