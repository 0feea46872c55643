"""The records of a data source: it gives the columns of a table by name, one at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fccomodel.core.diagnostics import refuse
from fccomodel.core.pages import expect
from fccomodel.data.sources import errors

if TYPE_CHECKING:
    from fccomodel.data.sources._spool import Spool
    from fccomodel.data.sources.drawn_rows import RowSource

#: A range of a mapped file is read at once if it has at most this many rows for each one needed.
READ_AHEAD = 8


@dataclass(frozen=True, eq=False, kw_only=True)
class RawColumn:
    """A column as its source has it.

    values      numbers (n, *shape) of any boolean, integer or floating type, NaN if missing; for
                text, integer positions (n,) in ``categories``, -1 if missing
    categories  the distinct texts, None for numbers
    dtype       the source's own word for the type, for messages
    unusable    why the column cannot be used ("its lists have 2 to 7 values"), or ""
    """

    values: np.ndarray
    categories: tuple[str, ...] | None = None
    dtype: str = ""
    unusable: str = ""

    def take(self, rows: np.ndarray | None) -> RawColumn:
        """The column at ``rows`` (None: all). Rows that are close in a mapped file are read at once."""
        if rows is None or self.unusable:
            return self
        if len(rows) and isinstance(self.values, np.memmap):
            first = int(rows[0])
            span = int(rows[-1]) - first + 1
            if 0 < span <= READ_AHEAD * len(rows):
                width = self.values.strides[0]
                expect(self.values.ctypes.data + first * width, span * width, "soon")
        return RawColumn(values=self.values[rows], categories=self.categories, dtype=self.dtype)


@dataclass(frozen=True, eq=False, kw_only=True)
class RawTable:
    """``n`` rows of named columns. A column is read when it is needed, so unused ones take no memory.

    origin    where the rows come from, in the user's words
    numeric   for every column, in order, whether it holds numbers (``"*"`` means these)
    load      reads a column by its name
    vectors   columns whose rows are arrays of numbers
    hidden    columns that ``"*"`` leaves out (an index that was stored beside the columns)
    parts     reads a column in parts that fit into memory; None if columns are read as a whole
    ready     the model's columns that were prepared, by name
    prepared  the manifest's entry of a prepared table
    indices   groups and orders of prepared rows, see ``BoundTable``
    drawn     columns whose rows are fetched when they are asked for, by name: where from
    notes     sentences about how the rows were read
    """

    origin: str
    n: int
    numeric: Mapping[str, bool]
    load: Callable[[str], RawColumn]
    vectors: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()
    parts: Callable[[str], Iterator[RawColumn]] | None = None
    ready: Mapping[str, Ready] = field(default_factory=dict)
    prepared: Mapping[str, Any] = field(default_factory=dict)
    indices: Mapping[str, Mapping[str, np.ndarray]] = field(default_factory=dict)
    drawn: Mapping[str, RowSource] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def called(self) -> str:
        """The origin as messages name it: a file without its folders."""
        return Path(self.origin).name

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(self.numeric)


@dataclass(frozen=True, eq=False, kw_only=True)
class Ready:
    """A prepared column of the model.

    values    mapped from a file
    encoding  how it was read and scaled
    names     names of a vector's entries
    labels    the labels of a label column, with the ``keys`` that sort them
    """

    values: np.ndarray
    encoding: Mapping[str, Any]
    names: tuple[str, ...] | None = None
    labels: tuple[str, ...] | None = None
    keys: tuple[Any, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Drawing:
    """How the rows of a table are drawn.

    keys       a table of the columns that formulas read; None reads them from the data set, once
    steps      by column what a step does to a row, and ``looks`` what a look does; by name of the model
    workers    processes that fetch rows
    """

    keys: Any = None
    steps: Mapping[str, Any] = field(default_factory=dict)
    looks: Mapping[str, Any] = field(default_factory=dict)
    workers: int = 0

    @property
    def asked(self) -> bool:
        """Whether rows are to be drawn, however small the data are."""
        return self.keys is not None or bool(self.steps) or bool(self.looks) or self.workers > 0


@dataclass(frozen=True, kw_only=True)
class DataRequest:
    """A request to open data for a table or an array of the model.

    name     name of the table or array
    fields   the declared columns in order, which name the parts of a tuple
    folders  folders in which a relative path is looked for, in order
    within   folders below which a pattern or a query may read; () means ``folders``
    options  keys of the table's section in the binding file: ``separator``, ``na``, ``files``
    spool    writes columns to files if they must not be held in memory
    drawn    columns of the source whose rows may be fetched when they are asked for: only nets read them
    drawing  how: keys, transforms, workers
    """

    name: str = "D"
    fields: tuple[str, ...] = ()
    folders: tuple[Path, ...] = ()
    within: tuple[Path, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    spool: Spool | None = None
    drawn: frozenset[str] = frozenset()
    drawing: Drawing = field(default_factory=Drawing)


@dataclass(frozen=True, eq=False)
class Keyed:
    """A data set with a table of the columns that formulas read, so that its items are not read for them."""

    value: Any
    keys: Any


@dataclass(frozen=True, eq=False, kw_only=True)
class DataSource:
    """A kind of data source.

    name      its name
    meaning   a few words for messages
    open      opens it: takes the value and the request, and returns the table
    suffixes  ends of the files that it reads (``open`` gets the path)
    scheme    the word before the colon in texts such as ``sklearn:iris`` (``open`` gets the rest)
    accepts   whether it opens a Python object
    array     reads one array without rows; None if the source has no such arrays
    needs     packages that it imports
    stream    yields the rows in parts, each a table; its third argument are the columns to read as
              texts. None if columns are read one by one
    """

    name: str
    meaning: str
    open: Callable[[Any, DataRequest], RawTable]
    suffixes: tuple[str, ...] = ()
    scheme: str = ""
    accepts: Callable[[Any], bool] = lambda value: False
    array: Callable[[Any, DataRequest], np.ndarray] | None = None
    needs: tuple[str, ...] = ()
    stream: Callable[[Any, DataRequest, frozenset[str]], Generator[RawTable]] | None = None


#: Numbers in one part of a source that is read in parts.
NUMBERS_OF_PART = 1 << 21
#: Rows of a part at least.
FEWEST_ROWS = 1 << 10
#: Units of times, from the coarsest.
UNITS = ("D", "s", "ms", "us", "ns")
#: The message for spans of time.
SPANS = "spans of time are neither numbers nor text; give, say, their seconds"


def rows_of_part(width: int) -> int:
    """Number of rows that are read at once, for rows of ``width`` numbers."""
    return max(FEWEST_ROWS, NUMBERS_OF_PART // max(1, width))


def demand_distinct(names: Sequence[str], what: str) -> None:
    """Raise FccoError (F0506) if two columns have the same name."""
    if repeated := sorted(name for name, count in Counter(names).items() if count > 1):
        refuse(errors.repeated_column(what, repeated[0]))


def absent(value: Any) -> bool:
    """Whether a value stands for a missing one: None, NaN of any type, pandas' NA and NaT."""
    if value is None or type(value) is str:
        return value is None
    try:
        differs = value != value
    except ArithmeticError:  # a signalling NaN
        return True
    except (TypeError, ValueError, RuntimeError):
        return False
    if isinstance(differs, bool | np.bool_):
        return bool(differs)
    return type(value).__name__ == "NAType"


