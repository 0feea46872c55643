"""The conditional value at risk: the mean of the worst share of the elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fccomodel.library.atoms import Interval
from fccomodel.library.reductions import tails
from fccomodel.library.reductions.base import ONE, Option, Options, Reduction, always, among
from fccomodel.library.reductions.tails import counted, tail_mean, tail_weights

if TYPE_CHECKING:
    import torch


def reduce_cvar(x, dim, tail, mask=None):
    """The mean of the largest ``tail`` fraction along ``dim``, the boundary element counted in part."""
    return tail_mean(x, dim, tail * counted(x, dim, mask), mask)


def slope_cvar(x, y, dim, tail, mask=None):
    """The derivative of a tail mean y over x: equal weights for the largest, the remainder for the
    next."""
    return tail_weights(x, dim, tail * counted(x, dim, mask), mask)


def cap_cvar(x, tail, dims):
    """The largest weight of an entry of x, among the entries above -inf."""
    return 1 / (tail * (x > float("-inf")).sum(dims, keepdim=True).to(x.dtype))


def _cap(n: torch.Tensor, options: Options) -> torch.Tensor:
    return 1 / (options["tail"] * n)


CVAR = Reduction(
    name="cvar",
    meaning="the mean of the largest share `tail` of the elements, the boundary element counted in part",
    tex=r"\operatorname{CVaR}_{<tail>}^{<over>}\left[<body>\right]",
    binders=("in", "~"),
    option=Option(name="tail", example="0.1", domain=(Interval(0.0, 1.0, lo_open=True),)),
    scalar="`cvar` orders or multiplies numbers.",
    value=tails.value(_cap),
    slope=tails.slope,
    kinked=True,
    program=reduce_cvar,
    program_slope=slope_cvar,
    curvature=always("convex"),
    increasing=True,
    homogeneous=True,
    comonotone=True,
    range=among,
    lipschitz=always(ONE),
    sampled=True,
    worst=True,
    cap=_cap,
    program_cap=cap_cvar,
    rule="tail mean",
    law=tails.LAW,
    cite="Rockafellar and Uryasev, Optimization of conditional value-at-risk, 2000",
)
