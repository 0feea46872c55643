"""Norms. By Moreau's identity the envelope's slope is the projection of x/lam onto the unit ball of
the dual norm."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import TYPE_CHECKING

from fccomodel.library.atoms import DualBall
from fccomodel.library.proximal._base import Proximal

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True, eq=False)
class Norm(Proximal):
    """A norm, or a sum of norms of groups.

    ball   the unit ball of the dual norm
    group  the number of entries of each consecutive group; 0: no groups
    """

    ball: DualBall
    group: int = 0

    @classmethod
    def of(cls, ball: DualBall, shape: tuple[int | str, ...], group: int = 0) -> Norm:
        """The norm of arrays of this shape (a name: a size that is not known)."""
        sizes = [n if isinstance(n, int) else inf for n in shape]
        if group:
            length = sqrt(sizes[0] / group)
        else:
            length = ball.length(sizes)
        if group:
            where = f"the product of {ball.words}s of {group} entries"
        else:
            where = ball.words
        if ball.kind in ("spectral", "nuclear"):
            way = ", by a singular value decomposition"
        elif ball.kind == "spectraplex":
            way = ", by the eigenvalues"
        else:
            way = ""
        how = f"the projection on the dual ball: {where}{way} (Moreau's identity)"
        return cls(ball=ball, group=group, rank=len(shape), lipschitz=length, diameter=2 * length, how=how)

    def value_text(self, u: str, dims: tuple[int, ...]) -> str:
        """The text of the norm."""
        return self.measure(self.ball.norm, u, dims)

    def measure(self, text: str, u: str, dims: tuple[int, ...]) -> str:
        """The text of a norm given by a template, summed over groups."""
        if self.group:
            parts = text.format(u=f"{_bracketed(u)}.unflatten(-1, (-1, {self.group}))", dims=-1)
            return f"{parts}.sum(-1)"
        return text.format(u=_bracketed(u), dims=dims)

    def slope_text(self, x: str, lam: str, dims: tuple[int, ...]) -> str:
        """The text of the projection of x / lam onto the dual ball."""
        return self.ball_text(f"{x} / {lam}", dims)

    def centred_text(self, t: str, lam: str, c: str, dims: tuple[int, ...]) -> str:
        """The text of the projection of t / lam + c onto the dual ball."""
        return self.ball_text(f"{t} / {lam}" + (f" + {c}" if c else ""), dims)

    def ball_text(self, point: str, dims: tuple[int, ...]) -> str:
        """The text of the nearest point of the dual ball."""
        if self.group:
            return (
                self.ball.project.format(x=f"({point}).unflatten(-1, (-1, {self.group}))", dims=-1)
                + ".flatten(-2)"
            )
        return self.ball.project.format(x=f"({point})" if self.ball.kind == "box" else point, dims=dims)

    def envelope_from(
        self, y: str, t: str, lam: str, c: str, dims: tuple[int, ...], factor: str = ""
    ) -> str | None:
        """The text of y.t - lam/2 |y - c|^2, since f* is 0 on its domain, with any factor."""
        return f"support_value({t}, {y}, {c or '0'}, {lam}, {dims})"

    def conjugate(self, y: torch.Tensor) -> torch.Tensor:
        """The indicator of the dual ball: 0 inside, inf elsewhere."""
        from fccomodel.library.proximal._base import evaluated

        if self.group:
            size = y.unflatten(-1, (-1, self.group)).square().sum(-1).sqrt().amax(-1)
        else:
            size = evaluated(self.measure(self.ball.dual, "y", self.dims), {"y": y})
        return (size * 0).masked_fill(size > 1 + 1e-9, inf)

    @property
    def dual(self) -> str:
        """The words for an indicator."""
        return "0 on"

    @property
    def domain(self) -> str:
        """The dual ball, in words."""
        where = self.ball.words
        if self.group:
            return f"{where} in each group"
        return where


def _bracketed(text: str) -> str:
    if text.isidentifier():
        return text
    return f"({text})"
