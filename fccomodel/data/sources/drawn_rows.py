"""Rows that are fetched when they are asked for: of data sets, of folders of images, of arrays on disk.

A column of such rows has a shape and row numbers, and no values in memory. Only nets read it. Steps
fetch the rows of a batch with the transform for steps, at every draw anew; looks, reports and scores
fetch blocks of rows with the transform for looks, and see the same values each time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from fccomodel.core.diagnostics import refuse
from fccomodel.data import errors as drawn_errors
from fccomodel.data.sources import _random_numbers, errors
from fccomodel.data.sources._fetching import Fetching
from fccomodel.data.sources.arrays import to_numpy
from fccomodel.data.sources.base import DataRequest, RawTable

#: rows that are read twice at binding, to see whether they change
PROBED = 24
#: bytes of columns, as float64, up to which a data set that does not change is read into memory
HELD_BYTES = 1 << 26
#: largest brightness of a pixel in an image file
BRIGHTEST = 255.0

Transform = Callable[[Any], Any]


class Reader(Protocol):
    """What rows come from."""

    def read(self, numbers: np.ndarray) -> Mapping[Any, Any]:
        """The values of these rows, by the name of the source's column."""


@dataclass(frozen=True, eq=False)
class ItemReader:
    """The items of a map-style data set; ``names``: of an item's parts, None where these are named."""

    items: Any
    names: tuple[str, ...] | None = None

    def read(self, numbers: np.ndarray) -> dict[Any, list[Any]]:
        """One item after another."""
        values: dict[Any, list[Any]] = {}
        for number in numbers.tolist():
            for name, value in self.parts(self.items[number]).items():
                values.setdefault(name, []).append(value)
        return values

    def parts(self, item: Any) -> dict[Any, Any]:
        """The parts of an item by name."""
        if self.names is None:
            return dict(item)
        if not isinstance(item, tuple | list):
            item = (item,)
        return dict(zip(self.names, item, strict=True))


