"""What a source of data is: something that gives a table's columns by name, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from fccomodel.core.diagnostics import refuse
from fccomodel.data.sources import errors


@dataclass(frozen=True, eq=False, kw_only=True)
class RawColumn:
    """A column as its source has it.

    values      numbers, (n, *shape) of any boolean, integer or floating type (missing = NaN); or, for text, (n,) integer
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
        """The column at ``rows``; itself for None."""
        if rows is None or self.unusable:
            return self
        return RawColumn(values=self.values[rows], categories=self.categories, dtype=self.dtype)


@dataclass(frozen=True, eq=False, kw_only=True)
class RawTable:
    """``n`` rows of named columns, each read when it is asked for, so that what a model does not use is never in memory.

    origin   where the rows come from, as the user called it
    numeric  for every column in order: whether it holds numbers (``"*"`` means these)
    load     reads a column by its name
    vectors  columns whose rows are arrays of numbers
    hidden   columns that ``"*"`` leaves out (an index that was stored beside the columns)
    """

    origin: str
    n: int
    numeric: Mapping[str, bool]
    load: Callable[[str], RawColumn]
    vectors: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()

    @property
    def called(self) -> str:
        """The origin as messages name it: a file without its folders."""
        return Path(self.origin).name

    @property
    def names(self) -> tuple[str, ...]:
        """The columns in their order."""
        return tuple(self.numeric)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the model says about the data to open.

    name     of the table or array
    fields   the declared columns in order, which name the parts of a tuple
    folders  where a relative path is looked for, in order
    options  of the table's section in the binding file: ``separator``, ``na``
    """

    name: str = "D"
    fields: tuple[str, ...] = ()
    folders: tuple[Path, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, kw_only=True)
class DataSource:
    """A kind of data: ``name``, one line of ``meaning``, how it is recognised, and how it is opened.

    suffixes  of the files it reads (``open`` gets the path)
    scheme    of texts such as ``sklearn:iris`` (``open`` gets the rest)
    accepts   whether it opens a Python object
    array     reads one array without rows, where that differs from ``open``
    needs     the packages it imports
    """

    name: str
    meaning: str
    open: Callable[[Any, Request], RawTable]
    suffixes: tuple[str, ...] = ()
    scheme: str = ""
    accepts: Callable[[Any], bool] = lambda value: False
    array: Callable[[Any, Request], np.ndarray] | None = None
    needs: tuple[str, ...] = ()


def demand_distinct(names: Sequence[str], what: str) -> None:
    """F0506 where a name means several columns."""
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        refuse(errors.repeated_column(what, repeated[0]))


def encode_text(values: Any) -> tuple[np.ndarray, tuple[str, ...]]:
    """Texts (any sequence; None or NaN = missing) as (positions, distinct texts in order of first appearance)."""
    seen: dict[str, int] = {}
    codes = np.fromiter(
        (-1 if value is None or value != value else seen.setdefault(str(value), len(seen)) for value in values),
        dtype=np.int32,
        count=len(values),
    )
    return codes, tuple(seen)


def from_array(values: np.ndarray, dtype: str = "") -> RawColumn:
    """A NumPy array as a column: numbers as they are (no copy), text by position; objects by what they hold."""
    dtype = dtype or str(values.dtype)
    kind = values.dtype.kind
    if kind in "biuf":
        return RawColumn(values=values, dtype=dtype)
    if kind in "USTO" and values.ndim == 1:
        return _from_objects(values, dtype)
    if kind == "M" and values.ndim == 1:
        absent = np.isnat(values)
        days = ((values == values.astype("datetime64[D]")) | absent).all()
        texts = np.datetime_as_string(values, unit="D" if days else "s").astype(object)
        texts[absent] = None
        return _from_objects(texts, dtype)
    return RawColumn(values=values, dtype=dtype, unusable=f"values of type {dtype} are neither numbers nor text")


def _from_objects(values: np.ndarray, dtype: str) -> RawColumn:
    """Python objects: numbers if all are (None is missing), equally long sequences as vectors, else text."""
    present = [value for value in values.tolist() if value is not None and not (isinstance(value, float) and value != value)]
    if present and all(isinstance(value, Real | Decimal | np.bool_) for value in present):
        numbers = np.array(present) if len(present) == len(values) else np.zeros(0, object)
        if numbers.dtype.kind not in "biuf":  # with missing values, or too large for 64 bits
            numbers = np.array([np.nan if value is None else float(value) for value in values.tolist()])
        return RawColumn(values=numbers, dtype=dtype)
    if present and all(isinstance(value, list | tuple | np.ndarray) for value in present):
        return _from_lists(values, len(present), dtype)
    if present and isinstance(present[0], bytes):
        return RawColumn(values=values, dtype=dtype, unusable="it holds bytes, which stand for no number or text")
    codes, categories = encode_text(values)
    return RawColumn(values=codes, categories=categories, dtype=dtype)


def _from_lists(values: np.ndarray, present: int, dtype: str) -> RawColumn:
    sizes = sorted({len(value) for value in values if value is not None})
    if present < len(values):
        return RawColumn(values=values, dtype=dtype, unusable=f"{len(values) - present} of its lists are missing")
    if len(sizes) > 1:
        return RawColumn(
            values=values, dtype=dtype, unusable=f"its lists have {sizes[0]} to {sizes[-1]} values; a vector has one length"
        )
    try:
        stacked = np.stack([np.asarray(value) for value in values])
    except ValueError:
        return RawColumn(values=values, dtype=dtype, unusable="its lists differ in shape")
    if stacked.dtype.kind not in "biuf":
        return RawColumn(values=values, dtype=dtype, unusable="its lists do not hold numbers")
    return RawColumn(values=stacked, dtype=dtype)
