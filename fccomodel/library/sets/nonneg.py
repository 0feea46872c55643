"""The nonnegative orthant."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from fccomodel.library.atoms import Interval
from fccomodel.library.sets.base import Normals, SimpleSet, everywhere

if TYPE_CHECKING:
    import torch


def project_nonneg(v: torch.Tensor) -> torch.Tensor:
    """Negative entries become 0."""
    return v.relu()


def _normals(w: torch.Tensor, tolerance: float = 0.0) -> Normals:
    return Normals(low=w <= tolerance, high=everywhere(w, False), rows=w.new_zeros((0, w.numel())))


def _tangent(s: torch.Tensor, w: torch.Tensor, tolerance: float = 0.0) -> torch.Tensor:
    """The nearest tangent direction. Normals are <= 0 where w = 0, and 0 elsewhere."""
    return s.where(w > tolerance, s.relu())


nonneg = SimpleSet(
    name="nonneg",
    meaning="w >= 0",
    tex=r"\mathbb{R}_{+}^{<shape>}",
    arguments=(),
    project=project_nonneg,
    contains=lambda w, tolerance=0.0: bool((w >= -tolerance).all()),
    normals=_normals,
    tangent=_tangent,
    support=lambda s: s.new_tensor(inf if bool((s > 0).any()) else 0.0),
    cone=lambda k, w: k.nonneg(w),
    entries=lambda: Interval(0.0, inf),
    bounded=lambda: False,
    entrywise=True,
)