@dataclass(frozen=True, eq=False)
class ArrayReader:
    """The rows of arrays, which may be mapped from files."""

    arrays: Mapping[str, np.ndarray]

    def read(self, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """All rows of a request at once."""
        return {name: array[numbers] for name, array in self.arrays.items()}


@dataclass(frozen=True, eq=False, kw_only=True)
class SourceColumn:
    """A column: the source's name of it, its transforms, the shape and the type of a row."""

    column: Any
    steps: Transform | None
    looks: Transform | None
    event: tuple[int, ...] = ()
    dtype: np.dtype = np.dtype(np.float32)


@dataclass(eq=False, kw_only=True)
class RowSource:
    """Where the lazy columns of one table come from.

    reader   gives the rows
    what     it is, in messages
    workers  processes that fetch rows; 0: the process of the solver
    random   whether a row has other values at each reading
    parts    the columns by the model's names
    seconds  that one row took, rounded to a power of four
    """

    reader: Reader
    what: str
    workers: int = 0
    random: bool = False
    parts: dict[str, SourceColumn] = field(default_factory=dict)
    seconds: float = 0.0

    @cached_property
    def fetching(self) -> Fetching:
        """Who fetches its rows."""
        return Fetching(self)

    # -------------------------------------------------------------------------------------- one row
    def values(self, numbers: np.ndarray, seed: int | None) -> dict[str, np.ndarray]:
        """The rows with these numbers, by column; ``seed`` of a step's draw, None for a look."""
        if seed is not None:
            with _random_numbers.seeded(seed):
                rows = self._stacked(numbers, self.reader.read(numbers), steps=True)
            return rows
        if not self.random:
            return self._stacked(numbers, self.reader.read(numbers), steps=False)
        single = []
        with _random_numbers.seeded(0):
            for number in numbers.tolist():  # a look sees the same draw of a row each time
                _random_numbers.seed(number)
                one = np.array([number])
                single.append(self._stacked(one, self.reader.read(one), steps=False))
        return {name: np.concatenate([row[name] for row in single]) for name in self.parts}

    def _stacked(
        self, numbers: np.ndarray, read: Mapping[Any, Sequence[Any]], *, steps: bool
    ) -> dict[str, np.ndarray]:
        """The values of some rows, transformed, of one shape; F0539 for one that is not finite."""
        by_name = {}
        for name, part in self.parts.items():
            transform = part.steps if steps else part.looks
            values = read[part.column]
            if transform is None and isinstance(values, np.ndarray):
                rows = values
            else:
                rows = np.stack(
                    [
                        self._row(name, part, int(number), value, transform)
                        for number, value in zip(numbers, values, strict=True)
                    ]
                )
            if rows.dtype.kind == "f" and not np.isfinite(rows).all():
                bad = np.flatnonzero(~np.isfinite(rows.reshape(len(rows), -1)).all(1))
                refuse(drawn_errors.row_not_finite(name, self.what, int(numbers[bad[0]])))
            by_name[name] = rows
        return by_name

    def _row(
        self, name: str, part: SourceColumn, number: int, value: Any, transform: Transform | None
    ) -> np.ndarray:
        """One value as an array of the column's shape."""
        row = numeric(value if transform is None else transform(value), name)
        if row.shape != part.event:
            refuse(errors.shape_of_item(name, number, row.shape, part.event))
        return row

    def path(self, name: str) -> str | None:
        """The .npy file that a column is mapped from, or None if it is not."""
        if not isinstance(self.reader, ArrayReader):
            return None
        array: Any = self.reader.arrays[self.parts[name].column]
        whole = isinstance(array, np.memmap) and str(array.filename or "").endswith(".npy")
        if not whole or self.parts[name].looks is not None:
            return None
        return str(array.filename)

    def __getstate__(self) -> dict[str, Any]:
        """Without workers and what they have fetched."""
        return {name: value for name, value in self.__dict__.items() if name != "fetching"}

    def __deepcopy__(self, memo: Any) -> RowSource:
        """A data set is not copied."""
        return self

    # -------------------------------------------------------------------------------------- binding
    def add(self, name: str, column: Any, steps: Transform | None, looks: Transform | None) -> None:
        """A column of the model; its shape and type are those of a first row.

        Raises F0539 if steps and looks see rows of different shapes.
        """
        with _random_numbers.seeded(0):
            value = self.reader.read(np.array([0]))[column][0]
            row = numeric(value if looks is None else looks(value), name)
        with _random_numbers.seeded(0):
            value = self.reader.read(np.array([0]))[column][0]
            step = numeric(value if steps is None else steps(value), name)
        if step.shape != row.shape:
            refuse(drawn_errors.transformed_shapes(name, step.shape, row.shape))
        self.parts[name] = SourceColumn(
            column=column, steps=steps, looks=looks, event=row.shape, dtype=row.dtype
        )

    def probe(self, total: int) -> None:
        """Read a few rows twice: whether they change, and what a row costs."""
        numbers = np.unique(np.linspace(0, total - 1, PROBED).astype(np.int64))
        with _random_numbers.watched() as drew:
            first = self._stacked(numbers, self.reader.read(numbers), steps=False)
            second = self._stacked(numbers, self.reader.read(numbers), steps=False)
        changed = any(not np.array_equal(first[name], second[name]) for name in self.parts)
        self.random = changed or drew()
        began = time.process_time()
        self.values(numbers, None)
        spent = (time.process_time() - began) / len(numbers)
        self.seconds = 4.0 ** round(np.log(max(spent, 1e-7)) / np.log(4.0))


# ---------------------------------------------------------------------------------------- choosing
@dataclass(frozen=True, eq=False, kw_only=True)
class Chosen:
    """The columns of a source that are drawn: ``names``, all from one ``source``; ``keys``: the table
    that gives the others, if somebody gave one."""

    source: RowSource
    names: tuple[str, ...]
    n: int
    origin: str
    keys: RawTable | None = None

    def beside(self, table: RawTable) -> RawTable:
        """A table with these columns besides its own."""
        if not self.names:
            return table
        own = dict.fromkeys(self.names, True)
        return replace(
            table,
            numeric={**own, **table.numeric},
            vectors=table.vectors | frozenset(self.names),
            drawn=dict.fromkeys(self.names, self.source),
        )

    def beside_keys(self) -> RawTable:
        """The table of keys with these columns. F0539 unless it has as many rows."""
        assert self.keys is not None
        if self.keys.n != self.n:
            refuse(drawn_errors.rows_of_keys(self.origin, self.n, self.keys.n))
        return self.beside(replace(self.keys, origin=self.origin))


def of_arrays(arrays: Mapping[str, np.ndarray], origin: str, request: DataRequest) -> Chosen:
    """Arrays of one length that are drawn."""
    source = RowSource(reader=ArrayReader(arrays), what=origin, workers=request.drawing.workers)
    return Chosen(source=source, names=tuple(arrays), n=len(next(iter(arrays.values()))), origin=origin)


def chosen(reader: Reader, names: Sequence[str], n: int, origin: str, request: DataRequest) -> Chosen:
    """Which parts of a data set's items are drawn: those that only nets read.

    None are if all rows fit into ``HELD_BYTES``, do not change, and nobody asks for it.
    """
    from fccomodel.data import sources

    keys = request.drawing.keys
    key_table = None
    if keys is not None:
        key_table = sources.open(keys, replace(request, drawn=frozenset()))
    lazy_columns = [name for name in names if name in request.drawn]
    if key_table is not None:
        lazy_columns = [name for name in lazy_columns if name not in key_table.numeric]
    own = tuple(map(str, lazy_columns))
    source = RowSource(reader=reader, what=origin, workers=request.drawing.workers)
    if own and key_table is None and not request.drawing.asked and _small(source, own, n):
        own = ()
    return Chosen(source=source, names=own, n=n, origin=origin, keys=key_table)


def _small(source: RowSource, names: Sequence[str], n: int) -> bool:
    """Whether columns that nobody asks to draw can be read once."""
    trial = RowSource(reader=source.reader, what=source.what)
    for name in names:
        trial.add(name, name, None, None)
    trial.probe(n)
    size = sum(n * int(np.prod(part.event, dtype=np.int64)) for part in trial.parts.values()) * 8
    return not trial.random and size <= HELD_BYTES


# ------------------------------------------------------------------------------------------- values
def numeric_or_text(value: Any, name: str) -> np.ndarray:
    """A value as an array: an image in [0, 1], numbers, a text."""
    if _image(value):
        return numeric(value, name)
    return to_numpy(value, name)


def _image(value: Any) -> bool:
    """Whether a value is an image of Pillow, which is not imported."""
    return hasattr(value, "getbands") and hasattr(value, "tobytes")


def numeric(value: Any, name: str) -> np.ndarray:
    """A value as an array of numbers; an image as [channels, height, width] in [0, 1]. F0507 for others."""
    if _image(value):
        pixels = np.asarray(value)
        if pixels.ndim == 2:
            pixels = pixels[..., None]
        return np.ascontiguousarray(pixels.transpose(2, 0, 1)).astype(np.float32) / np.float32(BRIGHTEST)
    array = to_numpy(value, name)
    if array.dtype.kind not in "biuf":
        refuse(errors.row_not_numeric(name, type(value).__name__))
    return array
