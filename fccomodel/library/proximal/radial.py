"""Functions of the Euclidean norm, whose prox moves along the ray of its argument."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from fccomodel.library.proximal._base import Proximal

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True, eq=False)
class Radial(Proximal):
    """The function phi(|u|) for an even phi.

    The slope at x is phi's at |x|, times x/|x| (Beck, First-Order Methods, theorem 6.18).
    """

    inner: Proximal

    @classmethod
    def of(cls, inner: Proximal, rank: int = 1) -> Radial:
        """The radial function of phi on arrays of this rank."""
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
        """The text of phi at the Euclidean norm."""
        return self.inner.value_text(f"torch.linalg.vector_norm({u}, dim={dims})", ())

    def slope_text(self, x: str, lam: str, dims: tuple[int, ...]) -> str:
        """The text of phi's slope along the ray of x."""
        return f"along_ray(lambda r: {self.inner.slope_text('r', lam, ())}, {x}, {dims})"

    def conjugate(self, y: torch.Tensor) -> torch.Tensor | None:
        """The conjugate of phi at the Euclidean norm."""
        return self.inner.conjugate(y.square().sum(self.dims).sqrt())

    @property
    def domain(self) -> str:
        """The ball of phi's slopes, in words."""
        if self.lipschitz == inf:
            return "everything"
        return f"the Euclidean ball of radius {self.lipschitz:g}"
