"""The nuclear norm of a matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fccomodel.library.regularisers.base import Regulariser

if TYPE_CHECKING:
    import torch


def value_nuclear(w: torch.Tensor, lam: float) -> torch.Tensor:
    """lam times the sum of the singular values."""
    return lam * w.norm("nuc")


def prox_nuclear(v: torch.Tensor, step: float, lam: float) -> torch.Tensor:
    """Soft thresholding of the singular values by step * lam."""
    left, values, right = v.svd()
    return left * (values - step * lam).relu() @ right.mT


def distance_nuclear(s: torch.Tensor, w: torch.Tensor, lam: float) -> torch.Tensor:
    """Distance from s to {lam U V' + lam W : U'W = 0, W V = 0, |W| <= 1} for w = U S V' of rank
    r."""
    left, values, right = w.svd(some=False)
    rank = int((values > 1e-12 * values.max().clamp(min=1e-300)).sum())
    inner = left.mT @ s @ right
    outside = inner[rank:, rank:].clone()
    inner[:rank, :rank].diagonal().sub_(lam)
    inner[rank:, rank:] = 0
    if outside.numel():
        excess = (outside.svd(compute_uv=False).S - lam).relu()
    else:
        excess = outside
    return (inner.square().sum() + excess.square().sum()).sqrt()


nuclear = Regulariser(
    name="nuclear",
    meaning="lam |W|_*, the sum of the singular values",
    coefficients=("lam",),
    forms=("norm_nuc",),
    value=value_nuclear,
    prox=prox_nuclear,
    distance=distance_nuclear,
    critical=lambda g, *_: float(g.svd(compute_uv=False).S.max()),
    cite="J.-F. Cai, E. J. Candes, Z. Shen, A singular value thresholding algorithm, SIAM J. "
    "Optimization 20 (2010)",
)
