"""Batches of several ranks as one: row numbers and scores are sent, never features.

Each rank of ``torch.distributed`` draws a batch of its own. A step sees all of them, one after another
in the order of the ranks, so every rank keeps the same estimates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import distributed

Tensors = Mapping[str, torch.Tensor]


@dataclass(frozen=True, eq=False, kw_only=True)
class Batch:
    """Rows and scores of a step.

    ids     by table the places of the rows
    scores  by name the outputs of nets for the rows of a table
    before  the same at the weights before the last step
    begins  by table the place of this rank's first row
    ranks   number of ranks whose batches these are
    """

    ids: Mapping[str, torch.Tensor]
    scores: Tensors
    before: Tensors
    begins: Mapping[str, int]
    ranks: int = 1


def count() -> int:
    """The number of ranks."""
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_world_size()
    return 1


def rank() -> int:
    """The number of this rank, counted from 0."""
    if count() > 1:
        return distributed.get_rank()
    return 0


def alone(ids: Tensors, scores: Tensors, before: Tensors) -> Batch:
    """The batch of this process."""
    return Batch(ids=ids, scores=scores, before=before, begins=dict.fromkeys(ids, 0))


def gathered(ids: Tensors, scores: Tensors, before: Tensors, tables: Mapping[str, str]) -> Batch:
    """The batches of all ranks as one; ``tables`` has the table of each score.

    Two messages travel: how many rows each rank has, then row numbers (8 bytes each) and scores in
    their own precision. Scores of the last step are sent only if they are not the same tensors.
    """
    sizes = torch.tensor([len(part) for part in ids.values()])
    all_sizes = [dict(zip(ids, of_rank.tolist(), strict=True)) for of_rank in _all(sizes)]
    longest = {name: max(of_rank[name] for of_rank in all_sizes) for name in ids}
    sent = {f"rows {name}": (part, name) for name, part in ids.items()}
    sent |= {f"now {name}": (score.detach(), tables[name]) for name, score in scores.items()}
    if before is not scores:
        sent |= {f"before {name}": (score.detach(), tables[name]) for name, score in before.items()}
    lengths = {key: longest[table] for key, (_, table) in sent.items()}
    parts = _exchanged({key: part for key, (part, _) in sent.items()}, lengths)
    whole = {}
    for key, (_, table) in sent.items():
        of_ranks = [part[key][: size[table]] for part, size in zip(parts, all_sizes, strict=True)]
        whole[key] = torch.cat(of_ranks)
    now = {name: whole[f"now {name}"] for name in scores}
    if before is scores:
        then = now
    else:
        then = {name: whole[f"before {name}"] for name in before}
    ranks_before = all_sizes[: rank()]
    return Batch(
        ids={name: whole[f"rows {name}"] for name in ids},
        scores=now,
        before=then,
        begins={name: sum(size[name] for size in ranks_before) for name in ids},
        ranks=count(),
    )


def _exchanged(parts: Tensors, longest: Mapping[str, int]) -> list[dict[str, torch.Tensor]]:
    """The tensors of each rank, filled up to the longest of any rank, on the device of this one's."""
    filled = {name: _filled(part, longest[name]) for name, part in parts.items()}
    buffer = torch.cat([_bytes(part) for part in filled.values()])
    found = []
    for received in _all(buffer):
        start, theirs = 0, {}
        for name, part in filled.items():
            stop = start + part.numel() * part.element_size()
            raw = received[start:stop].clone()
            theirs[name] = raw.view(part.dtype).reshape(part.shape).to(parts[name].device)
            start = stop
        found.append(theirs)
    return found


def _filled(part: torch.Tensor, length: int) -> torch.Tensor:
    """A tensor with zeros below, up to a length."""
    missing = length - len(part)
    if not missing:
        return part
    return torch.cat([part, part.new_zeros((missing, *part.shape[1:]))])


def _bytes(part: torch.Tensor) -> torch.Tensor:
    """The bytes of a tensor, where messages are sent from."""
    return part.to(_device()).contiguous().reshape(-1).view(torch.uint8)


def _device() -> torch.device:
    """The device from which messages are sent: the GPU of this process for NCCL, else the CPU."""
    if "gloo" not in distributed.get_backend():
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


def _all(value: torch.Tensor) -> list[torch.Tensor]:
    """A tensor of every rank, in their order."""
    value = value.to(_device())
    parts = [torch.empty_like(value) for _ in range(count())]
    distributed.all_gather(parts, value)
    return parts


def of_all(value: np.ndarray) -> np.ndarray:
    """The rows of every rank, one after another; their numbers may differ."""
    if count() == 1:
        return value
    parts: list[np.ndarray] = [value] * count()
    distributed.all_gather_object(parts, value)
    return np.concatenate(parts)


def share(rows: list[int], together: bool) -> list[int]:
    """The rows of a joint batch that this rank draws: at least one."""
    if not together or count() == 1:
        return rows
    if len(rows) < count():
        rows = np.resize(rows, count()).tolist()
    return rows[rank() :: count()]
