"""What a source of data is: something that gives a table's columns by name, one at a time."""

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

#: Rows of a file that may be read for each one that is asked for.
NEAR = 8


@dataclass(frozen=True, eq=False, kw_only=True)
class RawColumn:
    """A column as its source has it.

    values      numbers, (n, *shape) of any boolean, integer or floating type (missing = NaN); or,
                for text, (n,) integer
                positions in ``categories`` (missing = -1)
    categories  the distinct texts, None for numbers
    dtype       the source's own word for the type, for messages
    unusable    why the column cannot be used ("its lists have 2 to 7 values"), "" where it can
    """

    values: np.ndarray
    categories: tuple[str, ...] | None = None
    dtype: str = ""
    unusable: str = ""

    def take(self, rows: np.ndarray | None) -> RawColumn:
        """The column at ``rows``; itself for None. What lies together in a mapped file is read at once."""
        if rows is None or self.unusable:
            return self
        if len(rows):
            first, span = (int(rows[0]), int(rows[-1]) - int(rows[0]) + 1)
        else:
            first, span = (0, 0)
        if isinstance(self.values, np.memmap) and 0 < span <= NEAR * len(rows):
            width = self.values.strides[0]
            expect(self.values.ctypes.data + first * width, span * width, "soon")
        return RawColumn(values=self.values[rows], categories=self.categories, dtype=self.dtype)


