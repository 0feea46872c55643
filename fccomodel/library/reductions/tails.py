"""Means of the largest elements: the common parts of cvar and topk."""

from __future__ import annotations

import math
from collections.abc import Callable

from fccomodel.core.lazy import torch
from fccomodel.library.reductions.base import Elements, Options, Slope

Cap = Callable[["torch.Tensor", Options], "torch.Tensor"]
#: From so many elements on, those of the largest weights are taken without an order of the rest.
UNORDERED_FROM = 1 << 16
#: The law of every tail mean.
LAW = (
    "The average of the largest values is the largest of averages: convex and non-decreasing in them, "
    "with kinks."
)


def value(cap: Cap) -> Callable[[Elements, Options], torch.Tensor]:
    """The maximum of q.e over {0 <= q <= cap, sum q = 1}. Their order decides, so all elements are
    needed at once."""

    def largest(x: Elements, options: Options) -> torch.Tensor:
        """The weighted sum of the largest elements in each cell."""
        elements, entry = x.listed()
        weights = x.kept["weights"] = heaviest(elements, entry, lambda n: cap(n, options))
        return x.gathered(weights * elements, entry)

    return largest


def slope(x: Elements, y: torch.Tensor, options: Options) -> Slope:
    """The derivative: the weights q."""
    return Slope(lambda e, here: here.part(x.kept["weights"]))


def heaviest(
    elements: torch.Tensor, entry: torch.Tensor, cap: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """The weights: in every entry the cap for the largest elements, until they sum to 1."""
    size = torch.bincount(entry)
    caps = cap(size.to(elements.dtype))
    alike = bool((size == size[0]).all()) and bool((caps == caps[0]).all())
    if len(elements) > UNORDERED_FROM and alike:
        return _heaviest_of_rows(elements, entry, caps[0].item(), len(size))
    order = elements.argsort(descending=True, stable=True)
    order = order[entry[order].argsort(stable=True)]
    first = size.cumsum(0) - size
    rank = torch.arange(len(elements), dtype=elements.dtype) - first[entry[order]]
    most = caps[entry[order]]
    weights = torch.empty_like(elements)
    weights[order] = torch.minimum((1 - most * rank).clamp(min=0), most)
    return weights


def _heaviest_of_rows(elements: torch.Tensor, entry: torch.Tensor, most: float, rows: int) -> torch.Tensor:
    """The weights if every entry has equally many elements: the largest are selected without a full
    sort."""
    if bool((entry[1:] >= entry[:-1]).all()):
        order = None
    else:
        order = entry.argsort(stable=True)
    table = (elements if order is None else elements[order]).view(rows, -1)
    largest = table.topk(min(math.ceil(1 / most), table.shape[1]), dim=1).indices
    share = (1 - most * torch.arange(largest.shape[1], dtype=elements.dtype)).clamp(0, most)
    weights = torch.zeros_like(table).scatter_(1, largest, share.expand(largest.shape)).view(-1)
    if order is None:
        return weights
    return torch.empty_like(weights).index_copy_(0, order, weights)


# ------------------------------------------------------------------------------ what programs carry
def counted(x, dim, mask):
    """The number of elements along ``dim``, or of those the mask keeps, with dims of size 1."""
    if mask is None:
        return math.prod(x.shape[k] for k in (dim if isinstance(dim, tuple) else (dim,)))
    return torch.broadcast_to(mask, x.shape).to(x.dtype).sum(dim, keepdim=True)


def at_most(k, count):
    """``k``, or the number of elements if that is smaller."""
    if hasattr(k, "clamp"):
        return torch.minimum(k, torch.as_tensor(count, dtype=k.dtype, device=k.device))
    if hasattr(count, "clamp"):
        return count.clamp(max=k)
    return min(count, k)


def in_line(x, dim):
    """The array with several dims merged into the last; a number stays as it is."""
    if torch.is_tensor(x) and x.dim():
        return x.movedim(dim, tuple(range(-len(dim), 0))).flatten(-len(dim))
    return x


def places(x, dim):
    """The indices 0, 1, 2, ... along ``dim``."""
    return torch.arange(x.shape[dim], device=x.device, dtype=x.dtype).view(
        (-1,) + (1,) * (x.dim() - 1 - dim % x.dim())
    )


def tail_mean(x, dim, weight, mask):
    """The mean of the largest elements along ``dim`` with total weight ``weight``, each at most
    1."""
    if mask is not None:
        x = x.masked_fill(mask == 0, float("-inf"))
    if isinstance(dim, tuple):
        x, weight, dim = in_line(x, dim), in_line(weight, dim), -1
    if not torch.is_tensor(weight):  # the same for all: no order is needed
        count = min(math.ceil(weight), x.shape[dim])
        if count <= 1:
            return x.amax(dim)
        largest = x.topk(count, dim=dim, sorted=False).values
        return (largest.sum(dim) - (count - weight) * largest.amin(dim)) / weight
    ordered = x.sort(dim=dim, descending=True).values
    share = (weight - places(ordered, dim)).clamp(0, 1).expand(x.shape)
    return (torch.where(share > 0, ordered, torch.zeros_like(ordered)) * share).sum(dim) / share.sum(dim)


def tail_weights(x, dim, weight, mask):
    """The weights of ``tail_mean``."""
    if isinstance(dim, tuple):
        last = tuple(range(-len(dim), 0))
        weights_in_line = tail_weights(in_line(x, dim), -1, in_line(weight, dim), in_line(mask, dim))
        return weights_in_line.view(x.movedim(dim, last).shape).movedim(last, dim)
    if not torch.is_tensor(weight):
        largest, order = x.topk(min(max(math.ceil(weight), 1), x.shape[dim]), dim=dim)
        share = (weight - places(largest, dim)).clamp(0, 1)
        return torch.zeros_like(x).scatter(dim, order, (share / weight).expand(order.shape))
    order = (x if mask is None else x.masked_fill(mask == 0, float("-inf"))).argsort(dim=dim, descending=True)
    share = (weight - places(x, dim)).clamp(0, 1).expand(x.shape)
    return torch.zeros_like(x).scatter(dim, order, share / share.sum(dim, keepdim=True))
