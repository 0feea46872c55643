"""The squared Euclidean (or Frobenius) norm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fccomodel.library.regularisers.base import Regulariser, distance_to_interval, never

if TYPE_CHECKING:
    import torch


def value_squared_l2(w: torch.Tensor, mu: float) -> torch.Tensor:
    """mu |w|_2^2"""
    return mu * w.square().sum()


def prox_squared_l2(v: torch.Tensor, step: float | torch.Tensor, mu: float) -> torch.Tensor:
    """Shrinks v by the factor 1 + 2 step mu."""
    return v / (1 + 2 * step * mu)


def subdifferential_squared_l2(w: torch.Tensor, mu: float) -> tuple[torch.Tensor, torch.Tensor]:
    """The gradient 2 mu w, as both bounds."""
    return 2 * mu * w, 2 * mu * w


def distance_squared_l2(s: torch.Tensor, w: torch.Tensor, mu: float) -> torch.Tensor:
    """Distance from s to the gradient at w."""
    return distance_to_interval(s, *subdifferential_squared_l2(w, mu))


squared_l2 = Regulariser(
    name="squared_l2",
    meaning="mu |w|_2^2",
    coefficients=("mu",),
    forms=("sumsq", "square"),
    value=value_squared_l2,
    prox=prox_squared_l2,
    step_per_entry=True,
    smooth=True,
    round=True,
    scales=True,
    subdifferential=subdifferential_squared_l2,
    distance=distance_squared_l2,
    critical=never,
)
