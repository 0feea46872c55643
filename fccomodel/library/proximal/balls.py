"""Norms: by Moreau's identity, the slope of the envelope is the projection of x/lam on the unit ball of the dual norm."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import TYPE_CHECKING

from fccomodel.library.proximal._base import Proximal

if TYPE_CHECKING:
    import torch

#: norm -> (its dual ball, in words; the ball's projection; the norm; the dual norm, for the conjugate)
BALLS = {
    "norm2": ("the Euclidean ball", "onto_ball({x}, {dims})", "{u}.square().sum({dims}).sqrt()", "norm2"),
    "norm_fro": ("the Euclidean ball", "onto_ball({x}, {dims})", "{u}.square().sum({dims}).sqrt()", "norm_fro"),
    "norm1": ("the box [-1, 1]", "{x}.clamp(-1, 1)", "{u}.abs().sum({dims})", "norminf"),
    "norminf": ("the cross-polytope", "onto_cross_polytope({x}, {dims})", "{u}.abs().amax({dims})", "norm1"),
    "norm_nuc": (
        "the spectral ball",
        "onto_spectral_ball({x})",
        "torch.linalg.svdvals({u}).sum(-1)",
        "spectral",
    ),
    "spectral": ("", "", "torch.linalg.svdvals({u}).amax(-1)", ""),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Norm(Proximal):
    """``norm``: an atom of ``BALLS``; ``group``: the sum of the norms of consecutive groups of so many entries (0: none)."""

    norm: str
    group: int = 0

    @classmethod
    def of(cls, norm: str, shape: tuple[int | str, ...], group: int = 0) -> Norm:
        """A norm of arrays of this shape (names: sizes that are not known)."""
        sizes = [n if isinstance(n, int) else inf for n in shape]
        count = {"norm1": _product(sizes), "norm_nuc": min(sizes)}.get(norm, 1.0)
        if group:
            count = sizes[0] / group
        where = f"the product of {BALLS[norm][0]}s of {group} entries" if group else BALLS[norm][0]
        way = ", by a singular value decomposition" if norm == "norm_nuc" else ""
        how = f"the projection on the dual ball: {where}{way} (Moreau's identity)"
        return cls(norm=norm, group=group, rank=len(shape), lipschitz=sqrt(count), diameter=2 * sqrt(count), how=how)

    def value_text(self, u: str, dims: tuple[int, ...]) -> str:
        return self.measure(self.norm, u, dims)

    def measure(self, norm: str, u: str, dims: tuple[int, ...]) -> str:
        if self.group:
            parts = BALLS[norm][2].format(u=f"{_bracketed(u)}.unflatten(-1, (-1, {self.group}))", dims=-1)
            return f"{parts}.sum(-1)"
        return BALLS[norm][2].format(u=_bracketed(u), dims=dims)

    def slope_text(self, x: str, lam: str, dims: tuple[int, ...]) -> str:
        return self.ball_text(f"{x} / {lam}", dims)

    def centred_text(self, t: str, lam: str, c: str, dims: tuple[int, ...]) -> str:
        return self.ball_text(f"{t} / {lam}" + (f" + {c}" if c else ""), dims)

    def ball_text(self, point: str, dims: tuple[int, ...]) -> str:
        """The nearest point of the dual ball."""
        if self.group:
            return BALLS[self.norm][1].format(x=f"({point}).unflatten(-1, (-1, {self.group}))", dims=-1) + ".flatten(-2)"
        return BALLS[self.norm][1].format(x=f"({point})" if self.norm == "norm1" else point, dims=dims)

    def envelope_text(self, t: str, lam: str, c: str, dims: tuple[int, ...]) -> str:
        return f"support_value({t}, {self.centred_text(t, lam, c, dims)}, {c or '0'}, {lam}, {dims})"

    def conjugate(self, y: torch.Tensor) -> torch.Tensor:
        """0 in the dual ball, inf elsewhere."""
        from fccomodel.library.proximal._base import _run

        if self.group:
            size = y.unflatten(-1, (-1, self.group)).square().sum(-1).sqrt().amax(-1)
        else:
            size = _run(self.measure(BALLS[self.norm][3], "y", self.dims), {"y": y})
        return (size * 0).masked_fill(size > 1 + 1e-9, inf)

    @property
    def dual(self) -> str:
        return "0 on"

    @property
    def domain(self) -> str:
        where = BALLS[self.norm][0]
        return f"{where} in each group" if self.group else where


def _bracketed(text: str) -> str:
    return text if text.isidentifier() else f"({text})"


def _product(sizes: list[float]) -> float:
    total = 1.0
    for n in sizes:
        total *= n
    return total
