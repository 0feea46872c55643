"""Quantiles without a closed form, which programs carry: draws are quantiles of uniform numbers."""

from __future__ import annotations

from fccomodel.core.lazy import torch


def gamma_quantile(u, shape, rate):
    """The quantiles at u of the gamma distribution, by Newton's method for the logarithm y of rate times z.

    The logarithms of both tails are concave in y, so the steps converge from any start: below the median
    on the lower tail, above it on the upper. Quantiles near 0 are on the lower tail, where y is well known.
    """
    steps = 12
    a = torch.as_tensor(shape, dtype=torch.float64, device=u.device)
    p, a = torch.broadcast_tensors(u.double().clamp(min=1e-300, max=1 - 1e-16), a)
    log_gamma = torch.lgamma(a)
    few = (p.log() + a.log() + log_gamma) / a  # where the density is a power of z
    lower = (p <= 0.5) | (few < -5)
    target = torch.where(lower, p, 1 - p).log()
    cube = 1 - 1 / (9 * a) + torch.special.ndtri(p) / (3 * a.sqrt())  # Wilson and Hilferty
    y = torch.where((a > 0.5) & (cube > 0.3), a.log() + 3 * cube.clamp(min=0.3).log(), few)
    y = torch.where(lower, y, y.clamp(min=-30.0))
    for _ in range(steps):
        x = y.exp()
        tail = torch.where(lower, torch.special.gammainc(a, x), torch.special.gammaincc(a, x))
        tail = tail.clamp(min=1e-300)
        slope = (a * y - x - log_gamma).exp() / tail
        slope = torch.where(lower, slope, -slope)
        step = (target - tail.log()) / torch.where(slope == 0, torch.ones_like(slope), slope)
        y = y + step.clamp(-4.0, 4.0)
    return (y.exp() / rate).to(u.dtype)


def poisson_quantile(u, rate):
    """The quantiles at u of the Poisson distribution: the least k with P(z <= k) >= u, by bisection."""
    mean = torch.as_tensor(rate, dtype=torch.float64, device=u.device)
    p, mean = torch.broadcast_tensors(u.double(), mean)
    low = torch.full_like(p, -1.0)
    high = (mean + 10 * mean.sqrt() + 40).ceil()
    while (high - low > 1).any():
        middle = ((low + high) / 2).floor()
        reached = torch.special.gammaincc(middle + 1, mean) >= p
        low, high = torch.where(reached, low, middle), torch.where(reached, middle, high)
    return high.to(u.dtype)
