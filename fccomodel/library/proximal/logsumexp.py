"""The function theta log sum exp(u/theta), whose conjugate is the entropy on the simplex."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import TYPE_CHECKING

from fccomodel.library.proximal._base import Proximal

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True, eq=False)
class LogSumExp(Proximal):
    """f(u) = theta log sum exp(u/theta), or with the mean in place of the sum.

    f*(q) = theta sum q log q on the simplex (mean: + theta log n).
    """

    theta: float = 1.0
    mean: bool = False

    @classmethod
    def of(cls, theta: float = 1.0, mean: bool = False) -> LogSumExp:
        """The function with temperature ``theta``."""
        how = "Newton's method for the multiplier of the simplex, with entropy"
        return cls(theta=theta, mean=mean, rank=1, lipschitz=1.0, diameter=sqrt(2), tolerance=1e-10, how=how)

    def value_text(self, u: str, dims: tuple[int, ...]) -> str:
        """The text of the log-sum-exp, less theta log n for the mean."""
        text = f"{self.theta!r} * torch.logsumexp({u} / {self.theta!r}, {dims})"
        if self.mean:
            return f"{text} - {self.theta!r} * math.log({u}[..., :].shape[-1])"
        return text

    def slope_text(self, x: str, lam: str, dims: tuple[int, ...]) -> str:
        """The text of the maximiser over the simplex, by Newton's method."""
        return f"entropic_simplex({x}, {self.theta!r}, {lam}, {dims[0] if len(dims) == 1 else dims})"

    def conjugate(self, y: torch.Tensor) -> torch.Tensor:
        """theta times the negative entropy on the simplex, inf elsewhere."""
        import torch

        inside = (y >= -1e-9).all(-1) & ((y.sum(-1) - 1).abs() <= 1e-9)
        if self.mean:
            shift = y.shape[-1]
        else:
            shift = 1
        entropy = torch.special.xlogy(y.clamp(min=0), y.clamp(min=0) * shift).sum(-1)
        return (self.theta * entropy).masked_fill(~inside, inf)

    @property
    def dual(self) -> str:
        """The negative entropy, in words."""
        if self.theta == 1:
            scale = ""
        else:
            scale = f"{self.theta:g} "
        return f"{scale}sum of s log {'(n s)' if self.mean else 's'} on"

    @property
    def domain(self) -> str:
        """The simplex, in words."""
        return "the simplex"
