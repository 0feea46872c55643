"""A column whose rows are fetched when they are asked for; where from is ``data/sources/drawn_rows.py``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fccomodel.core.lazy import torch

if TYPE_CHECKING:
    from fccomodel.data.sources.drawn_rows import RowSource, SourceColumn


@dataclass(frozen=True, eq=False)
class DrawnColumn:
    """A column whose rows are fetched when they are asked for; ``at``: their numbers in the source.

    It stands in a table where others have an array, and in ``MappedTensor`` where others have a file.
    """

    source: RowSource
    name: str
    at: np.ndarray

    @property
    def part(self) -> SourceColumn:
        """The column as its source describes it."""
        return self.source.parts[self.name]

    @property
    def shape(self) -> tuple[int, ...]:
        """(rows, *shape of a row)."""
        return (*self.at.shape, *self.part.event)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of entries."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """The bytes that all rows would take."""
        return self.size * self.dtype.itemsize

    @property
    def dtype(self) -> np.dtype:
        """The type of an entry."""
        return self.part.dtype

    @property
    def device(self) -> Any:
        """The device on which rows are fetched."""
        return torch.device("cpu")

    @property
    def changing(self) -> bool:
        """Whether steps may see a row otherwise each time they draw it."""
        return self.source.random or self.part.steps is not None

    def numel(self) -> int:
        """The number of entries."""
        return self.size

    def __len__(self) -> int:
        return len(self.at)

    def __getitem__(self, index: Any) -> Any:
        """Other rows, not fetched yet; entries of rows are."""
        if isinstance(index, tuple):
            first, *rest = index
        else:
            first, rest = index, []
        if isinstance(first, torch.Tensor):
            first = first.cpu().numpy()
        view = DrawnColumn(self.source, self.name, np.asarray(self.at[first]))
        if rest:
            return view.fetched()[(slice(None),) * view.at.ndim + tuple(rest)]
        return view

    def fetched(self, seed: int | None = None) -> Any:
        """The rows as a tensor, as looks see them, or as a step with this seed does."""
        return self.source.fetching.fetch(self.name, self.at.reshape(-1), seed).reshape(self.shape)

    def to(self, *place: Any) -> Any:
        """The rows as a tensor of a type, on a device."""
        return self.fetched().to(*place)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        rows = self.fetched().numpy()
        if dtype is None:
            return rows
        return rows.astype(dtype)

    def drawn(self, index: Any, seed: Any) -> Any:
        """The rows with these numbers as a step sees them: transformed anew for each seed."""
        return self[index].fetched(int(seed))

    def ahead(self, indices: Sequence[Any], seeds: Any) -> None:
        """Row numbers, (steps, rows), that the next steps will draw with these seeds."""
        if not self.source.workers:
            return
        numbers = [self.at[index.cpu().numpy()].reshape(len(index), -1) for index in indices]
        requests = [(rows[k], seed) for k, seed in enumerate(seeds.tolist()) for rows in numbers]
        self.source.fetching.ahead(requests)


def drawn(values: Any) -> bool:
    """Whether a column's rows are fetched when they are asked for."""
    return isinstance(values, DrawnColumn)


def same_rows(a: Any, b: Any) -> bool:
    """Whether two columns are the same rows of one source."""
    return drawn(a) and drawn(b) and a.source is b.source and a.name == b.name and np.array_equal(a.at, b.at)
