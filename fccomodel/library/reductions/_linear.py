"""The common parts of sums and means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fccomodel.library.reductions.base import Elements, Options, Slope

if TYPE_CHECKING:
    import torch

#: The law of every mean.
AVERAGE = "An average keeps the curvature, the constants and the smoothness of its members."


def total(x: Elements, options: Options) -> torch.Tensor:
    """The sum of the elements e."""
    return x.total()


def mean(x: Elements, options: Options) -> torch.Tensor:
    """The mean sum e / n."""
    return x.total() / x.count


def slope_of_total(x: Elements, y: torch.Tensor, options: Options) -> Slope:
    """The derivative 1 of a sum."""
    return Slope()


def slope_of_mean(x: Elements, y: torch.Tensor, options: Options) -> Slope:
    """The derivative 1 / n of a mean."""
    return Slope(over=x.count)
