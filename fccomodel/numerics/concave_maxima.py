"""The largest value of a concave function over a simplex (capped or not), smooth or not, and how far
from it a point may be.

All work on many functions at once, one for every element of the leading axes: ``slope(q)`` gives
values and supergradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

#: Largest number of steps of the gradient ascent.
ASCENT_STEPS = 20_000
#: Accuracy at which a maximum is accepted, relative to 1 + |value|.
TOLERANCE = 1e-12
#: A shorter step than this is no smooth function's: the point lies at a kink.
SHORTEST_SMOOTH_STEP = 1e-9
#: Largest dimension for the ellipsoid method: beyond it a cut shrinks the ellipsoid too slowly.
ELLIPSOID_DIMENSION = 16
#: Radius of the first ball: more than the distance of any two points of a simplex.
SIMPLEX_RADIUS = 1.5

Slope = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
Project = Callable[[torch.Tensor], torch.Tensor]


def gap(slope: Slope, furthest: Project, q: torch.Tensor) -> torch.Tensor:
    """An upper bound on the largest value less that at q: what the tangent plane at q allows;
    ``furthest(s)`` maximises s.q."""
    _, s = slope(q)
    return (s * (furthest(s) - q)).sum(-1)


def ascent(slope: Slope, project: Project, q: torch.Tensor, steps: int = ASCENT_STEPS) -> torch.Tensor:
    """argmax of a smooth concave function: FISTA with backtracking and restarts; at a kink it stops."""
    step = torch.ones((*q.shape[:-1], 1), dtype=torch.float64)
    ahead, momentum = q, 1.0
    now, gradient = slope(ahead)
    for _ in range(steps):
        for _ in range(60):
            new = project(ahead + step * gradient)
            move = new - ahead
            bound = now + (gradient * move).sum(-1) - (move * move).sum(-1) / (2 * step.squeeze(-1))
            bad = ~(slope(new)[0] >= bound - 1e-14 * (1 + now.abs()))
            if not bool(bad.any()):
                break
            step = torch.where(bad.unsqueeze(-1), step / 2, step)
        if float(step.min()) < SHORTEST_SMOOTH_STEP:
            return q
        if float((move.abs() / step).max() if move.numel() else 0.0) < TOLERANCE * (
            1 + float(gradient.abs().max())
        ):
            return new
        if float(((ahead - new) * (new - q)).sum()) > 0:
            ahead, momentum = q, 1.0
        else:
            following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
            ahead, q, momentum = project(new + (momentum - 1) / following * (new - q)), new, following
        now, gradient = slope(ahead)
    return q


def additive(slope: Slope, shape: tuple[int, ...], cap: float) -> torch.Tensor:
    """argmax of a sum of concave functions of one entry each over 0 <= q <= cap, sum q = 1.

    Entry k maximises f_k(q) - nu q over [0, cap], which falls in nu; nu is where the entries sum to
    1. Both by bisection: an entry only as far as the sign of the sum less 1 asks for. Where entries
    jump (f_k has a kink's slope nu), any share of the jump is as good, and one share for all makes
    the sum 1.
    """
    start = torch.full(shape, 1 / shape[-1], dtype=torch.float64)
    slopes = slope(start)[1]
    margin = 1e-3 * (1 + slopes.abs().amax(-1, keepdim=True))  # an entry may jump at an end
    left, right = slopes.amin(-1, keepdim=True) - margin, slopes.amax(-1, keepdim=True) + margin
    least, most = torch.zeros(shape, dtype=torch.float64), torch.full(shape, cap, dtype=torch.float64)
    for _ in range(100):
        nu = (left + right) / 2
        low, high = _entries(slope, nu, least, most, whole=False)
        above = (low + high).sum(-1, keepdim=True) / 2 > 1
        left, right = torch.where(above, nu, left), torch.where(above, right, nu)
        if float((right - left - 1e-16 * (1 + nu.abs())).max()) <= 0:
            break
        least, most = (
            torch.where(above, least, low),
            torch.where(above, high, most),
        )  # of entries from ``left`` to ``right``
    many, few = (torch.stack(_entries(slope, nu, least, most, whole=True)).mean(0) for nu in (left, right))
    spare = (many - few).sum(-1, keepdim=True)
    share = torch.where(
        spare > 0, (1 - few.sum(-1, keepdim=True)) / spare.clamp(min=1e-300), torch.zeros_like(spare)
    )
    return few + share.clamp(0, 1) * (many - few)


def _entries(
    slope: Slope, nu: torch.Tensor, low: torch.Tensor, high: torch.Tensor, *, whole: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Bounds on argmax f_k(q) - nu q, exact (``whole``) or as tight as it takes to compare their sum
    with 1."""
    for _ in range(60):
        if not whole and bool(((low.sum(-1) > 1) | (high.sum(-1) < 1)).all()):
            break
        middle = (low + high) / 2
        rises = slope(middle)[1] > nu
        low, high = torch.where(rises, middle, low), torch.where(rises, high, middle)
    return low, high


def ellipsoid(slope: Slope, project: Project, q: torch.Tensor) -> torch.Tensor:
    """argmax of any concave function, cutting the ellipsoid around q that holds it (entries sum to 1)
    through its middle."""
    basis = torch.linalg.svd(torch.ones(1, q.shape[-1], dtype=torch.float64)).Vh[1:].mT
    m = basis.shape[-1]
    if not m:
        return q
    spread, centre, best = (
        torch.eye(m, dtype=torch.float64).expand(*q.shape[:-1], m, m) * SIMPLEX_RADIUS**2,
        q,
        q,
    )
    most, bound = slope(q)[0], torch.full(q.shape[:-1], math.inf, dtype=torch.float64)
    for _ in range(200 * m * (m + 1)):
        near = project(centre)
        away = centre - near
        outside = (away.abs().amax(-1, keepdim=True) > 1e-13).to(torch.float64)
        value, rise = slope(near)
        normal = (outside * away - (1 - outside) * rise) @ basis
        along = (spread @ normal.unsqueeze(-1)).squeeze(-1)
        reach = (normal * along).sum(-1).clamp(min=0).sqrt()
        better = value > most
        most, best = torch.where(better, value, most), torch.where(better.unsqueeze(-1), near, best)
        bound = torch.where(outside.squeeze(-1) > 0, bound, torch.minimum(bound, value + reach))
        if bool((bound - most <= TOLERANCE * (1 + most.abs())).all()) or float(reach.max()) < 1e-16:
            break
        unit = along / reach.clamp(min=1e-300).unsqueeze(-1)
        centre = centre - (unit / (m + 1)) @ basis.mT
        rank = unit.unsqueeze(-1) * unit.unsqueeze(-2)
        if m == 1:
            spread = spread / 4
        else:
            spread = m**2 / (m**2 - 1) * (spread - 2 / (m + 1) * rank)
    return best
