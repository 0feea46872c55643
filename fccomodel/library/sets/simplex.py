"""The probability simplex."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fccomodel.library.atoms import Interval
from fccomodel.library.cones import Affine, Cones
from fccomodel.library.sets.base import Normals, SimpleSet, everywhere, sums, tangent_to_sum, without_entries

if TYPE_CHECKING:
    import torch


def project_simplex(v: torch.Tensor) -> torch.Tensor:
    """max(v - t, 0), t such that the entries (along the last axis) sum to 1."""
    v = v - v.amax(-1, keepdim=True)  # the same point, and 1 counts beside large entries too
    largest = v.sort(dim=-1, descending=True).values
    count = v.new_ones(v.shape[-1]).cumsum(0)
    t = ((largest.cumsum(-1) - 1) / count).amax(-1, keepdim=True)
    return (v - t).relu()


def _contains(w: torch.Tensor, tolerance: float = 0.0) -> bool:
    return bool((w >= -tolerance).all()) and bool((w.sum(-1) - 1).abs().max() <= max(tolerance, 1e-12))


def _normals(w: torch.Tensor, tolerance: float = 0.0) -> Normals:
    return Normals(low=w <= tolerance, high=everywhere(w, False), rows=sums(w), equation=True)


def _tangent(s: torch.Tensor, w: torch.Tensor, tolerance: float = 0.0) -> torch.Tensor:
    """The nearest tangent direction. Normals equal one number where w > 0, and are at most that
    where w = 0."""
    return tangent_to_sum(s, _normals(w, tolerance))


def _cone(k: Cones, w: Affine) -> None:
    k.nonneg(w)
    k.zero(w.sum(-1) - 1.0)


simplex = SimpleSet(
    name="simplex",
    meaning="w >= 0, sum(w) == 1; of a matrix, each row",
    tex=r"\Delta^{<shape>}",
    arguments=(),
    project=project_simplex,
    contains=_contains,
    normals=_normals,
    tangent=_tangent,
    support=lambda s: s.amax(-1).sum(),
    amiss=without_entries,
    cone=_cone,
    entries=lambda: Interval(0.0, 1.0),
    length=lambda shape: math.sqrt(math.prod(shape[:-1])),
    cap=lambda n: 1.0,
    cite="J. Duchi, S. Shalev-Shwartz, Y. Singer, T. Chandra, Efficient projections onto the l1-ball, "
    "ICML 2008",
)
