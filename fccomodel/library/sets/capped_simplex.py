"""The capped simplex, the dual set of the conditional value at risk."""

from __future__ import annotations

import math

from fccomodel.core.lazy import torch
from fccomodel.library.atoms import Interval
from fccomodel.library.cones import Affine, Cones
from fccomodel.library.sets.base import Normals, SimpleSet, sums, tangent_to_sum, without_entries


def project_capped(v: torch.Tensor, cap: float | torch.Tensor) -> torch.Tensor:
    """clip(v - t, 0, cap) along the last axis, t such that the entries sum to 1; entries of -inf
    become 0.

    With v measured from its m-th largest entry, m = ceil(1/cap), t lies in [-cap, 0], so that
    entries beyond -cap and cap are as good as there. The sum is piecewise linear in t and bends
    where an entry leaves 0 (t = v) or meets the cap (t = v - cap); between the two bends around 1,
    t is read off. ``cap``: one for all, or one for each row (last axis of length 1).
    """
    n, eps = v.shape[-1], torch.finfo(v.dtype).eps
    cap = (cap + v.new_zeros(1)).expand(*v.shape[:-1], 1)
    m = ((1 - 4 * eps) / cap).ceil().clamp(1, n).long()
    v = v - v.sort(-1, descending=True).values.gather(-1, m - 1)
    v = v.clamp(-cap, cap)
    bends, order = torch.cat([v, v - cap], -1).sort(-1, descending=True)
    slopes = (1 - 2 * (order >= n).to(v.dtype)).cumsum(-1)
    sums = torch.nn.functional.pad((slopes[..., :-1] * -bends.diff(dim=-1)).cumsum(-1), (1, 0))
    k = ((sums < 1).sum(-1, keepdim=True) - 1).clamp(0, 2 * n - 2)
    left, right = bends.gather(-1, k + 1), bends.gather(-1, k)
    middle = (left + right) / 2
    full, free = (v >= middle + cap).to(v.dtype), ((v > middle) & (v < middle + cap)).to(v.dtype)
    count = free.sum(-1, keepdim=True)
    t = ((v * free + cap * full).sum(-1, keepdim=True) - 1) / count
    return (v - torch.where(count == 0, left, t.clamp(left, right))).clamp(min=0).clamp(max=cap)


def project_capped_simplex(v: torch.Tensor, alpha: float) -> torch.Tensor:
    """The nearest point whose n entries, of the last axis, lie in [0, 1/(alpha n)] and sum to 1."""
    return project_capped(v, 1 / (alpha * v.shape[-1]))


def _contains(w: torch.Tensor, alpha: float, tolerance: float = 0.0) -> bool:
    cap = 1 / (float(alpha) * w.shape[-1])
    inside = bool(((w >= -tolerance) & (w <= cap + tolerance)).all())
    return inside and float((w.sum(-1) - 1).abs().max()) <= max(tolerance, 1e-12)


def _normals(w: torch.Tensor, alpha: float, tolerance: float = 0.0) -> Normals:
    full = w >= 1 / (float(alpha) * w.shape[-1]) - tolerance
    return Normals(low=(w <= tolerance) & ~full, high=full, rows=sums(w), equation=True)


def _tangent(s: torch.Tensor, w: torch.Tensor, alpha: float, tolerance: float = 0.0) -> torch.Tensor:
    """The nearest tangent direction.

    Normals equal one number between the bounds, are at most that where w = 0 and at least that at
    the cap.
    """
    return tangent_to_sum(s, _normals(w, alpha, tolerance))


def _support(s: torch.Tensor, alpha: float) -> torch.Tensor:
    """The support function: the mean of the largest alpha n entries; for a matrix, the sum over its
    rows."""
    n = s.shape[-1]
    left = 1 - s.new_ones(n).cumsum(0).sub(1) / (float(alpha) * n)
    return (s.sort(descending=True).values * left.clamp(0, 1 / (float(alpha) * n))).sum()


def _cone(k: Cones, w: Affine, alpha: float) -> None:
    k.nonneg(w)
    k.nonneg(1 / (alpha * w.shape[-1]) - w)
    k.zero(w.sum(-1) - 1.0)


capped_simplex = SimpleSet(
    name="capped_simplex",
    meaning="0 <= w <= 1/(alpha n), sum(w) == 1, for n entries; of a matrix, each row",
    tex=r"\Delta^{<shape>}_{<0>}",
    arguments=("alpha",),
    project=project_capped_simplex,
    contains=_contains,
    normals=_normals,
    tangent=_tangent,
    support=_support,
    domain=(Interval(0.0, 1.0, lo_open=True),),
    amiss=without_entries,
    cone=_cone,
    entries=lambda alpha: Interval(0.0, 1.0),
    length=lambda shape, alpha: math.sqrt(math.prod(shape[:-1])),
    cap=lambda n, alpha: 1 / (float(alpha) * n),
)
