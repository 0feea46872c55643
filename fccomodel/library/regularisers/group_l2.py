"""The group lasso: the sum of the Euclidean norms of consecutive groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fccomodel.library.regularisers.base import Regulariser

if TYPE_CHECKING:
    import torch


def value_group_l2(w: torch.Tensor, lam: float, size: float) -> torch.Tensor:
    """lam times the sum of the norms of groups of ``size`` entries."""
    return lam * w.reshape(-1, int(size)).norm(dim=1).sum()


def prox_group_l2(v: torch.Tensor, step: float, lam: float, size: float) -> torch.Tensor:
    """Every group is shortened by step * lam, or becomes 0."""
    groups = v.reshape(-1, int(size))
    length = groups.norm(dim=1, keepdim=True).clamp(min=1e-30)
    return (groups * ((length - step * lam).relu() / length)).reshape(v.shape)


def distance_group_l2(s: torch.Tensor, w: torch.Tensor, lam: float, size: float) -> torch.Tensor:
    """Distance from s to lam w_G/|w_G| per group, or to the ball of radius lam where w_G = 0."""
    s, w = s.reshape(-1, int(size)), w.reshape(-1, int(size))
    length = w.norm(dim=1)
    apart = (s - lam * w / length.clamp(min=1e-300)[:, None]).norm(dim=1)
    return apart.where(length > 0, (s.norm(dim=1) - lam).relu()).norm()


group_l2 = Regulariser(
    name="group_l2",
    meaning="lam * the sum of |w_G|_2 over consecutive groups G of `size` entries",
    coefficients=("lam", "size"),
    forms=("group_norm",),
    value=value_group_l2,
    prox=prox_group_l2,
    distance=distance_group_l2,
    critical=lambda g, lam, size: float(g.reshape(-1, int(size)).norm(dim=1).max()),
    cite="M. Yuan, Y. Lin, Model selection and estimation in regression with grouped variables, JRSS B "
    "68 (2006)",
)
