"""The Euclidean norm of a whole vector (of a matrix: the Frobenius norm), not squared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fccomodel.library.regularisers.base import Regulariser

if TYPE_CHECKING:
    import torch


def value_l2(w: torch.Tensor, lam: float) -> torch.Tensor:
    """lam |w|_2"""
    return lam * w.norm()


def prox_l2(v: torch.Tensor, step: float, lam: float) -> torch.Tensor:
    """The vector v, shortened by step * lam, or 0."""
    length = v.norm().clamp(min=1e-30)
    return v * ((length - step * lam).relu() / length)


def distance_l2(s: torch.Tensor, w: torch.Tensor, lam: float) -> torch.Tensor:
    """Distance from s to lam w/|w|, or to the ball of radius lam where w = 0."""
    length = w.norm()
    if length == 0:
        return (s.norm() - lam).relu()
    return (s - lam * w / length).norm()


l2 = Regulariser(
    name="l2",
    meaning="lam |w|_2",
    coefficients=("lam",),
    forms=("norm2", "norm_fro"),
    value=value_l2,
    prox=prox_l2,
    round=True,
    distance=distance_l2,
    critical=lambda g, *_: float(g.norm()),
)
