"""log mean exp of pairs under several masks, with exponentials that are computed once for all masks. The
emitter copies it.
"""

from __future__ import annotations

import math

import torch

from fccomodel.algorithms.runtime.helpers.support import log_mean_exp


class Raised(torch.autograd.Function):
    """exp(x - top), 0 at the places along ``dim`` that ``skips`` name."""

    @staticmethod
    def forward(ctx, x, top, dim, *skips):
        """exp(x - top), with 0 at the skipped places."""
        powers = (x - top).exp_()
        for places in skips:
            powers.scatter_(dim, places.expand_as(top), 0.0)
        ctx.save_for_backward(powers)
        ctx.skips = len(skips)
        return powers

    @staticmethod
    def backward(ctx, adjoint):
        """The adjoint times the exponentials."""
        return adjoint * ctx.saved_tensors[0], None, None, *[None] * ctx.skips


def raised(x, dim, *skips):
    """x, its largest entries along ``dim``, and exp(x - largest), which means under several masks share.

    ``skips`` are places along ``dim``, one a line, that all masks leave out. If some largest entry is not
    finite, no exponentials are computed.
    """
    top = x.detach().amax(dim, keepdim=True)
    powers = None
    if bool(top.isfinite().all()):
        powers = Raised.apply(x, top, dim, *skips)
    return x, top, powers, skips


def equals(alike, x):
    """1 where the two are equal, else 0, as numbers like x."""
    one, other = alike
    integers = x.dtype == torch.float64 and not one.is_floating_point()
    exact = one.dtype == x.dtype or (integers and bool((one.abs() < 1 << 53).all()))
    if exact:  # numbers can be compared without a truth value for each pair
        return torch.eq(one.to(x.dtype), other.to(x.dtype), out=torch.empty_like(x, requires_grad=False))
    return (one == other).to(x.dtype).expand_as(x)


def let_through(x, dim, mask, alike, skips):
    """A mask of the entries of x over which a mean is taken."""
    through = torch.ones_like(x, dtype=torch.bool)
    for places in skips:
        through.scatter_(dim, places.expand_as(x.narrow(dim, 0, 1)), False)
    if mask is not None:
        through = through & mask
    if alike is not None:
        through = through & (alike[0] == alike[1])
    return through


def log_mean_raised(values, dim, mask=None, alike=None):
    """log mean exp(x) along ``dim`` over the entries that the mask lets through and at which the two
    tensors ``alike`` are equal.

    It uses the exponentials of ``raised``. Where the entries are so far below the largest one that their
    exponentials vanish, it computes their own.
    """
    x, top, powers, skips = values
    if powers is None:
        out = ~let_through(x, dim, mask, alike, skips)
        return log_mean_exp(x.masked_fill(out, -math.inf), dim)
    least = torch.finfo(x.dtype).tiny ** 0.5
    if alike is None:
        weights = None
    else:
        weights = equals(alike, x)
    if mask is not None:
        if weights is None:
            weights = mask.to(x.dtype).expand_as(x)
        else:
            weights = weights * mask
    if weights is None:
        total = powers.sum(dim)
    else:
        total = torch.linalg.vecdot(powers, weights, dim=dim)
    result = top.squeeze(dim) + total.clamp(min=least).log() - math.log(x.shape[dim])
    rows = (total < least).nonzero(as_tuple=True)
    if len(rows[0]):
        out = ~let_through(x.detach(), dim, mask, alike, skips).movedim(dim, -1)[rows]
        own = x.movedim(dim, -1)[rows].masked_fill(out, -math.inf)
        result = result.index_put(rows, log_mean_exp(own, -1))
    return result
