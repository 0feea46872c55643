"""Functions that the generated code of a criterion calls, by name.

They update the estimates whose rows are in the batch. ``criterion.Made`` puts them into the space in
which the code runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

#: weight of a new value in the running means of ``values()``
WATCHED = 0.1
#: the same for what belongs to one row, which few batches have: an older value would be out of date
WATCHED_OF_A_ROW = 0.9
WATCHING = SimpleNamespace(gamma=WATCHED)
WATCHING_ROWS = SimpleNamespace(gamma=WATCHED_OF_A_ROW)

Index = tuple[torch.Tensor, ...]


class BatchBlocks:
    """The blocks that a batch has, for all estimates of the same blocks.

    shape      of the blocks that a step asks for, and ``count`` their number
    positions  of those that the batch has, among all
    whole      whether the batch has all of them
    """

    def __init__(self, present: torch.Tensor):
        self.shape, self.count = present.shape, present.numel()
        self.positions = present.reshape(-1).nonzero().squeeze(1)
        self.some = len(self.positions)
        self.whole = self.some == self.count
        # by the identities of an index's tensors, which are kept so that no others take their place
        self._places: dict[tuple[int, ...], tuple[Index, tuple[Index, Index]]] = {}

    def places(self, index: Index) -> tuple[Index, Index]:
        """Where the blocks stand among all estimates: those that a step asks for, and those of the batch."""
        key = tuple(map(id, index))
        if key not in self._places:
            asked = tuple(part.expand(self.shape).reshape(-1) for part in index)
            places_here = asked if self.whole else tuple(part[self.positions] for part in asked)
            self._places[key] = index, (asked, places_here)
        return self._places[key][1]


def tracked(
    track: Callable[..., torch.Tensor],
    u: torch.Tensor,
    index: Index,
    g: torch.Tensor,
    here: BatchBlocks,
    h: Any,
    *extra: torch.Tensor,
) -> torch.Tensor:
    """``track`` for the blocks that a batch has; the others keep their estimate, which stands for them.

    An estimate that no batch has moved yet is NaN. If the batch does not have it either, the mean of
    those that the batch has stands for it, or 1 if it has none: its gradient is 0, and the loss stays
    finite.
    """
    event = g.shape[len(here.shape) :]
    values = g.reshape(here.count, *event)
    if index:
        asked, places = here.places(index)
        blocks = u
    else:
        asked = places = (torch.zeros(here.some, dtype=torch.int64, device=u.device),)
        blocks = u.reshape(1, *event)
    if here.whole:
        others = [part.reshape(values.shape) for part in extra]
        return track(blocks, places, values, *others, h).reshape(g.shape)
    if not index:
        return torch.where(u.isnan(), torch.ones_like(u), u).expand(g.shape)
    old = u[asked]
    batch = values[here.positions]
    others = [batch if part is g else part.reshape(values.shape)[here.positions] for part in extra]
    moved = track(blocks, places, batch, *others, h)
    if here.some:
        unseen = moved.mean(0)
    else:
        unseen = moved.new_ones(event)
    kept = torch.where(old.isnan(), unseen, old)
    kept[here.positions] = moved
    return kept.reshape(g.shape)


def keep(kept: torch.Tensor, index: Index, value: torch.Tensor, here: BatchBlocks) -> None:
    """Keeps a value for the blocks that a batch has."""
    value = torch.as_tensor(value, dtype=kept.dtype, device=kept.device)
    if not index:
        if here.some:
            kept.copy_(value)
        return
    event = kept.shape[len(index) :]
    values = value.expand(*here.shape, *event).reshape(-1, *event)
    if not here.whole:
        values = values[here.positions]
    kept[here.places(index)[1]] = values


def mean(u: torch.Tensor, index: Index, g: torch.Tensor, h: Any) -> torch.Tensor:
    """u <- (1 - gamma) u + gamma g, used as soon as it has moved; g at the first visit."""
    old = u[index]
    u[index] = new = torch.where(old.isnan(), g, old + h.gamma * (g - old))
    return new


def mean_log(u: torch.Tensor, index: Index, g: torch.Tensor, h: Any) -> torch.Tensor:
    """``mean`` of numbers that are known by their logarithms."""
    old = u[index]
    mixed = torch.logaddexp(old + math.log1p(-h.gamma), g + math.log(h.gamma))
    u[index] = new = torch.where(old.isnan(), g, mixed)
    return new
