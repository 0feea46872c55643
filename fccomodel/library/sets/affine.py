"""The solutions of linear equations."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from fccomodel.library.atoms import Interval
from fccomodel.library.sets.base import Normals, SimpleSet, everywhere

if TYPE_CHECKING:
    import torch


def project_affine(v: torch.Tensor, A: torch.Tensor, b: torch.Tensor, inverse: torch.Tensor) -> torch.Tensor:
    """The nearest solution of A w = b, through the pseudo-inverse of A."""
    return v - inverse @ (A @ v - b)


def _contains(w: torch.Tensor, A: torch.Tensor, b: torch.Tensor, tolerance: float = 0.0) -> bool:
    return float((A @ w - b).abs().max()) <= max(tolerance, 1e-12 * (1 + float(b.abs().max())))


def _normals(w: torch.Tensor, A: torch.Tensor, b: torch.Tensor, tolerance: float = 0.0) -> Normals:
    return Normals(low=everywhere(w, False), high=everywhere(w, False), rows=A, equation=True)


def _off_rows(s: torch.Tensor, A: torch.Tensor) -> torch.Tensor:
    """The part of s orthogonal to the rows of A."""
    return s - A.pinverse() @ (A @ s)


def _tangent(
    s: torch.Tensor, w: torch.Tensor, A: torch.Tensor, b: torch.Tensor, tolerance: float = 0.0
) -> torch.Tensor:
    """The nearest tangent direction. Normals are the combinations of the rows of A."""
    return _off_rows(s, A)


def _support(s: torch.Tensor, A: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The support function. It is finite if s is a combination of the rows of A, up to rounding."""
    bounded = float(_off_rows(s, A).norm()) <= 1e-13 * float(s.norm())
    if bounded:
        return (s * (A.pinverse() @ b)).sum()
    return s.new_tensor(inf)


def _amiss(shape: tuple, A: torch.Tensor, b: torch.Tensor) -> str:
    if len(b):
        error = float((A @ (A.pinverse() @ b) - b).abs().max())
    else:
        error = 0.0
    if error > 1e-8 * (1 + float(b.abs().max())):
        return f"The equations contradict each other: the best w leaves an error of {error:.3g}."
    return ""


affine = SimpleSet(
    name="affine",
    meaning="A w == b",
    tex=r"\left\{w : <0> w = <1>\right\}",
    arguments=("A", "b"),
    project=project_affine,
    prepare=lambda A, b: (A, b, A.pinverse()),
    contains=_contains,
    normals=_normals,
    tangent=_tangent,
    support=_support,
    amiss=_amiss,
    cone=lambda k, w, A, b: k.zero(A @ w - b),
    entries=lambda A, b: Interval(),
    bounded=lambda A, b: False,
)
