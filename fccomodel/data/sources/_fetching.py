"""Rows of a source as tensors, fetched here or by worker processes; the last ones are kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fccomodel.core import process
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.lazy import torch

if TYPE_CHECKING:
    from fccomodel.data.sources.drawn_rows import RowSource

#: bytes of the batches that are kept after a step has read them: it asks for some again
KEPT_BYTES = 1 << 26
#: rows of a look from which on workers share them
SHARED_ROWS = 32
#: requests that each worker is ahead
AHEAD = 2

#: Row numbers that are asked for, with the seed of a step, or None of a look.
Asked = tuple[np.ndarray, int | None]


class Fetching:
    """Fetches the rows of a source.

    kept     rows of the last requests, by seed and row numbers
    waiting  the requests that workers have not answered, in order
    coming   the answers to these
    loaders  by use, the requests of workers and the loader that runs them
    """

    def __init__(self, source: RowSource):
        self.source = source
        self.kept: OrderedDict[Any, dict[str, Any]] = OrderedDict()
        self.waiting: list[Any] = []
        self.coming: Any = None
        self.loaders: dict[str, Any] = {}

    def fetch(self, column: str, numbers: np.ndarray, seed: int | None) -> Any:
        """The rows of a column, a tensor; those that workers have fetched, or fetched here."""
        if seed is None:
            return self._looked_at(column, numbers)
        key = (seed, numbers.tobytes())
        if key not in self.kept and key in self.waiting:
            while key not in self.kept:
                self._keep(self.waiting.pop(0), _found(next(self.coming)))
        if key not in self.kept:
            self._keep(key, _tensors(self.source.values(numbers, seed)))
        return self.kept[key][column]

    def _looked_at(self, column: str, numbers: np.ndarray) -> Any:
        """The rows of a look; workers share them where they are many."""
        if not self.source.workers or len(numbers) < SHARED_ROWS:
            return _tensors(self.source.values(numbers, None))[column]
        requests = [(part, None) for part in np.array_split(numbers, self.source.workers)]
        parts = [_found(one)[column] for one in self._by_workers("looks", requests)]
        return torch.cat(parts)

    def _keep(self, key: Any, rows: dict[str, Any]) -> None:
        """Rows of a request, kept as long as there is room."""
        self.kept[key] = rows
        size = sum(value.nbytes for value in rows.values())
        while len(self.kept) > 1 and len(self.kept) * size > KEPT_BYTES:
            self.kept.popitem(last=False)

    def ahead(self, requests: Sequence[Asked]) -> None:
        """The requests of the next steps, in their order, for workers to begin with."""
        if not self.source.workers:
            return
        known = dict.fromkeys((seed, numbers.tobytes()) for numbers, seed in requests)
        by_key = {(seed, numbers.tobytes()): (numbers, seed) for numbers, seed in requests}
        self.waiting = [key for key in known if key not in self.kept]
        self.coming = self._by_workers("steps", [by_key[key] for key in self.waiting])

    def _by_workers(self, use: str, requests: Sequence[Asked]) -> Iterator[Any]:
        """The answers of workers, in the order of the requests."""
        from torch.utils.data import DataLoader

        if use not in self.loaders:
            feed = Feed()
            with process.own_randomness():
                loader: Any = DataLoader(
                    Answers(self.source),  # type: ignore[arg-type]
                    sampler=feed,
                    batch_size=None,
                    num_workers=self.source.workers,
                    prefetch_factor=AHEAD,
                    persistent_workers=True,
                )
            self.loaders[use] = feed, loader
        feed, loader = self.loaders[use]
        feed.requests = list(requests)
        with process.own_randomness():
            return iter(loader)

    def close(self) -> None:
        """Send the workers home; they are called again when they are needed."""
        self.coming, self.waiting = None, []
        self.loaders.clear()
        self.kept.clear()


class Feed:
    """The requests that workers answer, in order: the sampler of their DataLoader."""

    def __init__(self) -> None:
        self.requests: list[Asked] = []

    def __iter__(self) -> Iterator[Asked]:
        return iter(self.requests)

    def __len__(self) -> int:
        return len(self.requests)


class Answers:
    """A data set of requests, which a worker reads: the rows, or the errors of reading them."""

    def __init__(self, source: RowSource):
        self.source = source

    def __getitem__(self, request: Asked) -> dict[str, Any] | list[Any]:
        try:
            return _tensors(self.source.values(*request))
        except FccoError as error:
            return list(error.diagnostics)


def _found(answer: dict[str, Any] | list[Any]) -> dict[str, Any]:
    """The rows of an answer; raises the errors of a worker."""
    if isinstance(answer, list):
        raise FccoError(answer)
    return answer


def _tensors(rows: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Arrays as tensors; those that cannot be written to are copied."""
    return {
        name: torch.from_numpy(np.require(value, requirements=["W", "C"])) for name, value in rows.items()
    }
