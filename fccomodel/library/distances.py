"""Distances between all rows of two tables, without their differences. The emitter copies it."""

from __future__ import annotations

from fccomodel.core.lazy import torch


def squared_distances(u, v):
    """|u_i - v_j|^2 for all rows of u (n, k) and v (m, k), by |u|^2 + |v|^2 - 2 u.v of rows moved to the middle of v, one product
    of matrices; from their differences where that would cancel, so that the relative error is some 1e4 roundings at most."""
    centre = v.detach().mean(0)
    u, v = u - centre, v - centre
    uu, vv = u.square().sum(-1), v.square().sum(-1)
    left = torch.cat([-2 * u, uu[:, None], torch.ones_like(uu)[:, None]], 1)
    right = torch.cat([v, torch.ones_like(vv)[:, None], vv[:, None]], 1)
    distances = left @ right.T
    near = torch.finfo(u.dtype).eps ** 0.25 * (uu + vv.max()) if len(vv) else uu
    rows, columns = (distances.detach() < near.detach()[:, None]).nonzero(as_tuple=True)
    if len(rows):
        distances = distances.index_put_((rows, columns), (u[rows] - v[columns]).square().sum(-1))
    return distances
