"""Squared distances between all rows of two tables, by products of matrices. Programs carry this
source."""

from __future__ import annotations

import torch


def middle(v):
    """The mean of the rows of v."""
    return v.detach().mean(0)


def beside(v, centre):
    """The columns v - centre, 1 and |v - centre|^2 for rows v (m, k)."""
    v = v - centre
    vv = v.square().sum(-1, keepdim=True)
    return torch.cat([v, torch.ones_like(vv), vv], 1)


class Distances(torch.autograd.Function):
    """|u'_i - v'_j|^2 of rows (n, k) and of ``right`` (m, k + 2), as ``beside`` returns it.

    The gradient is two products of matrices as well. Its cancellation error near equal rows is no
    larger than that of rounding the rows.
    """

    @staticmethod
    def forward(ctx, u, right):
        """The distances; those that would cancel are computed from differences."""
        uu = u.square().sum(-1, keepdim=True)
        distances = torch.cat([-2 * u, uu, torch.ones_like(uu)], 1) @ right.T
        if len(right):
            near = torch.finfo(u.dtype).eps ** 0.25 * (uu + right[:, -1].max())
        else:
            near = uu
        rows, columns = near_pairs(distances < near)
        if len(rows):
            distances.index_put_((rows, columns), (u[rows] - right[columns, :-2]).square().sum(-1))
        ctx.save_for_backward(u, right)
        return distances

    @staticmethod
    def backward(ctx, adjoint):
        """The gradients in u and in ``right``."""
        u, right = ctx.saved_tensors
        uu = u.square().sum(-1, keepdim=True)
        left = torch.cat([-2 * u, uu, torch.ones_like(uu)], 1)
        products = (right.mT.contiguous() @ adjoint.mT).mT
        return 2 * (u * products[:, -2:-1] - products[:, :-2]), (left.mT @ adjoint).mT


def near_pairs(close):
    """Rows and columns of the true entries of a sparse boolean matrix, read as words of eight."""
    if close.numel() % 8 or not close.numel():
        return close.nonzero(as_tuple=True)
    every = close.flatten()
    some = every.view(torch.int64).nonzero()
    places = every.view(-1, 8)[some[:, 0]].nonzero()
    at = 8 * some[places[:, 0], 0] + places[:, 1]
    return at // close.shape[1], at % close.shape[1]


def squared_distances(u, right, centre):
    """|u_i - v_j|^2 for all rows of u (n, k) and v (m, k); ``right`` is ``beside(v, centre)``.

    By |u'|^2 + |v'|^2 - 2 u'.v' of rows moved to the middle of v, one product of matrices. Where
    that would cancel, from the differences, so that the relative error is about 1e4 roundings at
    most.
    """
    return Distances.apply(u - centre, right)
