"""Sums and means: what reductions that are linear in their elements share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fccomodel.library.reductions.base import Elements, Options, Slope

if TYPE_CHECKING:
    import torch

#: The law of every mean.
AVERAGE = "An average keeps the curvature, the constants and the smoothness of its members."


def total(x: Elements, options: Options) -> torch.Tensor:
    """sum e"""
    return x.total()


def mean(x: Elements, options: Options) -> torch.Tensor:
    """sum e / n"""
    return x.total() / x.count


def slope_of_total(x: Elements, y: torch.Tensor, options: Options) -> Slope:
    """1"""
    return Slope()


def slope_of_mean(x: Elements, y: torch.Tensor, options: Options) -> Slope:
    """1 / n"""
    return Slope(over=x.count)
