"""Columns spooled to files: a source is read in parts, and its columns are mapped from the files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np

from fccomodel.core.diagnostics import refuse
from fccomodel.core.pages import expect
from fccomodel.data.sources import errors
from fccomodel.data.sources.base import DataRequest, DataSource, RawColumn, RawTable, from_array

#: Bytes that are copied at once.
COPIED_BYTES = 1 << 24
#: Beginnings of the names of Arrow's and NumPy's types of times.
TIME_TYPES = ("timestamp", "date", "datetime64")


class Mixed(Exception):
    """A column with numbers in one part and texts in another."""


class Growing:
    """A column that is written to a file part by part.

    Numbers are in the smallest type that holds all parts so far, texts are positions. ``values`` is
    empty, and has their type and shape; ``absent`` says whether all values so far are missing.
    """

    def __init__(self, path: Path, name: str):
        self.path = path
        self.name = name
        self.n = 0
        self.word = ""
        self.unusable = ""
        self.values = np.zeros(0)
        self.categories: dict[str, int] | None = None
        self.absent = True
        self.file = open(path, "wb")  # noqa: SIM115  closed by ``close``

    def add(self, part: RawColumn) -> None:
        """Write the next rows. Raises Mixed if texts meet numbers."""
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
        if self.categories is not None:
            self._promote(np.dtype(np.int32))
            self.absent &= bool((values < 0).all())
        else:
            self._promote(np.result_type(values, self.values) if self.n else values.dtype)
            self.absent &= _missing(values)
        self.values = np.zeros((0, *values.shape[1:]), self.values.dtype)
        self.file.write(np.ascontiguousarray(values, self.values.dtype).data)
        self.n += len(values)

    def _codes(self, part: RawColumn) -> np.ndarray:
        """The positions of a part's texts in ``categories``; -1 for missing ones."""
        if part.categories is None:
            if not _missing(part.values):
                raise Mixed(self.name)
            return np.full(len(part.values), -1, np.int32)
        if self.categories is None:
            if not self.absent:
                raise Mixed(self.name)
            self.categories = {}
            self._rewrite(lambda block: np.full(len(block), -1, np.int32), np.dtype(np.int32))
        known = self.categories
        positions = [known.setdefault(text, len(known)) for text in part.categories]
        return np.array([*positions, -1], np.int32)[part.values]

    def _promote(self, dtype: np.dtype) -> None:
        """Write the rows so far in another type, unless they have it."""
        if self.values.dtype != dtype:
            self._rewrite(lambda block: block.astype(dtype), dtype)

    def _rewrite(self, convert: Callable[[np.ndarray], np.ndarray], dtype: np.dtype) -> None:
        """Write the rows so far in another type, block by block."""
        self.file.close()
        if self.n:
            old, new_path = self._mapped(self.values.dtype), self.path.with_suffix(".other")
            step = max(1, COPIED_BYTES // max(1, old.nbytes // self.n))
            with open(new_path, "wb") as file:
                for start in range(0, self.n, step):
                    file.write(np.ascontiguousarray(convert(old[start : start + step])).data)
            new_path.replace(self.path)
        self.values = self.values.astype(dtype)
        self.file = open(self.path, "ab")  # noqa: SIM115

    def _mapped(self, dtype: np.dtype) -> np.ndarray:
        """The rows so far, mapped from the file."""
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
        """The whole column, mapped from its closed file."""
        if self.unusable:
            return RawColumn(values=np.zeros(0), dtype=self.word, unusable=self.unusable)
        values = self._mapped(self.values.dtype)
        if self.categories is None:
            return RawColumn(values=values, dtype=self.word)
        texts = tuple(self.categories)
        if self.word.startswith(TIME_TYPES):
            in_one_unit = from_array(np.array(texts, "datetime64[ns]"))
            values = np.append(in_one_unit.values, -1).astype(np.int32)[values]
            return RawColumn(values=values, categories=in_one_unit.categories, dtype=self.word)
        return RawColumn(values=values, categories=texts, dtype=self.word)


def _missing(values: np.ndarray) -> bool:
    """Whether all values are missing."""
    return not len(values) or (values.dtype.kind == "f" and bool(np.isnan(values).all()))


class Spool:
    """A folder with a file for each column that was read.

    told   called with progress: what is read, rows so far, rows in all or None
    paths  the source files that were read
    """

    def __init__(self, folder: Path, told: Callable[[str, int, int | None], None] = lambda *_: None):
        self.folder = folder
        self.told = told
        self.paths: list[Path] = []
        self.files = 0

    def opened(self, source: DataSource, value: Any, request: DataRequest) -> RawTable:
        """A source's table, with columns mapped from files."""
        if isinstance(value, Path) and value.is_file():
            self.paths.append(value)
        if source.stream is None:
            return self.over(source.open(value, request))
        return self.streamed(source, value, request)

    def over(self, raw: RawTable) -> RawTable:
        """The table with columns mapped from files; each is read when it is first needed."""
        if raw.ready:
            return raw
        columns_by_name: dict[str, RawColumn] = {}

        def parts(name: str) -> Iterable[RawColumn]:
            """The parts of a column of the source."""
            if raw.parts is not None:
                return raw.parts(name)
            return [raw.load(name)]

        def load(name: str) -> RawColumn:
            """The column, mapped from the spool's file."""
            if name not in columns_by_name:
                growing = self._growing(name)
                with closing(growing):
                    for part in parts(name):
                        growing.add(part)
                        self.told(f"{raw.called}: {name}", growing.n, raw.n)
                columns_by_name[name] = growing.column()
            return columns_by_name[name]

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
        """A new column in a new file."""
        self.files += 1
        return Growing(self.folder / f"{self.files}.bin", name)

    def streamed(self, source: DataSource, value: Any, request: DataRequest) -> RawTable:
        """A source that is read row by row, all columns in one pass.

        The pass is repeated if a column that began with numbers turns out to hold texts.
        """
        texts: frozenset[str] = frozenset()
        while True:
            try:
                return self._all(source, value, request, texts)
            except Mixed as mixed:
                texts |= {str(mixed)}

    def _all(self, source: DataSource, value: Any, request: DataRequest, texts: frozenset[str]) -> RawTable:
        """One pass over a source; the columns ``texts`` are read as texts."""
        assert source.stream is not None
        columns: dict[str, Growing] = {}
        first = None
        n = 0
        with closing(source.stream(value, request, texts)) as parts, ExitStack() as open_files:
            for part in parts:
                if first is None:
                    first = part
                    columns = {name: self._growing(name) for name in part.names}
                    for column in columns.values():
                        open_files.callback(column.close)
                for name, column in columns.items():
                    column.add(part.load(name))
                n += part.n
                self.told(part.called, n, None)
        if first is None:
            refuse(errors.empty_file(str(value)))
        values = {name: column.column() for name, column in columns.items()}
        numeric = {
            name: column.categories is None and (not column.unusable or first.numeric[name])
            for name, column in values.items()
        }
        vectors = frozenset(
            name
            for name in values
            if numeric[name] and (name in first.vectors or values[name].values.ndim > 1)
        )
        return RawTable(
            origin=first.origin,
            n=n,
            numeric=numeric,
            load=values.__getitem__,
            vectors=vectors,
            hidden=first.hidden,
        )
