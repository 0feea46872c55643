"""Functions that the generated code of a criterion calls, by name.

They update the estimates whose rows are in the batch. ``criterion.Made`` puts them into the space in
which the code runs.
"""

from __future__ import annotations

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


def tracked(
    track: Callable[..., torch.Tensor],
    u: torch.Tensor,
    index: tuple[torch.Tensor, ...],
    g: torch.Tensor,
    present: torch.Tensor,
    h: Any,
    *extra: torch.Tensor,
) -> torch.Tensor:
    """``track`` for the blocks that a batch has; the others keep their estimate, which stands for them.

    An estimate that no batch has moved yet is NaN. If the batch does not have it either, the mean of
    those that the batch has stands for it, or 1 if it has none: its gradient is 0, and the loss stays
    finite.
    """
    shape = present.shape
    count, event = present.numel(), g.shape[present.dim() :]
    values = g.reshape(count, *event)
    others = [part.reshape(count, *event) for part in extra]
    here = (present.reshape(-1) > 0).nonzero().squeeze(1)
    all_here = len(here) == count
    places = tuple(part.expand(shape).reshape(-1) for part in index)
    if places:
        old = u[places]
    else:
        old = u.expand(count, *event)
    if all_here:
        local = old.clone()
    else:
        local, values, others = old[here], values[here], [part[here] for part in others]
        places = tuple(part[here] for part in places)
    estimates = track(local, (torch.arange(len(here), device=u.device),), values, *others, h)
    if places:
        u[places] = local
    elif len(here):
        u.copy_(local.reshape(u.shape))
    if all_here:
        return estimates.reshape(g.shape)
    if len(here):
        unseen = estimates.mean(0)
    else:
        unseen = estimates.new_ones(event)
    kept = torch.where(old.isnan(), unseen, old)
    kept[here] = estimates
    return kept.reshape(g.shape)


def keep(
    kept: torch.Tensor, index: tuple[torch.Tensor, ...], value: torch.Tensor, present: torch.Tensor
) -> None:
    """Keeps a value for the blocks that a batch has."""
    value = torch.as_tensor(value, dtype=kept.dtype, device=kept.device)
    present = torch.as_tensor(present, dtype=kept.dtype, device=kept.device)
    if not index:
        wide = present.reshape(present.shape + (1,) * (kept.dim() - present.dim())) > 0
        kept.copy_(torch.where(wide, value, kept))
        return
    shape = index[0].shape
    if len(index) > 1:
        shape = torch.broadcast_shapes(*(part.shape for part in index))
    event = kept.shape[len(index) :]
    here = present.expand(shape).reshape(-1) > 0
    places = tuple(part.expand(shape).reshape(-1)[here] for part in index)
    kept[places] = value.expand(*shape, *event).reshape(-1, *event)[here]


def mean(u: torch.Tensor, index: tuple[torch.Tensor, ...], g: torch.Tensor, h: Any) -> torch.Tensor:
    """u <- (1 - gamma) u + gamma g, used as soon as it has moved; g at the first visit."""
    old = u[index]
    u[index] = new = torch.where(old.isnan(), g, old + h.gamma * (g - old))
    return new


def mean_log(u: torch.Tensor, index: tuple[torch.Tensor, ...], g: torch.Tensor, h: Any) -> torch.Tensor:
    """``mean`` of numbers that are known by their logarithms."""
    old = u[index]
    rest = torch.log1p(torch.tensor(-h.gamma, dtype=g.dtype))
    part = torch.log(torch.tensor(h.gamma, dtype=g.dtype))
    u[index] = new = torch.where(old.isnan(), g, torch.logaddexp(old + rest, g + part))
    return new
