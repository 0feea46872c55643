"""Writes vectors to files while they are bound, with one block of rows in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from fccomodel.core.diagnostics import refuse
from fccomodel.data.bind import _encode, errors
from fccomodel.data.bind._encode import Built, Key
from fccomodel.data.bind._rows import RowsInUse, read
from fccomodel.data.bind._spec import ColumnEntry
from fccomodel.data.sources import RawTable, Spool

#: Largest number of entries of a block.
BLOCK = 1 << 21


@dataclass(frozen=True, eq=False, kw_only=True)
class Sink:
    """A folder for bound columns.

    folder   the folder
    dtype    type of stored vectors
    spool    a file with the sources' columns
    told     called with a description, the rows written so far, and all rows
    labels   for each table and column, the labels that occur and their sort keys
    """

    folder: Path
    dtype: np.dtype
    spool: Spool
    told: Callable[[str, int, int | None], None] = lambda *_: None
    labels: dict[tuple[str, str], tuple[tuple[str, ...], tuple[Key, ...]]] = field(default_factory=dict)

    def column(
        self,
        raw: RawTable,
        entry: ColumnEntry,
        columns: Sequence[str],
        rows: RowsInUse,
        what: str,
        rank: int,
        stored: Mapping[str, Any] | None,
    ) -> Built:
        """A column of vectors in a file. It equals the column of ``_encode``, rounded to ``dtype``."""
        section = replace(entry, columns=tuple(columns))
        if _encode.vector(raw, section, _first(rows), what, rank) is not None:

            def vector(block: RowsInUse) -> Built:
                """The vectors of a block of rows."""
                values = _encode.vector(raw, section, block, what, rank)
                assert values is not None
                return values

            return self._written(what, rows, vector)
        learned, notes = self._learned(raw, entry, columns, rows, what, dict(stored or {}))
        smallest: Any = np.inf
        largest: Any = -np.inf

        def features(block: RowsInUse) -> Built:
            """The features of a block of rows; their ranges are noted."""
            nonlocal smallest, largest
            values = _encode.features(raw, entry, columns, block, what, learned)
            if not stored and not entry.scale:
                smallest = np.minimum(smallest, values.values.min(0))
                largest = np.maximum(largest, values.values.max(0))
            return values

        written = self._written(what, rows, features)
        names = written.names
        assert names is not None
        if not stored and not entry.scale and rows.n > 1:
            constant = np.broadcast_to(smallest, len(names)) == largest
            without_intercept = zip(names[: len(names) - entry.intercept], constant, strict=False)
            notes += _encode.constants(what, [name for name, is_constant in without_intercept if is_constant])
        return replace(written, notes=(*notes, *written.notes))

    def _learned(
        self,
        raw: RawTable,
        entry: ColumnEntry,
        columns: Sequence[str],
        rows: RowsInUse,
        what: str,
        stored: dict[str, Any],
    ) -> tuple[dict[str, Any], list[str]]:
        """The encoding that needs all rows: the categories of texts, means and deviations; and notes."""
        notes: list[str] = []
        if "texts" not in stored:
            texts = [name for name in columns if not raw.numeric[name] and entry.encode]
            stored["texts"] = {name: _encode.present(read(raw, name, rows, what)) for name in texts}
        if entry.scale and not stored.get("scale"):
            plain = replace(entry, scale=None, intercept=False)
            moments = Moments()
            names: tuple[str, ...] = ()
            width = max(1, _encode.features(raw, plain, columns, _first(rows), what, stored).values.size)
            for block in _blocks(rows, width):
                values = _encode.features(raw, plain, columns, block, what, stored)
                moments.add(values.values)
                names = values.names or ()
                self.told(f"{what}: means and deviations", moments.n, rows.n)
            divisor = _encode.divisors(moments.mean, moments.deviation, names, what, notes)
            stored["scale"] = {"mean": moments.mean.tolist(), "divisor": divisor.tolist()}
        return stored, notes

    def _written(self, what: str, rows: RowsInUse, built_of: Callable[[RowsInUse], Built]) -> Built:
        """A column made and written block by block; F0536 for a number that its type cannot hold."""
        file = first = None
        done = 0
        notes: dict[str, None] = {}
        for block in _blocks(rows, max(1, built_of(_first(rows)).values.size)):
            built = built_of(block)
            first = first or built
            notes |= dict.fromkeys(built.notes)
            if file is None:
                file = np.lib.format.open_memmap(
                    self.folder / f"{what}.npy", "w+", self.dtype, (rows.n, *built.values.shape[1:])
                )
            with np.errstate(over="ignore"):
                values = built.values.astype(self.dtype)
            if not np.isfinite(values).all():
                refuse(errors.tables.not_in_type(what, str(self.dtype), float(np.abs(built.values).max())))
            file[done : done + block.n] = values
            done += block.n
            self.told(f"{what}: writing", done, rows.n)
        assert first is not None and file is not None
        file.flush()
        return replace(first, values=np.load(self.folder / f"{what}.npy", mmap_mode="c"), notes=tuple(notes))


class Moments:
    """Mean and population deviation of columns, updated block by block (Chan, Golub and LeVeque 1983)."""

    def __init__(self) -> None:
        self.n, self.mean, self.squares = 0, np.zeros(0), np.zeros(0)

    def add(self, x: np.ndarray) -> None:
        """Add the next rows, (n, width)."""
        mean = x.mean(0)
        squares = np.square(x - mean).sum(0)
        if not self.n:
            self.n, self.mean, self.squares = len(x), mean, squares
            return
        n = self.n + len(x)
        difference = mean - self.mean
        self.squares = self.squares + squares + difference**2 * (self.n * len(x) / n)
        self.mean = self.mean + difference * (len(x) / n)
        self.n = n

    @property
    def deviation(self) -> np.ndarray:
        """The standard deviation of each feature."""
        return np.sqrt(self.squares / self.n)


def _first(rows: RowsInUse) -> RowsInUse:
    """The first row alone."""
    return next(_blocks(rows, BLOCK))


def _blocks(rows: RowsInUse, width: int) -> Iterator[RowsInUse]:
    """The rows in order, in blocks of at most ``BLOCK`` numbers."""
    step = max(1, BLOCK // width)
    for start in range(0, rows.n, step):
        stop = min(start + step, rows.n)
        if rows.indices is None:
            indices = np.arange(start, stop)
        else:
            indices = rows.indices[start:stop]
        yield RowsInUse(total=rows.total, indices=indices, parts=rows.parts)
