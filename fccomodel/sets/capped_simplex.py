"""The capped simplex, the dual set of the conditional value at risk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fccomodel.atoms import Interval
from fccomodel.sets._base import SimpleSet, distance_on_line, sums

if TYPE_CHECKING:
    import torch


def project_capped_simplex(v: torch.Tensor, alpha: float) -> torch.Tensor:
    """clip(v - t, 0, 1/(alpha n)) for the n entries of a vector, t such that they sum to 1.

    The sum is piecewise linear in t and bends where an entry leaves 0 (t = v) or meets the cap (t = v - cap).
    """
    n = v.shape[-1]
    cap = 1 / (alpha * n)
    bends, slopes = v.repeat(2), v.new_ones(2 * n)
    bends[n:] -= cap
    slopes[n:] = -1
    bends, order = bends.sort(descending=True)
    slopes = slopes[order].cumsum(0)
    sums = v.new_zeros(2 * n)
    sums[1:] = (slopes[:-1] * (bends[:-1] - bends[1:])).cumsum(0)
    last = ((sums < 1).sum() - 1).clamp(min=0)
    t = bends.take(last) - (1 - sums.take(last)) / slopes.take(last).clamp(min=1)
    return (v - t).clamp(0, cap)


def _contains(w: torch.Tensor, alpha: float, tolerance: float = 0.0) -> bool:
    cap = 1 / (float(alpha) * w.shape[-1])
    return bool(((w >= -tolerance) & (w <= cap + tolerance)).all()) and abs(float(w.sum()) - 1) <= max(tolerance, 1e-12)


def _normal_distance(s: torch.Tensor, w: torch.Tensor, alpha: float, tolerance: float = 0.0) -> torch.Tensor:
    """Normals equal one number between the bounds, are at most that where w = 0 and at least that at the cap."""
    cap = 1 / (float(alpha) * w.shape[-1])
    zero, full = (w <= tolerance).to(s.dtype), (w >= cap - tolerance).to(s.dtype)
    return distance_on_line(s, 1 - (zero + full).clamp(max=1), zero * (1 - full), full)


def _support(s: torch.Tensor, alpha: float) -> torch.Tensor:
    """The mean of the largest alpha n entries."""
    n = s.shape[-1]
    left = 1 - s.new_ones(n).cumsum(0).sub(1) / (float(alpha) * n)
    return (s.sort(descending=True).values * left.clamp(0, 1 / (float(alpha) * n))).sum()


def _active(w: torch.Tensor, alpha: float, tolerance: float) -> tuple[torch.Tensor, torch.Tensor]:
    return (w <= tolerance) | (w >= 1 / (float(alpha) * w.shape[-1]) - tolerance), sums(w)


def _empty(shape: tuple, alpha: float) -> str:
    if shape and shape[-1] == 0:
        return "A simplex without entries has no point whose sum is 1."
    if not 0 < float(alpha) <= 1:
        return f"With alpha = {float(alpha):g}, entries of at most 1/(alpha n) do not sum to 1; alpha lies in (0, 1]."
    return ""


capped_simplex = SimpleSet(
    name="capped_simplex",
    meaning="0 <= w <= 1/(alpha n), sum(w) == 1, for n entries",
    arguments=("alpha",),
    project=project_capped_simplex,
    contains=_contains,
    normal_distance=_normal_distance,
    support=_support,
    empty=_empty,
    entries=lambda alpha: Interval(0.0, 1.0),
    active=_active,
)
