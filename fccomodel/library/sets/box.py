"""Bounds on every entry: numbers, or tensors of the variable's shape, infinite where there is no bound."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from fccomodel.library.atoms import Interval, OrderCondition
from fccomodel.library.cones import Affine, Cones
from fccomodel.library.sets.base import Normals, SimpleSet, bounds

if TYPE_CHECKING:
    import torch


def project_box(v: torch.Tensor, low: float | torch.Tensor, high: float | torch.Tensor) -> torch.Tensor:
    """Each entry is moved to the nearer end if it lies outside."""
    return v.clamp(min=low).clamp(max=high)


def _contains(w: torch.Tensor, low: Any, high: Any, tolerance: float = 0.0) -> bool:
    return bool(((w >= low - tolerance) & (w <= high + tolerance)).all())


def _normals(w: torch.Tensor, low: Any, high: Any, tolerance: float = 0.0) -> Normals:
    return Normals(low=w <= low + tolerance, high=w >= high - tolerance, rows=w.new_zeros((0, w.numel())))


def _tangent(s: torch.Tensor, w: torch.Tensor, low: Any, high: Any, tolerance: float = 0.0) -> torch.Tensor:
    """The nearest tangent direction. Normals are <= 0 at the low end, >= 0 at the high end, 0
    between."""
    return s.relu().where(w < high - tolerance, s.new_zeros(())) - (-s).relu().where(
        w > low + tolerance, s.new_zeros(())
    )


def _support(s: torch.Tensor, low: Any, high: Any) -> torch.Tensor:
    zero = s.new_zeros(())
    return (s * high).where(s > 0, (s * low).where(s < 0, zero)).sum()


def _cone(k: Cones, w: Affine, low: Any, high: Any) -> None:
    for end, side in ((low, 1.0), (high, -1.0)):
        at = np.broadcast_to(np.asarray(end, dtype=np.float64), tuple(w.shape)).ravel()
        finite = np.isfinite(at)
        k.nonneg((w.reshape(-1)[finite] - at[finite]) * side)


box = SimpleSet(
    name="box",
    meaning="low <= w <= high",
    tex=r"\left[<0>, <1>\right]^{<shape>}",
    arguments=("low", "high"),
    project=project_box,
    contains=_contains,
    normals=_normals,
    tangent=_tangent,
    support=_support,
    orders=(OrderCondition(0, 1),),
    cone=_cone,
    entries=lambda low, high: Interval(bounds(low, False), bounds(high, True)),
    bounded=lambda low, high: low.hi > -inf and high.lo < inf,
    entrywise=True,
    levels={"norminf": lambda t: (-t, t), "abs": lambda t: (-t, t), "square": lambda t: (-(t**0.5), t**0.5)},
)
