"""The smallest element of a set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fccomodel.library.reductions import _extreme
from fccomodel.library.reductions.base import ONE, Elements, Options, Reduction, always, among
from fccomodel.library.reductions.max import slope_max

if TYPE_CHECKING:
    import torch


def reduce_min(x, dim, mask=None):
    """The minimum along ``dim`` of the elements that the mask keeps."""
    return (x if mask is None else x.masked_fill(mask == 0, float("inf"))).amin(dim)


def slope_min(x, y, dim, mask=None):
    """The derivative of a minimum y over x: 1 shared by the elements that attain it."""
    return slope_max(x, y, dim, mask)


def _value(x: Elements, options: Options) -> torch.Tensor:
    return -1.0 * x.top(-1.0)


MIN = Reduction(
    name="min",
    meaning="the least element",
    tex=r"1 \min_{<over>} <body:2>",
    scalar="`min` orders or multiplies numbers.",
    value=_value,
    slope=_extreme.slope,
    kinked=True,
    program=reduce_min,
    program_slope=slope_min,
    curvature=always("concave"),
    increasing=True,
    homogeneous=True,
    comonotone=True,
    range=among,
    lipschitz=always(ONE),
    sampled=True,
    opposite="max",
    cap=_extreme.cap,
    rule="minimum",
    law="The least of concave functions is concave; it has kinks where they change places.",
    words={"fix": "bound each member by a constraint of its own."},
)
