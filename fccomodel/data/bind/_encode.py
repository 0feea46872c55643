"""Makes the model's columns from raw columns: maps, one-hot blocks, scaling, group keys.

Categories, means and deviations are learned from the rows and returned as a JSON-like record. If such a
record is given, it is used, and nothing is learned.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fccomodel.core.diagnostics import refuse
from fccomodel.data.bind import errors
from fccomodel.data.bind._rows import (
    NonFinite,
    RowsInUse,
    count_non_finite,
    demand_all,
    demand_finite,
    read,
    writable,
)
from fccomodel.data.bind._spec import ColumnEntry
from fccomodel.data.bind.errors import words
from fccomodel.data.sources import RawColumn, RawTable

#: Size of the buffer for squared deviations from the mean, in bytes.
BUFFER = 1 << 22

#: From here on not every whole number is a float64.
LARGEST_EXACT = 2.0**53

#: Sort key of a label, for each part of a combined label: numbers come before texts.
Key = tuple[tuple[int, float, str], ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Built:
    """A column of the model.

    values     shape (n, *shape); for a column of labels, positions in ``labels``
    names      names of a vector's entries; None if the data do not name them
    labels     the labels that occur, in order
    keys       the sort keys of the labels
    encoding   a record with which the column can be made from other rows
    notes      sentences for the report
    """

    values: np.ndarray
    names: tuple[str, ...] | None = None
    labels: tuple[str, ...] | None = None
    keys: tuple[Key, ...] = ()
    encoding: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def spelled(value: Any) -> str:
    """A value as a key of a ``map`` writes it: ``1``, ``0.5``, ``True``."""
    if isinstance(value, np.bool_ | np.integer):
        return str(value.item())
    return str(value)


# ------------------------------------------------------------------------------------------ numbers
def number(
    raw: RawTable,
    entry: ColumnEntry,
    rows: RowsInUse,
    what: str,
    stored: Mapping[str, Any] | None,
    domain: Sequence[float] = (),
) -> Built:
    """A column with one number per row: the source's column, mapped and scaled if the entry says so.

    raw      the source
    entry    the entry of the column
    rows     the rows in use
    what     the column's name, for messages
    stored   the record of an earlier binding
    domain   the numbers that the model allows, for messages
    """
    stored = stored or {}
    name = entry.columns[0]
    column = read(raw, name, rows, what)
    if column.values.ndim != 1:
        refuse(errors.columns.vector_for_number(what, name, column.values.shape[1:]))
    notes: list[str] = []
    mapping = stored.get("map") if entry.map is None else entry.map
    record: dict[str, Any] = {"kind": "number", "column": name, "map": None}
    if mapping is not None:
        values = np.asarray(_mapped(column, mapping, name, what, notes), float)
        record["map"] = dict(mapping)
        record["text"] = column.categories is not None
    else:
        if column.categories is not None:
            refuse(errors.columns.text(what, name, present(column), domain))
        demand_finite(column, name, rows, what)
        values = writable(column.values)
    if entry.scale or stored.get("scale"):
        matrix = values[:, None].copy()
        matrix, record["scale"] = _scaled(matrix, stored.get("scale"), (name,), what, notes)
        values = matrix[:, 0]
    return Built(values=values, encoding=record, notes=tuple(notes))


def present(column: RawColumn) -> list[str]:
    """The texts that occur in a column, sorted."""
    assert column.categories is not None
    used = np.unique(column.values)
    return sorted({column.categories[code] for code in used if code >= 0})


def _mapped(
    column: RawColumn,
    mapping: Mapping[str, Any],
    name: str,
    what: str,
    notes: list[str],
    *,
    numeric: bool = True,
) -> np.ndarray:
    """The values of all rows under a ``map``.

    Keys are compared as texts. In a column of numbers they are compared as numbers too. F0514 for a
    value without a key.
    """
    is_text = column.categories is not None
    distinct, inverse = _distinct_texts(column)
    by_text = {str(key): value for key, value in mapping.items()}
    by_number = {}
    for key, value in by_text.items():
        parsed = _as_number(key)
        if parsed is not None:
            by_number[parsed] = value
    results: list[Any] = []
    without_key = []
    seen_numbers = set()
    for text in distinct:
        parsed = None if is_text else _as_number(text)
        if parsed is not None:
            seen_numbers.add(parsed)
        if text in by_text:
            results.append(by_text[text])
        elif parsed is not None and parsed in by_number:
            results.append(by_number[parsed])
        else:
            without_key.append(text)
    if without_key:
        refuse(errors.columns.not_in_map(what, name, without_key, distinct, list(by_text)))
    values = set(distinct)
    unused = [key for key in by_text if key not in values and _as_number(key) not in seen_numbers]
    if unused:
        notes.append(f"{what}: map names {words.texts(unused)}, which column {name} does not hold")
    if any(isinstance(value, str) for value in results):
        results = [str(value) for value in results]
        if numeric:
            refuse(errors.binding_file.map_of_number(what))
    return np.asarray(results)[inverse]


def _distinct_texts(column: RawColumn) -> tuple[list[str], np.ndarray]:
    """The distinct values of a column as texts (``nan`` for missing), and for each row the place of its
    value."""
    if column.categories is None:
        values, inverse = np.unique(column.values, return_inverse=True)
        return [spelled(value) for value in values], inverse
    texts = [*column.categories, "nan"]
    codes = np.where(column.values < 0, len(column.categories), column.values)
    used = np.unique(codes)
    return [texts[code] for code in used], np.searchsorted(used, codes)


def _as_number(text: str) -> float | None:
    """A text as a number, with ``true`` as 1 and ``false`` as 0; None for other texts and for NaN."""
    text = {"true": "1", "false": "0"}.get(text.lower(), text)
    try:
        value = float(text)
    except ValueError:
        return None
    if math.isnan(value):
        return None
    return value


# ----------------------------------------------------------------------------------------- features
def vector(raw: RawTable, entry: ColumnEntry, rows: RowsInUse, what: str, rank: int) -> Built | None:
    """A column that holds arrays of the declared rank already; None if the entry needs more than that."""
    if len(entry.columns) != 1 or entry.columns == "*" or entry.encode or entry.scale or entry.intercept:
        return None
    name = entry.columns[0]
    if not raw.numeric[name]:
        return None
    column = read(raw, name, rows, what)
    if column.values.ndim != rank + 1 or rank == 0:
        if rank > 1:
            refuse(errors.columns.axes_of_column(what, rank, name, column.values.ndim - 1))
        return None
    demand_finite(column, name, rows, what)
    return Built(values=writable(column.values), encoding={"kind": "vector", "column": name})


def features(
    raw: RawTable,
    entry: ColumnEntry,
    columns: Sequence[str],
    rows: RowsInUse,
    what: str,
    stored: Mapping[str, Any] | None,
) -> Built:
    """A matrix of features: numeric columns in their order, a one-hot block for each text column with
    its categories sorted, and the intercept.

    (n, width) float64, filled column by column in place; scaled if the entry says so, but for the
    intercept.
    """
    stored = stored or {}
    raw = _as_learned(raw, stored, what)
    texts = [name for name in columns if not raw.numeric[name]]
    if texts and not entry.encode:
        refuse(errors.columns.texts_of_vector(what, texts, present(read(raw, texts[0], rows, what))))
    numbers = [name for name in columns if raw.numeric[name]]
    # Columns that decide the width are read first; the others when their turn comes.
    read_first = {name: read(raw, name, rows, what) for name in texts}
    read_first |= {name: read(raw, name, rows, what) for name in numbers if name in raw.vectors}
    categories = {}
    for name in texts:
        known = stored.get("texts", {}).get(name)
        categories[name] = list(known or present(read_first[name]))
    widths = dict.fromkeys(numbers, 1)
    for name in numbers:
        if name in read_first:
            widths[name] = math.prod(read_first[name].values.shape[1:])
    width = sum(widths.values()) + sum(map(len, categories.values()))
    x = np.empty((rows.n, width + entry.intercept))
    non_finite: list[tuple[str, NonFinite | None]] = []
    names: list[str] = []
    notes: list[str] = []
    for name in numbers:
        column = read_first.pop(name, None) or read(raw, name, rows, what)
        non_finite.append((name, count_non_finite(column)))
        start = len(names)
        if name in raw.vectors:
            names += [f"{name}[{k + 1}]" for k in range(widths[name])]
        else:
            names.append(name)
        x[:, start : len(names)] = column.values.reshape(rows.n, -1)
    for name in texts:
        column = read_first.pop(name)
        non_finite.append((name, count_non_finite(column)))
        start = len(names)
        names += [f"{name}={category}" for category in categories[name]]
        unseen = _one_hot(x[:, start : len(names)], column, categories[name])
        if unseen:
            subject = "1 row has" if unseen == 1 else f"{unseen} rows have"
            notes.append(f"{what}: {subject} a value of {name} {words.UNSEEN}: all zeros")
    demand_all(non_finite, rows, what)
    record: dict[str, Any] = {
        "kind": "features",
        "numbers": numbers,
        "texts": categories,
        "intercept": entry.intercept,
    }
    if entry.scale:
        _, record["scale"] = _scaled(x[:, :width], stored.get("scale"), names, what, notes)
    elif not stored and rows.n > 1:
        notes += constants(what, [name for k, name in enumerate(names) if x[:, k].min() == x[:, k].max()])
    if entry.intercept:
        x[:, width] = 1.0
        names.append("intercept")
    return Built(values=x, names=tuple(names), encoding=record | {"names": names}, notes=tuple(notes))


def _as_learned(raw: RawTable, stored: Mapping[str, Any], what: str) -> RawTable:
    """The table with its columns as an earlier binding read them: numbers, or texts.

    Other rows may have another type for the same values: a frame of objects, or codes 1, 2, ... that were
    texts. F0512 for texts that are no numbers in a column that had numbers.
    """
    numbers, texts = stored.get("numbers", ()), stored.get("texts", {})
    changed: dict[str, RawColumn] = {}
    for name in numbers:
        if not raw.numeric.get(name, True):
            changed[name] = _numbers_of(raw.load(name), name, what)
    for name in texts:
        if raw.numeric.get(name, False) and name not in raw.vectors:
            changed[name] = _texts_of(raw.load(name))
    if not changed:
        return raw
    numeric = {name: (name in numbers) if name in changed else kind for name, kind in raw.numeric.items()}
    return replace(
        raw, numeric=numeric, load=lambda name: changed[name] if name in changed else raw.load(name)
    )


def _numbers_of(column: RawColumn, name: str, what: str) -> RawColumn:
    """A column of texts as the numbers that they spell."""
    assert column.categories is not None
    numbers = [_as_number(text) for text in column.categories]
    if others := [text for text, value in zip(column.categories, numbers, strict=True) if value is None]:
        refuse(errors.columns.no_longer_numbers(what, name, sorted(others)))
    return RawColumn(values=np.array([*numbers, np.nan], float)[column.values], dtype=column.dtype)


def _texts_of(column: RawColumn) -> RawColumn:
    """A column of numbers as the texts that spell them."""
    texts, codes = _distinct_texts(column)
    if "nan" in texts:
        codes = np.where(codes == texts.index("nan"), -1, codes)
    return RawColumn(values=codes, categories=tuple(texts), dtype=column.dtype)


def _one_hot(block: np.ndarray, column: RawColumn, categories: Sequence[str]) -> int:
    """Fill a one-hot block, (rows, categories); returns the number of rows with another category."""
    assert column.categories is not None
    place = {category: k for k, category in enumerate(categories)}
    recode = np.array([*(place.get(category, -1) for category in column.categories), -1], np.int64)
    places = recode[column.values]
    block[:] = 0.0
    known = np.flatnonzero(places >= 0)
    block[known, places[known]] = 1.0
    return len(places) - len(known)


def _scaled(
    x: np.ndarray, stored: Mapping[str, Any] | None, names: Sequence[str], what: str, notes: list[str]
) -> tuple[np.ndarray, dict[str, list[float]]]:
    """Scale the columns of x in place: (x - mean) / population deviation.

    The deviation of a constant column counts as 1, so that the column becomes 0.
    """
    if stored:
        mean, divisor = np.asarray(stored["mean"], float), np.asarray(stored["divisor"], float)
    else:
        mean = x.mean(0)
        divisor = divisors(mean, _deviation(x, mean), names, what, notes)
    x -= mean
    x /= divisor
    return x, {"mean": mean.tolist(), "divisor": divisor.tolist()}


def divisors(
    mean: np.ndarray, deviation: np.ndarray, names: Sequence[str], what: str, notes: list[str]
) -> np.ndarray:
    """The divisors of columns: their deviations, or 1 for a constant column."""
    constant = deviation <= 1e-12 * np.maximum(1, np.abs(mean))
    if constant.any():
        shown = words.listed([name for name, flat in zip(names, constant, strict=True) if flat])
        notes.append(f"{what}: constant over the rows, so 0 after scaling: {shown}")
    return np.where(constant, 1.0, deviation)


def constants(what: str, names: Sequence[str]) -> list[str]:
    """A note that names constant columns; none without such columns."""
    if names:
        return [f"{what}: constant over the rows: {words.listed(names)}"]
    return []


def _deviation(x: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """``x.std(0)`` to the last bit, in a buffer of bounded size.

    NumPy adds the rows of a matrix one after another, and so do the blocks here.
    """
    n, width = x.shape
    if width == 1:
        return x.std(0)
    step = max(1, BUFFER // (8 * width))
    buffer = np.empty((min(step, n) + 1, width))
    total = np.zeros(0)
    for start in range(0, n, step):
        rows = x[start : start + step]
        squares = buffer[1 : len(rows) + 1]
        np.subtract(rows, mean, out=squares)
        np.multiply(squares, squares, out=squares)
        if start:
            buffer[0] = total
            squares = buffer[: len(rows) + 1]
        total = np.add.reduce(squares, axis=0)
    return np.sqrt(total / n)


# ------------------------------------------------------------------------------------------- labels
def labels(
    raw: RawTable, entry: ColumnEntry, rows: RowsInUse, what: str, mapping: Mapping[str, Any] | None = None
) -> Built:
    """A column of labels made of one or more columns, which read ``Female|White``.

    Its values are positions among the labels that occur, sorted.
    """
    codes = np.zeros(rows.n, np.int64)
    keys: list[Key] = [()]
    notes: list[str] = []
    for name in entry.columns:
        column = read(raw, name, rows, what)
        if column.values.ndim != 1:
            refuse(errors.columns.vector_for_label(what, name, column.values.shape[1:]))
        mapping = entry.map if entry.map is not None else mapping
        if mapping is not None:
            mapped_values = _mapped(column, mapping, name, what, notes, numeric=False)
            if mapped_values.dtype.kind in "biuf":
                column = RawColumn(values=mapped_values)
            else:
                column = _as_text(mapped_values)
        else:
            demand_finite(column, name, rows, what)
            _demand_told_apart(column, name, what)
        part_codes, part_keys = _codes(column)
        combined = codes * max(1, len(part_keys)) + part_codes
        used, codes = np.unique(combined, return_inverse=True)
        keys = [keys[code // len(part_keys)] + (part_keys[code % len(part_keys)],) for code in used]
    record = {
        "kind": "labels",
        "columns": list(entry.columns),
        "map": None if mapping is None else dict(mapping),
    }
    return Built(
        values=codes,
        labels=tuple(map(spell_key, keys)),
        keys=tuple(keys),
        encoding=record,
        notes=tuple(notes),
    )


def _demand_told_apart(column: RawColumn, name: str, what: str) -> None:
    """Raise F0512 if labels are floats so large that different whole numbers have the same float."""
    if column.categories is not None or column.values.dtype.kind != "f":
        return
    large = np.abs(column.values) >= LARGEST_EXACT
    if large.any():
        refuse(errors.columns.labels_lose_digits(what, name, float(column.values[large][0])))


def spell_key(key: Key) -> str:
    """The text of a label, as ``Female|White``."""
    return "|".join(text for _, _, text in key)


def _as_text(values: np.ndarray) -> RawColumn:
    """An array of texts as a raw column."""
    distinct, codes = np.unique(values, return_inverse=True)
    return RawColumn(values=codes, categories=tuple(map(str, distinct)))


def _codes(column: RawColumn) -> tuple[np.ndarray, list[tuple[int, float, str]]]:
    """For each row the position of its value among the sorted distinct values, and their sort keys."""
    if column.categories is not None:
        texts = present(column)
        position = {text: k for k, text in enumerate(texts)}
        recode = np.array([*(position.get(text, -1) for text in column.categories), -1], np.int64)
        return recode[column.values], [(1, 0.0, text) for text in texts]
    values, codes = np.unique(column.values, return_inverse=True)
    return codes, [(0, float(value), _spell_label(value)) for value in values]


def _spell_label(value: Any) -> str:
    """A number as a label: without a decimal point if it is whole."""
    if isinstance(value, np.floating) and float(value).is_integer():
        return str(int(value))
    return spelled(value)
