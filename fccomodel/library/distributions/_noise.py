"""Standard draws, from which the distributions make theirs."""

from __future__ import annotations

from fccomodel.core.lazy import torch


def noise(family, shape, rng, device, dtype):
    """Standard draws: normal, laplace and exponential of scale 1, otherwise uniform on [0, 1)."""
    if family == "normal":
        return torch.randn(shape, generator=rng, device=device, dtype=dtype)
    uniform = torch.rand(shape, generator=rng, device=device, dtype=dtype)
    if family == "exponential":
        return -torch.log1p(-uniform)
    if family == "laplace":
        return -(uniform - 0.5).sign() * torch.log1p(-2 * (uniform - 0.5).abs())
    return uniform
