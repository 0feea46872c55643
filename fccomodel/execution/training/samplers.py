"""Batches for a loop of one's own: strata of a table, the weights of a batch's rows, a sampler."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset, Sampler

from fccomodel.execution.training import joint

#: strata of a table, at most, that batches are weighted by: else rows weigh alike
MOST_STRATA = 64
#: rows of one group that a batch takes together if pairs are formed inside groups
ROWS_OF_A_GROUP = 8


@dataclass(frozen=True, eq=False, kw_only=True)
class Strata:
    """Rows of a table by the sets and groups that they belong to: stratum of each row, rows in each.

    ``groups`` are those inside which rows are paired, if the strata are too many for a batch to have
    rows of each; else None.
    """

    of_rows: np.ndarray
    sizes: np.ndarray
    groups: np.ndarray | None = None

    @classmethod
    def of(cls, n: int, partitions: Sequence[np.ndarray], related: Sequence[np.ndarray] = ()) -> Strata:
        """The combinations of some partitions that occur; one stratum where these are too many."""
        codes = _combined(n, partitions)
        sizes = np.bincount(codes, minlength=1)
        groups = None
        if len(sizes) > MOST_STRATA:
            codes, sizes = np.zeros(n, dtype=np.int64), np.array([n])
            if related:
                groups = _combined(n, related)
        return cls(of_rows=codes, sizes=sizes, groups=groups)

    @cached_property
    def tensors(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The stratum of each row, and the rows of each stratum as real numbers."""
        return torch.from_numpy(self.of_rows), torch.from_numpy(self.sizes).double()

    def weights(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Of a batch's rows: weights of sum 1, in which each stratum that is there has its share of the
        table; strata; and the factor of a row's weight where another of its stratum is left out."""
        of_rows, sizes = self.tensors
        strata = of_rows[ids]
        counts = torch.bincount(strata, minlength=len(sizes)).double()
        each = sizes * (counts > 0) / counts.clamp(min=1.0)
        others = (sizes - 1.0) / (counts - 1.0).clamp(min=1.0) / each.clamp(min=1e-30)
        others = torch.where(counts > 1, others, 1.0)
        weights = each[strata]
        return weights / weights.sum(), strata, others[strata]

    def allotted(self, size: int) -> np.ndarray:
        """Rows of each stratum in a batch: by the root of its size, at least two, or one, where there is
        room."""
        if size < len(self.sizes):
            return np.array([])
        wanted = np.sqrt(self.sizes) / np.sqrt(self.sizes).sum() * size
        least = 2 if size >= 4 * len(self.sizes) else 1
        counts = np.minimum(np.maximum(np.floor(wanted).astype(np.int64), least), self.sizes)
        order = np.argsort(counts - wanted)
        while counts.sum() > size:
            counts[np.argmax(counts)] -= 1
        while counts.sum() < size and (counts < self.sizes).any():
            for k in order:
                if counts.sum() < size and counts[k] < self.sizes[k]:
                    counts[k] += 1
        return counts


def _combined(n: int, partitions: Sequence[np.ndarray]) -> np.ndarray:
    """The number of each row's combination of groups."""
    codes = np.zeros(n, dtype=np.int64)
    for part in partitions:
        _, codes = np.unique(codes * (int(part.max()) + 1) + part, return_inverse=True)
    return codes


class StratifiedSampler(Sampler[list[int]]):
    """Batches of row numbers with rows of every set and group of a model.

    Each stratum is gone through without replacement; an epoch has as many batches as its rows fill.
    Where rows are paired inside many groups (``j.q == i.q``), a batch has several rows of a few
    groups. The same ``seed`` gives the same batches; each epoch has others.

    If it is drawn ``together`` with other ranks of ``torch.distributed``, the batches of all ranks are
    such a batch, and each rank has ``batch`` rows of it.
    """

    def __init__(self, strata: Strata, numbers: np.ndarray, batch: int, seed: int, *, together: bool = False):
        self.strata, self.numbers, self.batch, self.seed = strata, numbers, batch, seed
        self.together = together
        self.epoch = 0
        self.by_stratum = [np.flatnonzero(strata.of_rows == k) for k in range(len(strata.sizes))]

    @property
    def joint_batch(self) -> int:
        """Rows of the batches of all ranks."""
        return self.batch * (joint.count() if self.together else 1)

    def set_epoch(self, epoch: int) -> None:
        """The epoch that the next iteration is."""
        self.epoch = epoch

    def __len__(self) -> int:
        return max(1, math.ceil(len(self.numbers) / self.joint_batch))

    def __iter__(self) -> Iterator[list[int]]:
        for rows in self._joint():
            yield joint.share(rows, self.together)

    def _joint(self) -> Iterator[list[int]]:
        """The batches of all ranks."""
        size = self.joint_batch
        counts = self.strata.allotted(min(size, len(self.numbers)))
        rng = np.random.default_rng([self.seed, self.epoch])
        self.epoch += 1
        if not len(counts) or self.strata.groups is not None:
            order = self._order(rng)
            for k in range(len(self)):
                yield self.numbers[order[k * size : (k + 1) * size]].tolist()
            return
        streams = [_passes(rows, rng) for rows in self.by_stratum]
        for _ in range(len(self)):
            rows = [next(s) for s, count in zip(streams, counts, strict=True) for _ in range(count)]
            yield self.numbers[rows].tolist()

    def _order(self, rng: np.random.Generator) -> np.ndarray:
        """All rows in a random order; rows of a group stand together, ``ROWS_OF_A_GROUP`` at a time."""
        order = rng.permutation(len(self.numbers))
        if self.strata.groups is None:
            return order
        order = order[np.argsort(self.strata.groups[order], kind="stable")]
        groups = self.strata.groups[order]
        starts = np.searchsorted(groups, groups)
        piece = (np.arange(len(order)) - starts) // ROWS_OF_A_GROUP
        _, pieces = np.unique(groups * (int(piece.max()) + 1) + piece, return_inverse=True)
        place = rng.permutation(int(pieces.max()) + 1)
        return order[np.argsort(place[pieces], kind="stable")]


class Stream:
    """The batches of a sampler, epoch after epoch; its state is where it stands."""

    def __init__(self, sampler: StratifiedSampler):
        self.sampler, self.epoch, self.done = sampler, 0, 0
        self.batches: Iterator[list[int]] | None = None

    def __next__(self) -> list[int]:
        while True:
            if self.batches is None:
                self.sampler.set_epoch(self.epoch)
                self.batches = iter(self.sampler)
                for _ in range(self.done):
                    next(self.batches)
            rows = next(self.batches, None)
            if rows is not None:
                self.done += 1
                return rows
            self.epoch, self.done, self.batches = self.epoch + 1, 0, None

    def state_dict(self) -> dict[str, int]:
        """The epoch, and how many of its batches were taken."""
        return {"epoch": self.epoch, "done": self.done}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Goes on from where another stream stood."""
        self.epoch, self.done, self.batches = state["epoch"], state["done"], None


def _passes(rows: np.ndarray, rng: np.random.Generator) -> Iterator[int]:
    """Some rows again and again, each pass in an order of its own."""
    while True:
        yield from rng.permutation(rows).tolist()


class Numbered(Dataset[tuple[int, Any]]):
    """A dataset whose items come with their numbers."""

    def __init__(self, dataset: Any):
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, row: int) -> tuple[int, Any]:
        return row, self.dataset[row]
