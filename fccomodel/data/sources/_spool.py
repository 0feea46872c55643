"""Columns in files: what is read of a source in parts, one after another, and mapped into memory from
there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np

from fccomodel.core.diagnostics import refuse
from fccomodel.core.pages import expect
from fccomodel.data.sources import errors
from fccomodel.data.sources.base import DataSource, RawColumn, RawTable, Request, from_array

#: Bytes that are copied at once.
COPIED = 1 << 24
#: Types of Arrow and NumPy whose texts are times.
TIMES = ("timestamp", "date", "datetime64")


class Mixed(Exception):
    """A column has numbers in one part and texts in another."""


class Growing:
    """A column in a file, part by part: numbers in the smallest type that has held all of them, texts
    as positions."""

    def __init__(self, path: Path, name: str):
        self.path, self.name = path, name
        self.n, self.word, self.unusable = 0, "", ""
        self.values = np.zeros(0)  # none of them: their type and shape
        self.categories: dict[str, int] | None = None
        self.absent = True
        self.file = open(path, "wb")  # noqa: SIM115  closed by ``close``

    def add(self, part: RawColumn) -> None:
        """The next rows; raises Mixed where texts meet numbers."""
        self.word = self.word or part.dtype
        self.unusable = self.unusable or part.unusable
        if self.unusable:
            return
        values = part.values
        if part.categories is not None or self.categories is not None:
            values = self._codes(part)
        elif self.n and values.shape[1:] != self.values.shape[1:]:
            self.unusable = (
                f"its lists have {self.values.shape[1:]} and {values.shape[1:]} values; a "
                "vector has one length"
            )
            return
        self._promote(
            np.dtype(np.int32)
            if self.categories is not None
            else np.result_type(values, *[self.values][: self.n])
        )
        self.values = np.zeros((0, *values.shape[1:]), self.values.dtype)
        if self.categories is not None:
            self.absent &= bool((values < 0).all())
        else:
            self.absent &= _missing(values)
        self.file.write(np.ascontiguousarray(values, self.values.dtype).data)
        self.n += len(values)

    def _codes(self, part: RawColumn) -> np.ndarray:
        if part.categories is None:
            if not _missing(part.values):
                raise Mixed(self.name)
            return np.full(len(part.values), -1, np.int32)
        if self.categories is None:
            if not self.absent:
                raise Mixed(self.name)
            self.categories = {}
            self._rewrite(lambda block: np.full(len(block), -1, np.int32), np.dtype(np.int32))
        found = self.categories
        recode = np.array([*(found.setdefault(text, len(found)) for text in part.categories), -1], np.int32)
        return recode[part.values]

    def _promote(self, dtype: np.dtype) -> None:
        if self.values.dtype != dtype:
            self._rewrite(lambda block: block.astype(dtype), dtype)

    def _rewrite(self, made: Callable[[np.ndarray], np.ndarray], dtype: np.dtype) -> None:
        """The rows so far in another type."""
        self.file.close()
        if self.n:
            old, beside = self._mapped(self.values.dtype), self.path.with_suffix(".other")
            with open(beside, "wb") as file:
                for start in range(0, self.n, step := max(1, COPIED // (old.nbytes // self.n or 1))):
                    file.write(np.ascontiguousarray(made(old[start : start + step])).data)
            beside.replace(self.path)
        self.values = self.values.astype(dtype)
        self.file = open(self.path, "ab")  # noqa: SIM115

    def _mapped(self, dtype: np.dtype) -> np.ndarray:
        shape = (self.n, *self.values.shape[1:])
        if not np.prod(shape):
            return np.zeros(shape, dtype)
        values = np.memmap(self.path, dtype, "c", shape=shape)
        expect(values.ctypes.data, values.nbytes, "scattered")  # rows of many columns are read in turns
        return values

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    def column(self) -> RawColumn:
        """The whole, mapped from its file, which is closed."""
        if self.unusable:
            return RawColumn(values=np.zeros(0), dtype=self.word, unusable=self.unusable)
        values, texts = self._mapped(self.values.dtype), tuple(self.categories or ())
        if self.categories is not None and self.word.startswith(TIMES):
            again = from_array(np.array(texts, "datetime64[ns]"))  # all of them in one unit
            values = np.append(again.values, -1).astype(np.int32)[values]
            return RawColumn(values=values, categories=again.categories, dtype=self.word)
        return RawColumn(
            values=values, categories=None if self.categories is None else texts, dtype=self.word
        )


def _missing(values: np.ndarray) -> bool:
    return not len(values) or values.dtype.kind == "f" and bool(np.isnan(values).all())


class Spool:
    """Columns of sources, each in a file of a folder. ``told`` hears of rows that are read; ``paths``
    are the files of them."""

    def __init__(self, folder: Path, told: Callable[[str, int, int | None], None] = lambda *_: None):
        self.folder, self.told = folder, told
        self.paths: list[Path] = []
        self.files = 0

    def opened(self, source: DataSource, value: Any, request: Request) -> RawTable:
        """A source whose columns are mapped from files."""
        if isinstance(value, Path) and value.is_file():
            self.paths.append(value)
        if source.stream is None:
            return self.over(source.open(value, request))
        return self.streamed(source, value, request)

    def over(self, raw: RawTable) -> RawTable:
        """The same table; a column is read once, when it is asked for."""
        if raw.ready:
            return raw
        kept: dict[str, RawColumn] = {}

        def parts(name: str) -> Iterable[RawColumn]:
            """The parts of a column of the source."""
            if raw.parts is not None:
                return raw.parts(name)
            return [raw.load(name)]

        def load(name: str) -> RawColumn:
            """The column, mapped from the spool's file."""
            if name not in kept:
                growing = self._growing(name)
                with closing(growing):
                    for part in parts(name):
                        growing.add(part)
                        self.told(f"{raw.called}: {name}", growing.n, raw.n)
                kept[name] = growing.column()
            return kept[name]

        def pieces(name: str) -> Iterator[RawColumn]:
            """The column as one piece."""
            yield load(name)

        return RawTable(
            origin=raw.origin,
            n=raw.n,
            numeric=raw.numeric,
            load=load,
            vectors=raw.vectors,
            hidden=raw.hidden,
            parts=pieces,
        )

    def _growing(self, name: str) -> Growing:
        self.files += 1
        return Growing(self.folder / f"{self.files}.bin", name)

    def streamed(self, source: DataSource, value: Any, request: Request) -> RawTable:
        """A source that is read row by row: all of its columns in one pass, again where a column turns
        out to be of texts."""
        texts: frozenset[str] = frozenset()
        while True:
            try:
                return self._all(source, value, request, texts)
            except Mixed as mixed:
                texts |= {str(mixed)}

    def _all(self, source: DataSource, value: Any, request: Request, texts: frozenset[str]) -> RawTable:
        assert source.stream is not None
        columns: dict[str, Growing] = {}
        first, n = None, 0
        with closing(source.stream(value, request, texts)) as parts, ExitStack() as open_files:
            for part in parts:
                if first is None:
                    first, columns = part, {name: self._growing(name) for name in part.names}
                    for column in columns.values():
                        open_files.callback(column.close)
                for name, column in columns.items():
                    column.add(part.load(name))
                n += part.n
                self.told(part.called, n, None)
        if first is None:
            refuse(errors.empty_file(str(value)))
        kept = {name: column.column() for name, column in columns.items()}
        numeric = {
            name: of.categories is None and (not of.unusable or first.numeric[name])
            for name, of in kept.items()
        }
        vectors = frozenset(
            name for name in kept if numeric[name] and (name in first.vectors or kept[name].values.ndim > 1)
        )
        return RawTable(
            origin=first.origin,
            n=n,
            numeric=numeric,
            load=kept.__getitem__,
            vectors=vectors,
            hidden=first.hidden,
        )
