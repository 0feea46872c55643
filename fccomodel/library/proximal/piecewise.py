"""Piecewise linear-quadratic functions of one number. Everything is exact; the slope is a sum of
clamps."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from fccomodel.library.piecewise import PiecewiseLQ
from fccomodel.library.proximal._base import Proximal

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True, eq=False)
class Piecewise(Proximal):
    """A function given by its ``graph``: the subdifferential as a polyline."""

    graph: PiecewiseLQ

    @classmethod
    def of(cls, graph: PiecewiseLQ) -> Piecewise:
        """The function with this graph."""
        low, high = graph.slopes
        how = "piecewise linear-quadratic: exact, from its breakpoints"
        if graph.weak:
            how += f"; weakly convex, so for lambda < 1/rho = {1 / graph.weak:.4g}"
        return cls(graph=graph, lipschitz=graph.lipschitz, weak=graph.weak, diameter=high - low, how=how)

    def value_text(self, u: str, dims: tuple[int, ...]) -> str:
        """The text of f."""
        return self.graph.value_text(u)

    def slope_text(self, x: str, lam: str, dims: tuple[int, ...]) -> str:
        """The text of the sum of clamps."""
        return self.graph.gradient_text(lam, x)

    def envelope_text(self, t: str, lam: str, c: str, dims: tuple[int, ...]) -> str:
        """The integral of the clamps at t + lam c, less lam/2 c^2."""
        text = self.graph.envelope_text(lam, f"({t} + {lam} * {c})" if c else t)
        if c:
            return f"{text} - {lam} / 2 * {c}.square()"
        return text

    def envelope_from(
        self, y: str, t: str, lam: str, c: str, dims: tuple[int, ...], factor: str = ""
    ) -> str | None:
        """The text of y t - lam/2 (y - c)^2 if the only kink is at 0 and f is linear on both sides: then
        f* is 0 on its domain. None for other functions, whose envelope is an integral of clamps."""
        if not self.graph.homogeneous:
            return None
        if c:
            return f"{y} * {t} - {lam} / 2 * ({y} - {c}).square()"
        return f"{y} * {t} - {lam} / 2 * {y}.square()"

    def conjugate(self, y: torch.Tensor) -> torch.Tensor | None:
        """The conjugate by swapping the axes of the graph; None if f is not convex."""
        import torch

        if self.weak:
            return None
        low, high = self.graph.slopes
        value = self.graph.conjugate().value(y.clamp(low, high).cpu().double().numpy())
        return torch.from_numpy(value).to(y).masked_fill((y < low - 1e-9) | (y > high + 1e-9), inf)

    @property
    def dual(self) -> str:
        """The form of the conjugate, in words."""
        return "piecewise linear-quadratic on"

    @property
    def domain(self) -> str:
        """The interval of slopes, in words."""
        low, high = self.graph.slopes
        if (low, high) != (-inf, inf):
            return f"[{low:g}, {high:g}]".replace("[-inf", "(-inf").replace("inf]", "inf)")
        return "all reals"
