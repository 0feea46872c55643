"""Vectors that are written to files while they are bound: their rows in blocks, of which one is in
memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from fccomodel.core.diagnostics import refuse
from fccomodel.data.bind import _encode, errors
from fccomodel.data.bind._encode import Built, Key
from fccomodel.data.bind._rows import Rows, read
from fccomodel.data.bind._spec import Entry
from fccomodel.data.sources import RawTable, Spool

#: Numbers of a block.
BLOCK = 1 << 21


@dataclass(frozen=True, eq=False, kw_only=True)
class Sink:
    """Where bound columns go. ``dtype`` of vectors; ``told`` hears of rows that are written; ``spool``
    has the sources' columns.

    labels   by table and column the labels that the rows have, with the keys that they are sorted by
    """

    folder: Path
    dtype: np.dtype
    spool: Spool
    told: Callable[[str, int, int | None], None] = lambda *_: None
    labels: dict[tuple[str, str], tuple[tuple[str, ...], tuple[Key, ...]]] = field(default_factory=dict)

    def column(
        self,
        raw: RawTable,
        entry: Entry,
        columns: Sequence[str],
        rows: Rows,
        what: str,
        rank: int,
        stored: Mapping[str, Any] | None,
    ) -> Built:
        """A vector column, in a file: equal to that of ``_encode`` but for the rounding of its type."""
        given = replace(entry, columns=tuple(columns))
        if _encode.vector(raw, given, _first(rows), what, rank) is not None:

            def vector(block: Rows) -> Built:
                """The vectors of a block of rows."""
                built = _encode.vector(raw, given, block, what, rank)
                assert built is not None
                return built

            return self._written(what, rows, vector)
        learned, notes = self._learned(raw, entry, columns, rows, what, dict(stored or {}))
        low, high = [np.inf], [-np.inf]

        def features(block: Rows) -> Built:
            """The features of a block of rows; keeps their ranges."""
            built = _encode.features(raw, entry, columns, block, what, learned)
            if not stored and not entry.scale:
                low[0], high[0] = (
                    np.minimum(low[0], built.values.min(0)),
                    np.maximum(high[0], built.values.max(0)),
                )
            return built

        written = self._written(what, rows, features)
        assert written.names is not None
        if not stored and not entry.scale and rows.n > 1:
            flat = (np.broadcast_to(low[0], len(written.names)) == high[0])[
                : len(written.names) - entry.intercept
            ]
            notes += _encode.constants(
                what, [name for name, same in zip(written.names, flat, strict=False) if same]
            )
        return replace(written, notes=(*notes, *written.notes))

    def _learned(
        self,
        raw: RawTable,
        entry: Entry,
        columns: Sequence[str],
        rows: Rows,
        what: str,
        stored: dict[str, Any],
    ) -> tuple[dict[str, Any], list[str]]:
        """What all rows say that a block of them does not: the categories of texts, means and deviations."""
        notes: list[str] = []
        if "texts" not in stored:
            texts = [name for name in columns if not raw.numeric[name] and entry.encode]
            stored["texts"] = {name: _encode.present(read(raw, name, rows, what)) for name in texts}
        if entry.scale and not stored.get("scale"):
            plain, moments = replace(entry, scale=None, intercept=False), Moments()
            names: tuple[str, ...] = ()
            width = max(1, _encode.features(raw, plain, columns, _first(rows), what, stored).values.size)
            for block in _blocks(rows, width):
                built = _encode.features(raw, plain, columns, block, what, stored)
                moments.add(built.values)
                names = built.names or ()
                self.told(f"{what}: means and deviations", moments.n, rows.n)
            divisor = _encode.divisors(moments.mean, moments.deviation, names, what, notes)
            stored["scale"] = {"mean": moments.mean.tolist(), "divisor": divisor.tolist()}
        return stored, notes

    def _written(self, what: str, rows: Rows, built_of: Callable[[Rows], Built]) -> Built:
        """A column made and written block by block; F0536 for a number that its type does not hold."""
        file, first, done, notes = None, None, 0, dict[str, None]()
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
    """Mean and population deviation of columns, block by block, each with its own mean (Chan, Golub
    and LeVeque 1983)."""

    def __init__(self) -> None:
        self.n, self.mean, self.squares = 0, np.zeros(0), np.zeros(0)

    def add(self, x: np.ndarray) -> None:
        """The next rows, (n, width)."""
        mean = x.mean(0)
        squares = np.square(x - mean).sum(0)
        if not self.n:
            self.n, self.mean, self.squares = len(x), mean, squares
            return
        n, apart = self.n + len(x), mean - self.mean
        self.squares = self.squares + squares + apart**2 * (self.n * len(x) / n)
        self.mean = self.mean + apart * (len(x) / n)
        self.n = n

    @property
    def deviation(self) -> np.ndarray:
        """The standard deviation of each feature."""
        return np.sqrt(self.squares / self.n)


def _first(rows: Rows) -> Rows:
    """The first row alone."""
    return next(_blocks(rows, BLOCK))


def _blocks(rows: Rows, width: int) -> Iterator[Rows]:
    """The rows in order, in blocks of at most ``BLOCK`` numbers."""
    step = max(1, BLOCK // width)
    for start in range(0, rows.n, step):
        stop = min(start + step, rows.n)
        if rows.indices is None:
            indices = np.arange(start, stop)
        else:
            indices = rows.indices[start:stop]
        yield Rows(total=rows.total, indices=indices, parts=rows.parts)
