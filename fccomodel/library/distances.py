"""Distances between all rows of two tables, without their differences. The emitter copies it."""

from __future__ import annotations

from fccomodel.core.lazy import torch


def middle(v):
    """The middle of the rows of v."""
    return v.detach().mean(0)


def beside(v, centre):
    """What distances to the rows of v (m, k) need of them: v' = v - centre, 1 and |v'|^2, side by side."""
    v = v - centre
    vv = v.square().sum(-1, keepdim=True)
    return torch.cat([v, torch.ones_like(vv), vv], 1)


def squared_distances(u, right, centre):
    """|u_i - v_j|^2 for all rows of u (n, k) and v (m, k), of which ``right`` is ``beside(v, centre)``, by |u'|^2 + |v'|^2 -
    2 u'.v' of rows moved to the middle of v, one product of matrices; from their differences where that would cancel, so that
    the relative error is some 1e4 roundings at most."""
    u = u - centre
    uu = u.square().sum(-1, keepdim=True)
    distances = torch.cat([-2 * u, uu, torch.ones_like(uu)], 1) @ right.T
    near = torch.finfo(u.dtype).eps ** 0.25 * (uu.detach() + right[:, -1].detach().max()) if len(right) else uu.detach()
    rows, columns = (distances.detach() < near).nonzero(as_tuple=True)
    if len(rows):
        distances = distances.index_put_((rows, columns), (u[rows] - right[columns, :-2]).square().sum(-1))
    return distances
