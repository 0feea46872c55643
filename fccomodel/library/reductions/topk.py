"""The mean of the k largest elements."""

from __future__ import annotations

from math import inf

from fccomodel.core.lazy import torch
from fccomodel.library.atoms import Interval
from fccomodel.library.reductions import tails
from fccomodel.library.reductions.base import ONE, Option, Options, Reduction, always, among
from fccomodel.library.reductions.tails import at_most, counted, tail_mean, tail_weights


def reduce_topk(x, dim, k, mask=None):
    """The mean of the ``k`` largest elements along ``dim``, or of all if there are fewer."""
    return tail_mean(x, dim, at_most(k, counted(x, dim, mask)), mask)


def slope_topk(x, y, dim, k, mask=None):
    """The derivative of ``reduce_topk``: equal weights for the largest elements."""
    return tail_weights(x, dim, at_most(k, counted(x, dim, mask)), mask)


def cap_topk(x, k, dims):
    """The largest weight of an entry of x, among the entries above -inf."""
    return 1 / (x > float("-inf")).sum(dims, keepdim=True).to(x.dtype).clamp(max=k)


def _cap(n: torch.Tensor, options: Options) -> torch.Tensor:
    return 1 / torch.minimum(n, torch.as_tensor(options["k"], dtype=n.dtype))


TOPK = Reduction(
    name="topk",
    meaning="the mean of the k largest elements, of all where there are fewer",
    tex=r"\operatorname*{top}_{<over>}^{<k>}\left(<body>\right)",
    option=Option(name="k", example="3", domain=(Interval(1.0, inf),), counts=(0,)),
    scalar="`topk` orders or multiplies numbers.",
    value=tails.value(_cap),
    slope=tails.slope,
    kinked=True,
    program=reduce_topk,
    program_slope=slope_topk,
    curvature=always("convex"),
    increasing=True,
    homogeneous=True,
    comonotone=True,
    range=among,
    lipschitz=always(ONE),
    worst=True,
    cap=_cap,
    program_cap=cap_topk,
    rule="tail mean",
    law=tails.LAW,
)
