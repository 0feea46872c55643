"""The largest element of a set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fccomodel.library.reductions import _extreme
from fccomodel.library.reductions.base import ONE, Elements, Options, Reduction, always, among

if TYPE_CHECKING:
    import torch


def reduce_max(x, dim, mask=None):
    """The maximum along ``dim`` of the elements that the mask keeps."""
    return (x if mask is None else x.masked_fill(mask == 0, float("-inf"))).amax(dim)


def slope_max(x, y, dim, mask=None):
    """The derivative of a maximum y over x: 1 shared by the elements that attain it."""
    if mask is None:
        hit = (x == y).to(x.dtype)
    else:
        hit = (x == y) * mask
    return hit / hit.sum(dim, keepdim=True)


def _value(x: Elements, options: Options) -> torch.Tensor:
    return x.top()


MAX = Reduction(
    name="max",
    meaning="the largest element",
    tex=r"1 \max_{<over>} <body:2>",
    scalar="`max` orders or multiplies numbers.",
    value=_value,
    slope=_extreme.slope,
    kinked=True,
    program=reduce_max,
    program_slope=slope_max,
    curvature=always("convex"),
    increasing=True,
    homogeneous=True,
    comonotone=True,
    range=among,
    lipschitz=always(ONE),
    sampled=True,
    worst=True,
    opposite="min",
    cap=_extreme.cap,
    rule="maximum",
    law="The largest of (weakly) convex functions is (weakly) convex; it has kinks where they change places.",
)
