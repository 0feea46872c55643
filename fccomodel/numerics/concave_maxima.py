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
#: Relative rounding error by which the value after a step may fall short of its lower bound.
ROUNDING = 1e-14
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
#: Iterations of ``ellipsoid`` at most, for each m (m + 1), m being the dimension.
ELLIPSOID_ITERATIONS = 200
#: Distance to the simplex above which a point is outside of it.
OUTSIDE = 1e-13
#: Half the width of an ellipsoid below which it counts as a point.
SMALLEST_REACH = 1e-16

#: Values and supergradients at q.
Slope = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
#: The projection on the simplex.
Project = Callable[[torch.Tensor], torch.Tensor]


def gap(slope: Slope, furthest: Project, q: torch.Tensor) -> torch.Tensor:
    """An upper bound on max f - f(q), from the tangent plane at q; ``furthest(s)`` maximises s.q."""
    _, s = slope(q)
    direction = furthest(s) - q
    return (s * direction).sum(-1)


def ascent(slope: Slope, project: Project, q: torch.Tensor, steps: int = STEPS) -> torch.Tensor:
    """argmax of a smooth concave function by FISTA with backtracking and restarts; it stops at a kink."""
    ahead = q
    momentum = 1.0
    value, gradient = slope(ahead)
    step = torch.ones((*q.shape[:-1], 1), dtype=torch.float64)
    for _ in range(steps):
        for _ in range(HALVINGS):
            new = project(ahead + step * gradient)
            move = new - ahead
            rise = (gradient * move).sum(-1)
            squared_length = (move * move).sum(-1)
            curvature = squared_length / (2 * step.squeeze(-1))
            lower_bound = value + rise - curvature
            new_value, *_ = slope(new)
            tolerance = ROUNDING * (1 + value.abs())
            too_long = ~(new_value >= lower_bound - tolerance)
            if not bool(too_long.any()):
                break
            step = torch.where(too_long.unsqueeze(-1), step / 2, step)
        if float(step.min()) < KINK_STEP:
            return q
        size = 0.0
        if move.numel():
            size = float((move.abs() / step).max())
        if size < TOLERANCE * (1 + float(gradient.abs().max())):
            return new
        goes_back = float(((ahead - new) * (new - q)).sum()) > 0
        if goes_back:
            ahead = q
            momentum = 1.0
        else:
            next_momentum = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
            ahead = project(new + (momentum - 1) / next_momentum * (new - q))
            q = new
            momentum = next_momentum
        value, gradient = slope(ahead)
    return q


def additive(slope: Slope, shape: tuple[int, ...], cap: float) -> torch.Tensor:
    """argmax of sum_k f_k(q_k) over 0 <= q <= cap, sum q = 1, for concave f_k.

    Entry k maximises f_k(q) - nu q over [0, cap]. It decreases in nu, and the entries sum to 1 at the
    multiplier nu. nu and the entries are computed by bisection, the entries as accurately as needed to
    compare their sum with 1. If f_k has a kink of slope nu, entry k jumps at nu, and any share of the
    jump is optimal; one share for all entries makes the sum 1.
    """
    start = torch.full(shape, 1 / shape[-1], dtype=torch.float64)
    _, slopes = slope(start)
    steepest = slopes.abs().amax(-1, keepdim=True)
    # An entry may jump at an end of the range of nu.
    margin = 1e-3 * (1 + steepest)
    left = slopes.amin(-1, keepdim=True) - margin
    right = slopes.amax(-1, keepdim=True) + margin
    # Bounds on the entries for every nu between left and right.
    lower = torch.zeros(shape, dtype=torch.float64)
    upper = torch.full(shape, cap, dtype=torch.float64)
    for _ in range(MULTIPLIER_BISECTIONS):
        nu = (left + right) / 2
        low, high = _entries(slope, nu, lower, upper, whole=False)
        sum_of_entries = (low + high).sum(-1, keepdim=True) / 2
        above = sum_of_entries > 1
        left = torch.where(above, nu, left)
        right = torch.where(above, right, nu)
        width = right - left
        rounding = 1e-16 * (1 + nu.abs())
        excess = width - rounding
        if float(excess.max()) <= 0:
            break
        lower = torch.where(above, lower, low)
        upper = torch.where(above, high, upper)
    largest_entries = _entries(slope, left, lower, upper, whole=True)
    largest = torch.stack(largest_entries).mean(0)
    smallest_entries = _entries(slope, right, lower, upper, whole=True)
    smallest = torch.stack(smallest_entries).mean(0)
    return _between(smallest, largest)


