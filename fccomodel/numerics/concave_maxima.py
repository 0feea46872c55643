"""Maxima of concave functions over a simplex or a capped simplex, and bounds on the distance to them.

Every method maximises many concave functions at once, one for each element of the leading axes;
``slope(q)`` returns their values and supergradients at q.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

#: Steps of ``ascent`` at most.
STEPS = 20_000
#: Relative gap at which a maximum is reached.
TOLERANCE = 1e-12
#: Step halvings of ``ascent`` before an iteration takes the step as it is.
HALVINGS = 60
#: Step length below which the function has a kink; smooth functions allow longer steps.
KINK_STEP = 1e-9
#: Bisections of the multiplier nu in ``additive``, and of each entry for one nu.
MULTIPLIER_BISECTIONS = 100
ENTRY_BISECTIONS = 60
#: Largest dimension in which central cuts shrink an ellipsoid fast enough.
ELLIPSOID_DIMENSION = 16
#: Radius of a ball around any point of a simplex that holds the whole simplex.
RADIUS = 1.5

#: Values and supergradients at q.
Slope = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
#: The projection on the simplex.
Project = Callable[[torch.Tensor], torch.Tensor]


def gap(slope: Slope, furthest: Project, q: torch.Tensor) -> torch.Tensor:
    """An upper bound on max f - f(q), from the tangent plane at q; ``furthest(s)`` maximises s.q."""
    _, s = slope(q)
    return (s * (furthest(s) - q)).sum(-1)


def ascent(slope: Slope, project: Project, q: torch.Tensor, steps: int = STEPS) -> torch.Tensor:
    """argmax of a smooth concave function by FISTA with backtracking and restarts; it stops at a kink."""
    step = torch.ones((*q.shape[:-1], 1), dtype=torch.float64)
    ahead, momentum = q, 1.0
    now, gradient = slope(ahead)
    for _ in range(steps):
        for _ in range(HALVINGS):
            new = project(ahead + step * gradient)
            move = new - ahead
            expected = now + (gradient * move).sum(-1) - (move * move).sum(-1) / (2 * step.squeeze(-1))
            bad = ~(slope(new)[0] >= expected - 1e-14 * (1 + now.abs()))
            if not bool(bad.any()):
                break
            step = torch.where(bad.unsqueeze(-1), step / 2, step)
        if float(step.min()) < KINK_STEP:
            return q
        size = 0.0
        if move.numel():
            size = float((move.abs() / step).max())
        if size < TOLERANCE * (1 + float(gradient.abs().max())):
            return new
        if float(((ahead - new) * (new - q)).sum()) > 0:
            ahead, momentum = q, 1.0
        else:
            following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
            ahead = project(new + (momentum - 1) / following * (new - q))
            q, momentum = new, following
        now, gradient = slope(ahead)
    return q


def additive(slope: Slope, shape: tuple[int, ...], cap: float) -> torch.Tensor:
    """argmax of sum_k f_k(q_k) over 0 <= q <= cap, sum q = 1, for concave f_k.

    Entry k maximises f_k(q) - nu q over [0, cap]. It decreases in nu, and the entries sum to 1 at the
    multiplier nu. nu and the entries are computed by bisection, the entries as accurately as needed to
    compare their sum with 1. If f_k has a kink of slope nu, entry k jumps at nu, and any share of the
    jump is optimal; one share for all entries makes the sum 1.
    """
    start = torch.full(shape, 1 / shape[-1], dtype=torch.float64)
    slopes = slope(start)[1]
    # An entry may jump at an end of the range of nu.
    margin = 1e-3 * (1 + slopes.abs().amax(-1, keepdim=True))
    left = slopes.amin(-1, keepdim=True) - margin
    right = slopes.amax(-1, keepdim=True) + margin
    # Bounds on the entries for every nu between left and right.
    lower = torch.zeros(shape, dtype=torch.float64)
    upper = torch.full(shape, cap, dtype=torch.float64)
    for _ in range(MULTIPLIER_BISECTIONS):
        nu = (left + right) / 2
        low, high = _entries(slope, nu, lower, upper, whole=False)
        above = (low + high).sum(-1, keepdim=True) / 2 > 1
        left = torch.where(above, nu, left)
        right = torch.where(above, right, nu)
        if float((right - left - 1e-16 * (1 + nu.abs())).max()) <= 0:
            break
        lower = torch.where(above, lower, low)
        upper = torch.where(above, high, upper)
    large = torch.stack(_entries(slope, left, lower, upper, whole=True)).mean(0)
    small = torch.stack(_entries(slope, right, lower, upper, whole=True)).mean(0)
    jump = (large - small).sum(-1, keepdim=True)
    missing = 1 - small.sum(-1, keepdim=True)
    share = torch.where(jump > 0, missing / jump.clamp(min=1e-300), torch.zeros_like(jump))
    return small + share.clamp(0, 1) * (large - small)


def _entries(
    slope: Slope, nu: torch.Tensor, low: torch.Tensor, high: torch.Tensor, *, whole: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Bounds on argmax f_k(q) - nu q.

    They are exact if ``whole``, and otherwise as tight as needed to compare their sum with 1.
    """
    for _ in range(ENTRY_BISECTIONS):
        if not whole and bool(((low.sum(-1) > 1) | (high.sum(-1) < 1)).all()):
            break
        middle = (low + high) / 2
        rises = slope(middle)[1] > nu
        low = torch.where(rises, middle, low)
        high = torch.where(rises, high, middle)
    return low, high


def ellipsoid(slope: Slope, project: Project, q: torch.Tensor) -> torch.Tensor:
    """argmax of any concave function, by the ellipsoid method with central cuts.

    The ellipsoid lies in the plane where the entries sum to 1, around q.
    """
    basis = torch.linalg.svd(torch.ones(1, q.shape[-1], dtype=torch.float64)).Vh[1:].mT
    m = basis.shape[-1]
    if not m:
        return q
    spread = torch.eye(m, dtype=torch.float64).expand(*q.shape[:-1], m, m) * RADIUS**2
    centre = best = q
    largest = slope(q)[0]
    bound = torch.full(q.shape[:-1], math.inf, dtype=torch.float64)
    for _ in range(200 * m * (m + 1)):
        inside = project(centre)
        away = centre - inside
        outside = (away.abs().amax(-1, keepdim=True) > 1e-13).to(torch.float64)
        value, gradient = slope(inside)
        normal = (outside * away - (1 - outside) * gradient) @ basis
        along = (spread @ normal.unsqueeze(-1)).squeeze(-1)
        reach = (normal * along).sum(-1).clamp(min=0).sqrt()
        better = value > largest
        largest = torch.where(better, value, largest)
        best = torch.where(better.unsqueeze(-1), inside, best)
        bound = torch.where(outside.squeeze(-1) > 0, bound, torch.minimum(bound, value + reach))
        if bool((bound - largest <= TOLERANCE * (1 + largest.abs())).all()) or float(reach.max()) < 1e-16:
            break
        unit = along / reach.clamp(min=1e-300).unsqueeze(-1)
        centre = centre - (unit / (m + 1)) @ basis.mT
        rank = unit.unsqueeze(-1) * unit.unsqueeze(-2)
        if m == 1:
            spread = spread / 4
        else:
            spread = m**2 / (m**2 - 1) * (spread - 2 / (m + 1) * rank)
    return best