def is_number(value: Any) -> bool:
    """Whether a value is a real number of any type, or a truth value."""
    return isinstance(value, Real | Decimal | np.bool_) and not isinstance(value, np.timedelta64)


def text_of(value: Any) -> str:
    """A value as a text; its type's name if it is too long or too deeply nested."""
    try:
        return str(value)
    except (ValueError, RecursionError):
        return type(value).__name__


def encode_text(values: Any) -> tuple[np.ndarray, tuple[str, ...]]:
    """Texts as positions and distinct texts, in the order of first appearance; missing ones are -1."""
    seen: dict[str, int] = {}
    codes = np.fromiter(
        (-1 if absent(value) else seen.setdefault(text_of(value), len(seen)) for value in values),
        dtype=np.int32,
        count=len(values),
    )
    return codes, tuple(seen)


def from_array(values: np.ndarray, dtype: str = "") -> RawColumn:
    """A NumPy array as a column: numbers without a copy, texts as positions, objects by their contents."""
    dtype = dtype or str(values.dtype)
    kind = values.dtype.kind
    if kind in "biuf":
        return RawColumn(values=values, dtype=dtype)
    if kind in "USTO" and values.ndim == 1:
        return _from_objects(values, dtype)
    if kind == "M" and values.ndim == 1:
        return _from_times(values, dtype)
    if kind == "m":
        return RawColumn(values=values, dtype=dtype, unusable=SPANS)
    if kind in "USTO":
        return RawColumn(values=values, dtype=dtype, unusable="its lists do not hold numbers")
    return RawColumn(
        values=values, dtype=dtype, unusable=f"values of type {dtype} are neither numbers nor text"
    )