def _between(smallest: torch.Tensor, largest: torch.Tensor) -> torch.Tensor:
    """The entries that go the same share of the way from smallest to largest, so that their sum is 1."""
    jump = largest - smallest
    total_jump = jump.sum(-1, keepdim=True)
    jumps = total_jump > 0
    missing = 1 - smallest.sum(-1, keepdim=True)
    needed = missing / total_jump.clamp(min=1e-300)
    no_share = torch.zeros_like(total_jump)
    share = torch.where(jumps, needed, no_share)
    return smallest + share.clamp(0, 1) * jump


def _entries(
    slope: Slope,
    nu: torch.Tensor,
    low: torch.Tensor,
    high: torch.Tensor,
    *,
    whole: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Bounds on argmax f_k(q) - nu q.

    They are exact if ``whole``, and otherwise as tight as needed to compare their sum with 1.
    """
    for _ in range(ENTRY_BISECTIONS):
        if not whole:
            too_large = low.sum(-1) > 1
            too_small = high.sum(-1) < 1
            compared = too_large | too_small
            if bool(compared.all()):
                break
        middle = (low + high) / 2
        _, slopes = slope(middle)
        rises = slopes > nu
        low = torch.where(rises, middle, low)
        high = torch.where(rises, high, middle)
    return low, high


def ellipsoid(slope: Slope, project: Project, q: torch.Tensor) -> torch.Tensor:
    """argmax of any concave function, by the ellipsoid method with central cuts.

    The ellipsoid {centre + basis y : y' shape^-1 y <= 1} lies in the plane where the entries sum to 1.
    It begins as a ball around q that holds the simplex.
    """
    ones = torch.ones(1, q.shape[-1], dtype=torch.float64)
    basis = torch.linalg.svd(ones).Vh[1:].mT
    m = basis.shape[-1]
    if not m:
        return q
    identity = torch.eye(m, dtype=torch.float64)
    shape = identity.expand(*q.shape[:-1], m, m) * RADIUS**2
    centre = best = q
    largest, _ = slope(q)
    bound = torch.full(q.shape[:-1], math.inf, dtype=torch.float64)
    for _ in range(ELLIPSOID_ITERATIONS * m * (m + 1)):
        inside = project(centre)
        away = centre - inside
        largest_violation = away.abs().amax(-1, keepdim=True)
        outside = (largest_violation > OUTSIDE).to(torch.float64)
        value, gradient = slope(inside)
        cut = outside * away - (1 - outside) * gradient
        normal = cut @ basis
        along = (shape @ normal.unsqueeze(-1)).squeeze(-1)
        squared_reach = (normal * along).sum(-1)
        reach = squared_reach.clamp(min=0).sqrt()
        better = value > largest
        largest = torch.where(better, value, largest)
        best = torch.where(better.unsqueeze(-1), inside, best)
        feasible_bound = torch.minimum(bound, value + reach)
        is_outside = outside.squeeze(-1) > 0
        bound = torch.where(is_outside, bound, feasible_bound)
        tolerance = TOLERANCE * (1 + largest.abs())
        is_largest = bound - largest <= tolerance
        if bool(is_largest.all()) or float(reach.max()) < SMALLEST_REACH:
            break
        unit = along / reach.clamp(min=1e-300).unsqueeze(-1)
        step = (unit / (m + 1)) @ basis.mT
        centre = centre - step
        shape = _cut(shape, unit)
    return best


def _cut(shape: torch.Tensor, unit: torch.Tensor) -> torch.Tensor:
    """The matrix of the smallest ellipsoid that holds half of the given one, cut across ``unit``."""
    m = unit.shape[-1]
    if m == 1:
        return shape / 4
    rank_one = unit.unsqueeze(-1) * unit.unsqueeze(-2)
    flattened = shape - 2 / (m + 1) * rank_one
    growth = m**2 / (m**2 - 1)
    return growth * flattened
