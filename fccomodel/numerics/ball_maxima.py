"""The distribution q with the largest mean r.q among those within a divergence of a distribution p.

    kl    q_k proportional to p_k exp(r_k / mu)       mu falls until kl(q, p) is the radius
    chi2  q_k proportional to p_k (r_k - s)_+         s rises until chi2(q, p) is the radius
    norm1 the radius is taken from the smallest r and given to the largest

For kl and chi2 the number is found by bisection. A radius that reaches the largest r is cut there.
"""

from __future__ import annotations

from collections.abc import Callable

from fccomodel.core.lazy import torch

#: The generators of the divergences.
KL = "t * log(t)"
CHI2 = "square(t - 1)"
TV = "abs(t - 1) / 2"  # of the total variation, half of norm1(q - p)
#: Halvings of an interval of logarithms.
HALVINGS = 120
#: The least mu, and the least distance of s from the largest r, as a multiple of the range of r.
SMALLEST = 1e-12
#: The largest mu, and the largest distance of s, as a multiple of the range of r.
LARGEST = 1e12


def kl(r: torch.Tensor, p: torch.Tensor, radius: torch.Tensor) -> torch.Tensor:
    """The maximiser within kl(q, p) <= radius; all arguments over the last dim."""

    def at(size: torch.Tensor) -> torch.Tensor:
        """The weights for mu, the range of r times a size."""
        return torch.softmax((r - _top(r)) / (size * _range(r)) + p.log(), -1)

    def distance(q: torch.Tensor) -> torch.Tensor:
        """The divergence of q from p."""
        return (torch.special.xlogy(q, q) - torch.special.xlogy(q, p)).sum(-1, keepdim=True)

    return at(_bisected(lambda size: distance(at(size)) > radius, radius))


def chi2(r: torch.Tensor, p: torch.Tensor, radius: torch.Tensor) -> torch.Tensor:
    """The maximiser within chi2(q, p) <= radius; all arguments over the last dim."""

    def at(size: torch.Tensor) -> torch.Tensor:
        """The weights for s, below the largest r by the range of r times a size."""
        shares = p * (size + (r - _top(r)) / _range(r)).clamp(min=0)
        return shares / shares.sum(-1, keepdim=True)

    def distance(q: torch.Tensor) -> torch.Tensor:
        """The divergence of q from p; an element without a share in p has none in q."""
        return torch.where(p > 0, (q - p).square() / p, 0.0).sum(-1, keepdim=True)

    return at(_bisected(lambda size: distance(at(size)) > radius, radius))


def tv(r: torch.Tensor, p: torch.Tensor, radius: torch.Tensor) -> torch.Tensor:
    """The maximiser within norm1(q - p) / 2 <= radius; all arguments over the last dim."""
    order = r.argsort(dim=-1, stable=True)
    shares = p.gather(-1, order)
    below = shares.cumsum(-1) - shares
    taken = torch.minimum((radius - below).clamp(min=0), shares)
    left = shares - taken
    left[..., -1:] += taken.sum(-1, keepdim=True)
    return torch.zeros_like(p).scatter(-1, order, left)


def _top(r: torch.Tensor) -> torch.Tensor:
    """The largest entry."""
    return r.amax(-1, keepdim=True)


def _range(r: torch.Tensor) -> torch.Tensor:
    """The largest entry less the smallest, or 1 if all are equal."""
    width = _top(r) - r.amin(-1, keepdim=True)
    return torch.where(width > 0, width, torch.ones_like(width))


def _bisected(is_beyond: Callable[[torch.Tensor], torch.Tensor], like: torch.Tensor) -> torch.Tensor:
    """The least size whose weights are not beyond the radius; larger sizes are nearer to p."""
    low = torch.full_like(like, SMALLEST).log()
    high = torch.full_like(like, LARGEST).log()
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        beyond = is_beyond(middle.exp())
        low = torch.where(beyond, middle, low)
        high = torch.where(beyond, high, middle)
    return high.exp()


#: The maximisers by the generator of the divergence.
MAXIMISERS: dict[str, Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]] = {
    KL: kl,
    CHI2: chi2,
    TV: tv,
}
