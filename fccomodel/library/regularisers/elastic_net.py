"""The elastic net: l1 plus squared l2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fccomodel.library.regularisers.base import Regulariser, distance_to_interval

if TYPE_CHECKING:
    import torch


def value_elastic_net(w: torch.Tensor, lam: float, mu: float) -> torch.Tensor:
    """lam |w|_1 + mu |w|_2^2"""
    return lam * w.abs().sum() + mu * w.square().sum()


def prox_elastic_net(v: torch.Tensor, step: float | torch.Tensor, lam: float, mu: float) -> torch.Tensor:
    """Soft thresholding by step * lam, then shrinking by 1 + 2 step mu."""
    return v.sign() * (v.abs() - step * lam).relu() / (1 + 2 * step * mu)


def subdifferential_elastic_net(w: torch.Tensor, lam: float, mu: float) -> tuple[torch.Tensor, torch.Tensor]:
    """lam sign(w) + 2 mu w, and [-lam, lam] where w = 0."""
    zero = (w == 0).to(w.dtype)
    return lam * (w.sign() - zero) + 2 * mu * w, lam * (w.sign() + zero) + 2 * mu * w


def distance_elastic_net(s: torch.Tensor, w: torch.Tensor, lam: float, mu: float) -> torch.Tensor:
    """Distance from s to the subdifferential at w."""
    return distance_to_interval(s, *subdifferential_elastic_net(w, lam, mu))


elastic_net = Regulariser(
    name="elastic_net",
    meaning="lam |w|_1 + mu |w|_2^2",
    coefficients=("lam", "mu"),
    forms=(),
    value=value_elastic_net,
    prox=prox_elastic_net,
    step_per_entry=True,
    sum_of=("l1", "squared_l2"),
    subdifferential=subdifferential_elastic_net,
    distance=distance_elastic_net,
    critical=lambda g, *_: float(g.abs().max()),
    cite="H. Zou, T. Hastie, Regularization and variable selection via the elastic net, JRSS B 67 (2005)",
)