def _from_times(values: np.ndarray, dtype: str) -> RawColumn:
    """Times as texts such as ``2020-01-31 12:30:00``, all in the coarsest unit that is exact."""
    gaps = np.isnat(values)

    def exact(unit: str) -> bool:
        """Whether all times are whole numbers of the unit."""
        return bool(((values == values.astype(f"datetime64[{unit}]")) | gaps).all())

    unit: Any = next(unit for unit in UNITS if unit == "ns" or exact(unit))
    written = np.datetime_as_string(values, unit=unit)
    if written.size:
        written = np.char.replace(written, "T", " ")
    texts = written.astype(object)
    texts[gaps] = None
    codes, categories = encode_text(texts)
    return RawColumn(values=codes, categories=categories, dtype=dtype)


def _time(value: Any) -> np.datetime64:
    """A date or a time of Python; in UTC if it has a time zone."""
    if absent(value):
        return np.datetime64("NaT")
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return np.datetime64(value, "us")


def _from_objects(values: np.ndarray, dtype: str) -> RawColumn:
    """Python objects as a column: numbers, vectors or times if all present ones are such, else text."""
    present = [value for value in values.tolist() if not absent(value)]
    if present and all(is_number(value) for value in present):
        return _from_numbers(values, present, dtype)
    if present and all(isinstance(value, list | tuple | np.ndarray) for value in present):
        return _from_lists(values, present, dtype)
    if present and all(isinstance(value, date | np.datetime64) for value in present):
        return _from_times(np.array([_time(value) for value in values.tolist()], "datetime64[us]"), dtype)
    if present and any(isinstance(value, timedelta | np.timedelta64) for value in present):
        return RawColumn(values=values, dtype=dtype, unusable=SPANS)
    if present and isinstance(present[0], bytes):
        return RawColumn(
            values=values, dtype=dtype, unusable="it holds bytes, which stand for no number or text"
        )
    codes, categories = encode_text(values)
    return RawColumn(values=codes, categories=categories, dtype=dtype)


def _from_numbers(values: np.ndarray, present: Sequence[Any], dtype: str) -> RawColumn:
    """Numbers of any kind; those too large for 64 bits become infinite."""
    numbers = np.array(present) if len(present) == len(values) else np.zeros(0, object)
    if numbers.dtype.kind not in "biuf":  # with missing values, or too large for 64 bits
        numbers = np.array([np.nan if absent(value) else _float(value) for value in values.tolist()])
    return RawColumn(values=numbers, dtype=dtype)


def _float(value: Any) -> float:
    """A number as a float, infinite if it is too large."""
    try:
        return float(value)
    except OverflowError:
        if value > 0:
            return np.inf
        return -np.inf


def as_array(value: Any) -> np.ndarray:
    """A sequence as an array; an array of objects if its parts differ in length."""
    try:
        return np.asarray(value)
    except ValueError:
        return np.fromiter(value, dtype=object, count=len(value))


def _from_lists(values: np.ndarray, present: Sequence[Any], dtype: str) -> RawColumn:
    """Lists of numbers as vectors; unusable if they differ in length or some are missing."""
    sizes = sorted({array.size if array.ndim == 0 else len(array) for array in map(as_array, present)})
    if len(present) < len(values):
        return RawColumn(
            values=values, dtype=dtype, unusable=f"{len(values) - len(present)} of its lists are missing"
        )
    if len(sizes) > 1:
        return RawColumn(
            values=values,
            dtype=dtype,
            unusable=f"its lists have {sizes[0]} to {sizes[-1]} values; a vector has one length",
        )
    try:
        stacked = np.stack([as_array(value) for value in values])
    except ValueError:
        return RawColumn(values=values, dtype=dtype, unusable="its lists differ in shape")
    if stacked.dtype.kind not in "biuf":
        return RawColumn(values=values, dtype=dtype, unusable="its lists do not hold numbers")
    return RawColumn(values=stacked, dtype=dtype)
