"""Batches for training loops of users: strata of a table, weights of the rows of a batch, a sampler."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset, Sampler

from fccomodel.core.diagnostics import refuse
from fccomodel.execution.training import joint
from fccomodel.execution.training.errors import criterion as errors

#: Largest number of strata by which rows are weighted; if there are more, all rows weigh alike.
MOST_STRATA = 64
#: Rows of one group that a batch takes together if pairs are formed inside groups.
ROWS_OF_A_GROUP = 8


@dataclass(frozen=True, eq=False, kw_only=True)
class TableStrata:
    """Strata of the rows of a table: the combinations of the sets and groups that they belong to.

    of_rows  number of the stratum of each row
    sizes    number of rows of each stratum
    groups   number of the group of each row, if rows are paired inside groups and a batch cannot have
             rows of every stratum; else None
    """

    of_rows: np.ndarray
    sizes: np.ndarray
    groups: np.ndarray | None = None

    @classmethod
    def of(cls, n: int, partitions: Sequence[np.ndarray], related: Sequence[np.ndarray] = ()) -> TableStrata:
        """The strata by some partitions, or one stratum if more than ``MOST_STRATA`` combinations occur."""
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
        """The weights and the strata of the rows of a batch, and the factors of weights beside another row.

        The weights sum to 1, and each stratum in the batch has its share of the table. The factor
        corrects the weight of a row in sums that leave out another row of its stratum.
        """
        of_rows, sizes = self.tensors
        strata = of_rows[ids]
        counts = torch.bincount(strata, minlength=len(sizes)).double()
        each = sizes * (counts > 0) / counts.clamp(min=1.0)
        others = (sizes - 1.0) / (counts - 1.0).clamp(min=1.0) / each.clamp(min=1e-30)
        others = torch.where(counts > 1, others, 1.0)
        weights = each[strata]
        return weights / weights.sum(), strata, others[strata]

    def allotted(self, size: int) -> np.ndarray:
        """The number of rows of each stratum in a batch, in proportion to the root of its size.

        It is at least 2, or 1 in small batches. It is empty if the batch is smaller than the number of
        strata.
        """
        if size < len(self.sizes):
            return np.array([])
        shares = np.sqrt(self.sizes) / np.sqrt(self.sizes).sum() * size
        least = 1
        if size >= 4 * len(self.sizes):
            least = 2
        counts = np.minimum(np.maximum(np.floor(shares).astype(np.int64), least), self.sizes)
        order = np.argsort(counts - shares)
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

    Rows of a stratum are drawn without replacement until all were drawn; an epoch has as many batches
    as its rows fill. If rows are paired inside many groups (``j.q == i.q``), a batch has several rows
    of a few groups. The batches depend on ``seed`` and on the number of the epoch.

    If it is drawn ``together`` with other ranks of ``torch.distributed``, the batches of all ranks are
    such a batch, and each rank has ``batch`` rows of it.
    """

    def __init__(
        self, strata: TableStrata, numbers: np.ndarray, batch: int, seed: int, *, together: bool = False
    ):
        self.strata, self.numbers, self.batch, self.seed = strata, numbers, batch, seed
        self.together = together
        self.epoch = 0
        self.by_stratum = [np.flatnonzero(strata.of_rows == k) for k in range(len(strata.sizes))]

    @property
    def joint_batch(self) -> int:
        """Rows of the batches of all ranks."""
        return self.batch * (joint.count() if self.together else 1)

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the epoch of the next iteration."""
        self.epoch = epoch

    def state_dict(self) -> dict[str, int]:
        """The number of the next epoch, from which a loop that loads it goes on."""
        return {"epoch": self.epoch}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go on with the epoch that another sampler would have had next."""
        self.set_epoch(state["epoch"])

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
    """The batches of a sampler, epoch after epoch; the state is its position."""

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
        """The number of the epoch, and the number of its batches that were used."""
        return {"epoch": self.epoch, "done": self.done}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Continue from the position of another stream."""
        self.epoch, self.done, self.batches = state["epoch"], state["done"], None


def _passes(rows: np.ndarray, rng: np.random.Generator) -> Iterator[int]:
    """The rows in endless passes, each in another random order."""
    while True:
        yield from rng.permutation(rows).tolist()


class Numbered(Dataset[tuple[int, Any]]):
    """A dataset whose items come with their numbers.

    Raises F0826 for what has no length, or no items by number.
    """

    def __init__(self, dataset: Any):
        if not (hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")):
            refuse(errors.criterion_not_a_dataset(type(dataset).__name__))
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, row: int) -> tuple[int, Any]:
        if isinstance(row, list):
            refuse(errors.criterion_sampler())
        if row >= len(self):
            refuse(errors.criterion_beyond_dataset(row, len(self)))
        return row, self.dataset[row]
