"""The l1 norm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fccomodel.library.regularisers.base import Regulariser, distance_to_interval

if TYPE_CHECKING:
    import torch


def value_l1(w: torch.Tensor, lam: float) -> torch.Tensor:
    """lam |w|_1"""
    return lam * w.abs().sum()


def prox_l1(v: torch.Tensor, step: float | torch.Tensor, lam: float) -> torch.Tensor:
    """Soft thresholding: entries move towards 0 by step * lam, and stop there."""
    return v.sign() * (v.abs() - step * lam).relu()


def subdifferential_l1(w: torch.Tensor, lam: float) -> tuple[torch.Tensor, torch.Tensor]:
    """lam sign(w), and [-lam, lam] where w = 0."""
    zero = (w == 0).to(w.dtype)
    return lam * (w.sign() - zero), lam * (w.sign() + zero)


def distance_l1(s: torch.Tensor, w: torch.Tensor, lam: float) -> torch.Tensor:
    """Distance from s to the subdifferential at w."""
    return distance_to_interval(s, *subdifferential_l1(w, lam))


l1 = Regulariser(
    name="l1",
    meaning="lam |w|_1",
    coefficients=("lam",),
    forms=("norm1", "abs"),
    value=value_l1,
    prox=prox_l1,
    step_per_entry=True,
    then=("group_l2",),
    subdifferential=subdifferential_l1,
    distance=distance_l1,
    critical=lambda g, *_: float(g.abs().max()),
    cite="D. L. Donoho, De-noising by soft-thresholding, IEEE Transactions on Information Theory 41 (1995)",
)