@dataclass(frozen=True, eq=False, kw_only=True)
class RawTable:
    """``n`` rows of named columns, each read when it is asked for, so that what a model does not use
    is never in memory.

    origin   where the rows come from, as the user called it
    numeric  for every column in order: whether it holds numbers (``"*"`` means these)
    load     reads a column by its name
    vectors  columns whose rows are arrays of numbers
    hidden   columns that ``"*"`` leaves out (an index that was stored beside the columns)
    parts    a column in parts that fit the memory, one after another; None where it is there as a whole
    ready    the model's columns that were prepared, by their names; ``prepared`` is what their
             folder says of the table
    indices  of prepared rows, see ``BoundTable``
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

    @property
    def called(self) -> str:
        """The origin as messages name it: a file without its folders."""
        return Path(self.origin).name

    @property
    def names(self) -> tuple[str, ...]:
        """The columns in their order."""
        return tuple(self.numeric)


@dataclass(frozen=True, eq=False, kw_only=True)
class Ready:
    """A column of the model as it was prepared: ``values`` in a file, and what is said of it
    (``names`` of a vector's parts, ``labels`` with their ``keys``, the ``encoding`` that made it)."""

    values: np.ndarray
    encoding: Mapping[str, Any]
    names: tuple[str, ...] | None = None
    labels: tuple[str, ...] | None = None
    keys: tuple[Any, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the model says about the data to open.

    name     of the table or array
    fields   the declared columns in order, which name the parts of a tuple
    folders  where a relative path is looked for, in order
    within   the folders below which a pattern or a query may read; () for ``folders``
    options  of the table's section in the binding file: ``separator``, ``na``, ``files``
    spool    where columns go that are not to be held in memory
    """

    name: str = "D"
    fields: tuple[str, ...] = ()
    folders: tuple[Path, ...] = ()
    within: tuple[Path, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    spool: Spool | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class DataSource:
    """A kind of data: ``name``, one line of ``meaning``, how it is recognised, and how it is opened.

    suffixes  of the files it reads (``open`` gets the path)
    scheme    of texts such as ``sklearn:iris`` (``open`` gets the rest)
    accepts   whether it opens a Python object
    array     reads one array without rows, where that differs from ``open``
    needs     the packages it imports
    stream    its rows in parts, each a table; ``texts`` are the columns to read as texts. None
              where columns are read one by one
    """

    name: str
    meaning: str
    open: Callable[[Any, Request], RawTable]
    suffixes: tuple[str, ...] = ()
    scheme: str = ""
    accepts: Callable[[Any], bool] = lambda value: False
    array: Callable[[Any, Request], np.ndarray] | None = None
    needs: tuple[str, ...] = ()
    stream: Callable[[Any, Request, frozenset[str]], Generator[RawTable]] | None = None


#: Numbers in a part of a source that is read in parts.
PART_NUMBERS = 1 << 21
#: Smallest number of rows in such a part.
SMALLEST_PART_ROWS = 1 << 10
#: Units of times, from the coarsest.
UNITS = ("D", "s", "ms", "us", "ns")
SPANS = "spans of time are neither numbers nor text; give, say, their seconds"


def rows_of_part(width: int) -> int:
    """Rows that are read at once, of so many numbers each."""
    return max(SMALLEST_PART_ROWS, PART_NUMBERS // max(1, width))


def demand_distinct(names: Sequence[str], what: str) -> None:
    """F0506 where a name means several columns."""
    if repeated := sorted(name for name, count in Counter(names).items() if count > 1):
        refuse(errors.repeated_column(what, repeated[0]))


def absent(value: Any) -> bool:
    """It stands for a missing value: None, NaN of any type, pandas' NA and NaT."""
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
    """A real number of any type, or a truth value."""
    return isinstance(value, Real | Decimal | np.bool_) and not isinstance(value, np.timedelta64)


def text_of(value: Any) -> str:
    """A value as a text; of what is too long or too deep for one, its type's name."""
    try:
        return str(value)
    except (ValueError, RecursionError):
        return type(value).__name__


def encode_text(values: Any) -> tuple[np.ndarray, tuple[str, ...]]:
    """Texts (any sequence; None or NaN = missing) as (positions, distinct texts in order of first
    appearance)."""
    seen: dict[str, int] = {}
    codes = np.fromiter(
        (-1 if absent(value) else seen.setdefault(text_of(value), len(seen)) for value in values),
        dtype=np.int32,
        count=len(values),
    )
    return codes, tuple(seen)


def from_array(values: np.ndarray, dtype: str = "") -> RawColumn:
    """A NumPy array as a column: numbers as they are (no copy), text by position; objects by what they
    hold."""
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
    """Times as texts, ``2020-01-31 12:30:00``, all in the coarsest unit that loses nothing: days have
    no hours."""
    gaps = np.isnat(values)
    unit: Any = next(
        unit
        for unit in UNITS
        if unit == "ns" or ((values == values.astype(f"datetime64[{unit}]")) | gaps).all()
    )
    written = np.datetime_as_string(values, unit=unit)
    texts = (np.char.replace(written, "T", " ") if written.size else written).astype(object)
    texts[gaps] = None
    codes, categories = encode_text(texts)
    return RawColumn(values=codes, categories=categories, dtype=dtype)


def _time(value: Any) -> np.datetime64:
    """A date or a time of Python, in UTC where it has a zone."""
    if absent(value):
        return np.datetime64("NaT")
    aware = isinstance(value, datetime) and value.tzinfo is not None
    return np.datetime64(value.astimezone(UTC).replace(tzinfo=None) if aware else value, "us")


def _from_objects(values: np.ndarray, dtype: str) -> RawColumn:
    """Python objects: numbers if all are (None is missing), equally long sequences as vectors, else text."""
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
    """Numbers of any kind: those that 64 bits do not hold are infinite."""
    if len(present) == len(values):
        numbers = np.array(present)
    else:
        numbers = np.zeros(0, object)
    if numbers.dtype.kind not in "biuf":  # with missing values, or too large for 64 bits
        numbers = np.array([np.nan if absent(value) else _float(value) for value in values.tolist()])
    return RawColumn(values=numbers, dtype=dtype)


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        if value > 0:
            return np.inf
        return -np.inf


def as_array(value: Any) -> np.ndarray:
    """A sequence as an array; of objects where its parts differ in length."""
    try:
        return np.asarray(value)
    except ValueError:
        return np.fromiter(value, dtype=object, count=len(value))


def _from_lists(values: np.ndarray, present: Sequence[Any], dtype: str) -> RawColumn:
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
