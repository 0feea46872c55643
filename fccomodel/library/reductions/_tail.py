"""Means of the largest elements: what cvar and topk share."""

from __future__ import annotations

from collections.abc import Callable

from fccomodel.core.lazy import torch
from fccomodel.library.reductions._base import Elements, Options, Slope

Cap = Callable[["torch.Tensor", Options], "torch.Tensor"]
#: The law of every tail mean.
LAW = "The average of the largest values is the largest of averages: convex and non-decreasing in them, with kinks."


def value(cap: Cap) -> Callable[[Elements, Options], torch.Tensor]:
    """max of q.e over {0 <= q <= cap, sum q = 1}: all elements are needed at once, since their order decides."""

    def largest(x: Elements, options: Options) -> torch.Tensor:
        elements, entry = x.listed()
        weights = x.kept["weights"] = heaviest(elements, entry, lambda n: cap(n, options))
        return x.gathered(weights * elements, entry)

    return largest


def slope(x: Elements, y: torch.Tensor, options: Options) -> Slope:
    """The weights q."""
    return Slope(lambda e, here: here.part(x.kept["weights"]))


def heaviest(elements: torch.Tensor, entry: torch.Tensor, cap: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """The weights, in every entry the cap for the largest elements until they sum to 1."""
    size = torch.bincount(entry)
    order = elements.argsort(descending=True, stable=True)
    order = order[entry[order].argsort(stable=True)]
    first = size.cumsum(0) - size
    rank = torch.arange(len(elements), dtype=elements.dtype) - first[entry[order]]
    most = cap(size[entry[order]].to(elements.dtype))
    weights = torch.empty_like(elements)
    weights[order] = torch.minimum((1 - most * rank).clamp(min=0), most)
    return weights


# ----------------------------------------------------------------------------------------------------- what programs carry
def counted(x, dim, mask):
    """The number of elements along ``dim``, kept as dims of size 1."""
    return (torch.ones_like(x) if mask is None else torch.broadcast_to(mask, x.shape).to(x.dtype)).sum(dim, keepdim=True)


def tail_mean(x, dim, weight, mask):
    """The mean of the largest elements along ``dim`` that weigh ``weight`` together, each at most 1."""
    if mask is not None:
        x = x.masked_fill(mask == 0, float("-inf"))
    if isinstance(dim, tuple):
        last = tuple(range(-len(dim), 0))
        x, weight = x.movedim(dim, last).flatten(-len(dim)), weight.movedim(dim, last).flatten(-len(dim))
        dim = -1
    ordered = x.sort(dim=dim, descending=True).values
    count = torch.arange(x.shape[dim], device=x.device, dtype=x.dtype).view((-1,) + (1,) * (x.dim() - 1 - dim % x.dim()))
    share = (weight - count).clamp(0, 1)
    return (torch.where(share > 0, ordered, torch.zeros_like(ordered)) * share).sum(dim) / share.sum(dim)


def tail_weights(x, dim, weight, mask):
    """The weights of ``tail_mean``."""
    if isinstance(dim, tuple):
        last = tuple(range(-len(dim), 0))
        moved = x.movedim(dim, last)
        x, weight = moved.flatten(-len(dim)), weight.movedim(dim, last).flatten(-len(dim))
        mask = None if mask is None else mask.movedim(dim, last).flatten(-len(dim))
        return tail_weights(x, -1, weight, mask).view(moved.shape).movedim(last, dim)
    order = (x if mask is None else x.masked_fill(mask == 0, float("-inf"))).argsort(dim=dim, descending=True)
    count = torch.arange(x.shape[dim], device=x.device, dtype=x.dtype).view((-1,) + (1,) * (x.dim() - 1 - dim % x.dim()))
    share = (weight - count).clamp(0, 1).expand(x.shape)
    return torch.zeros_like(x).scatter(dim, order, share / share.sum(dim, keepdim=True))
