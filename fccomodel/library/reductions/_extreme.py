"""The common parts of the maximum and the minimum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fccomodel.library.reductions.base import Elements, Options, Slope

if TYPE_CHECKING:
    import torch


def slope(x: Elements, y: torch.Tensor, options: Options) -> Slope:
    """The derivative: weight 1, shared by the elements that attain the extreme."""
    ties = x.total(lambda e, here: (e == here.at(y)).to(e.dtype))
    return Slope(lambda e, here: (e == here.at(y)).to(e.dtype) / here.at(ties))


def cap(n: torch.Tensor, options: Options) -> torch.Tensor:
    """The largest weight: one element may have all of it."""
    return n.new_ones(())
