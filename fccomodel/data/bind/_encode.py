"""How raw columns become the model's columns: maps, one-hot blocks, scaling, group keys.

What is learned from the rows (categories, means, deviations) is returned as a JSON-like record, and
used instead of learning where such a record is given.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fccomodel.core.diagnostics import refuse
from fccomodel.data.bind import errors
from fccomodel.data.bind._rows import (
    NonFinite,
    Rows,
    count_non_finite,
    demand_all,
    demand_finite,
    read,
    writable,
)
from fccomodel.data.bind._spec import Entry
from fccomodel.data.bind.errors import words
from fccomodel.data.sources import RawColumn, RawTable

#: Bytes of the buffer in which deviations from the mean are squared.
BUFFER = 1 << 22

#: A label with its place in the order of labels: numbers by size, then texts; combined keys part by part.
Key = tuple[tuple[int, float, str], ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Built:
    """A column of the model: ``values`` (n, *shape), for label columns positions in ``labels``;
    ``names`` of a vector's parts (None where the data do not name them); ``encoding`` to apply it
    again; ``notes`` for the report."""

    values: np.ndarray
    names: tuple[str, ...] | None = None
    labels: tuple[str, ...] | None = None
    keys: tuple[Key, ...] = ()
    encoding: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def spelled(value: Any) -> str:
    """A value as the text that a ``map`` names it by: ``1``, ``0.5``, ``True``."""
    return str(value.item() if isinstance(value, np.bool_ | np.integer) else value)


# ------------------------------------------------------------------------------------------ numbers
def number(
    raw: RawTable,
    entry: Entry,
    rows: Rows,
    what: str,
    stored: Mapping[str, Any] | None,
    domain: Sequence[float] = (),
) -> Built:
    """A column of one number per row: the source's own, or by ``map``; scaled where asked for."""
    name = entry.columns[0]
    column = read(raw, name, rows, what)
    if column.values.ndim != 1:
        refuse(errors.columns.vector_for_number(what, name, column.values.shape[1:]))
    notes: list[str] = []
    mapping = entry.map if entry.map is not None else (stored or {}).get("map")
    if mapping is not None:
        values = np.asarray(_mapped(column, mapping, name, what, notes), float)
    else:
        if column.categories is not None:
            refuse(errors.columns.text(what, name, present(column), domain))
        demand_finite(column, name, rows, what)
        values = writable(column.values)
    record: dict[str, Any] = {
        "kind": "number",
        "column": name,
        "map": None if mapping is None else dict(mapping),
    }
    if mapping is None:
        record |= {}
    else:
        record |= {"text": column.categories is not None}
    if entry.scale or (stored or {}).get("scale"):
        values, record["scale"] = _scaled(
            values[:, None].copy(), (stored or {}).get("scale"), (name,), what, notes
        )
        values = values[:, 0]
    return Built(values=values, encoding=record, notes=tuple(notes))


def present(column: RawColumn) -> list[str]:
    """The texts that occur, sorted."""
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
    """``map`` applied to every row; keys are compared as text, and as numbers where both are. F0514
    for a value that it lacks."""
    if column.categories is not None:
        texts, codes = (
            [*column.categories, "nan"],
            np.where(column.values < 0, len(column.categories), column.values),
        )
        used = np.unique(codes)
        distinct: list[Any] = [texts[code] for code in used]
        inverse = np.searchsorted(used, codes)
    else:
        values, inverse = np.unique(column.values, return_inverse=True)
        distinct = list(values)
    exact = {str(key): value for key, value in mapping.items()}
    numbers = {
        parsed: value for key, value in mapping.items() if (parsed := _as_number(str(key))) is not None
    }
    results, unnamed = [], []
    for value in distinct:
        text = spelled(value)
        if column.categories is not None:
            parsed_value = None
        else:
            parsed_value = _as_number(text)
        if text in exact:
            results.append(exact[text])
        elif parsed_value is not None and parsed_value in numbers:
            results.append(numbers[parsed_value])
        else:
            unnamed.append(text)
    if unnamed:
        refuse(
            errors.columns.not_in_map(
                what, name, unnamed, [spelled(value) for value in distinct], list(exact)
            )
        )
    seen = {spelled(value) for value in distinct}
    seen_numbers = {
        parsed for text in seen if column.categories is None and (parsed := _as_number(text)) is not None
    }
    if unused := [key for key in exact if key not in seen and _as_number(key) not in seen_numbers]:
        notes.append(f"{what}: map names {words.texts(unused)}, which column {name} does not hold")
    if any(isinstance(value, str) for value in results):
        results = [str(value) for value in results]
        if numeric:
            refuse(errors.binding_file.map_of_number(what))
    return np.asarray(results)[inverse]


def _as_number(text: str) -> float | None:
    """``0``, ``0.0``, ``False`` and ``false`` are one number."""
    text = {"true": "1", "false": "0"}.get(text.lower(), text)
    try:
        value = float(text)
    except ValueError:
        return None
    if math.isnan(value):
        return None
    return value


# ----------------------------------------------------------------------------------------- features
def vector(raw: RawTable, entry: Entry, rows: Rows, what: str, rank: int) -> Built | None:
    """A single column that already holds arrays of the declared rank, as it is; None where it does not."""
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
    entry: Entry,
    columns: Sequence[str],
    rows: Rows,
    what: str,
    stored: Mapping[str, Any] | None,
) -> Built:
    """Numeric columns in their order, then a one-hot block for each text column with its categories
    sorted; scaled where asked for; then the intercept. (n, width) float64, filled column by column
    in place.
    """
    stored = stored or {}
    texts = [name for name in columns if not raw.numeric[name]]
    if texts and not entry.encode:
        refuse(errors.columns.texts_of_vector(what, texts, present(read(raw, texts[0], rows, what))))
    numbers = [name for name in columns if raw.numeric[name]]
    blocks = {
        name: read(raw, name, rows, what)
        for name in [*texts, *(name for name in numbers if name in raw.vectors)]
    }
    categories = {name: list(stored.get("texts", {}).get(name) or present(blocks[name])) for name in texts}
    widths = {name: math.prod(blocks[name].values.shape[1:]) if name in blocks else 1 for name in numbers}
    width = sum(widths.values()) + sum(map(len, categories.values()))
    x = np.empty((rows.n, width + entry.intercept))
    non_finite: list[tuple[str, NonFinite | None]] = []
    names: list[str] = []
    notes: list[str] = []
    for name in numbers:
        column = blocks.pop(name, None) or read(raw, name, rows, what)
        non_finite.append((name, count_non_finite(column)))
        start, is_vector = len(names), name in raw.vectors
        if is_vector:
            names += [f"{name}[{k + 1}]" for k in range(widths[name])]
        else:
            names += [name]
        x[:, start : len(names)] = column.values.reshape(rows.n, -1)
    for name in texts:
        column = blocks.pop(name)
        non_finite.append((name, count_non_finite(column)))
        start = len(names)
        names += [f"{name}={category}" for category in categories[name]]
        unseen = _one_hot(x[:, start : len(names)], column, categories[name])
        if unseen:
            if unseen == 1:
                have = "1 row has"
            else:
                have = f"{unseen} rows have"
            notes.append(f"{what}: {have} a value of {name} {words.UNSEEN}: all zeros")
    demand_all(non_finite, rows, what)
    record: dict[str, Any] = {
        "kind": "features",
        "numbers": numbers,
        "texts": categories,
        "intercept": entry.intercept,
    }
    if entry.scale:
        _, record["scale"] = _scaled(x[:, :width], stored.get("scale"), names, what, notes)
    elif not stored:
        notes += constants(
            what, [name for k, name in enumerate(names) if rows.n > 1 and x[:, k].min() == x[:, k].max()]
        )
    if entry.intercept:
        x[:, width] = 1.0
        names.append("intercept")
    return Built(values=x, names=tuple(names), encoding=record | {"names": names}, notes=tuple(notes))


def _one_hot(block: np.ndarray, column: RawColumn, categories: Sequence[str]) -> int:
    """Ones where the row has the block's category; the number of rows with none of them."""
    assert column.categories is not None
    position = {category: k for k, category in enumerate(categories)}
    positions = np.array([*(position.get(category, -1) for category in column.categories), -1], np.int64)[
        column.values
    ]
    block[:] = 0.0
    present = np.flatnonzero(positions >= 0)
    block[present, positions[present]] = 1.0
    return len(positions) - len(present)


def _scaled(
    x: np.ndarray, stored: Mapping[str, Any] | None, names: Sequence[str], what: str, notes: list[str]
) -> tuple[np.ndarray, dict[str, list[float]]]:
    """(x - mean) / population deviation, in place; the deviation of a constant column counts as 1, so
    that it becomes 0."""
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
    """What columns are divided by: their deviations, of a constant one 1."""
    constant = deviation <= 1e-12 * np.maximum(1, np.abs(mean))
    if constant.any():
        shown = words.listed([name for name, flat in zip(names, constant, strict=True) if flat])
        notes.append(f"{what}: constant over the rows, so 0 after scaling: {shown}")
    return np.where(constant, 1.0, deviation)


def constants(what: str, names: Sequence[str]) -> list[str]:
    """A note of columns that are constant."""
    if names:
        return [f"{what}: constant over the rows: {words.listed(names)}"]
    return []


def _deviation(x: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """``x.std(0)``, to the last bit, in a bounded buffer: NumPy adds the rows of a matrix one after
    another."""
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
    raw: RawTable, entry: Entry, rows: Rows, what: str, mapping: Mapping[str, Any] | None = None
) -> Built:
    """A key made of one or more columns: positions in its sorted labels, which read ``Female|White``."""
    codes = np.zeros(rows.n, np.int64)
    keys: list[Key] = [()]
    notes: list[str] = []
    for name in entry.columns:
        column = read(raw, name, rows, what)
        if column.values.ndim != 1:
            refuse(errors.columns.vector_for_label(what, name, column.values.shape[1:]))
        mapping = entry.map if entry.map is not None else mapping
        if mapping is not None:
            mapped = _mapped(column, mapping, name, what, notes, numeric=False)
            if mapped.dtype.kind in "biuf":
                column = RawColumn(values=mapped)
            else:
                column = _as_text(mapped)
        else:
            demand_finite(column, name, rows, what)
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


def spell_key(key: Key) -> str:
    """``Female|White``; numbers without needless decimals."""
    return "|".join(text for _, _, text in key)


def _as_text(values: np.ndarray) -> RawColumn:
    distinct, codes = np.unique(values, return_inverse=True)
    return RawColumn(values=codes, categories=tuple(map(str, distinct)))


def _codes(column: RawColumn) -> tuple[np.ndarray, list[tuple[int, float, str]]]:
    """Positions among the values that occur, sorted, and these values."""
    if column.categories is not None:
        texts = present(column)
        position = {text: k for k, text in enumerate(texts)}
        recode = np.array([*(position.get(text, -1) for text in column.categories), -1], np.int64)
        return recode[column.values], [(1, 0.0, text) for text in texts]
    values, codes = np.unique(column.values, return_inverse=True)
    return codes, [(0, float(value), _spell_label(value)) for value in values]


def _spell_label(value: Any) -> str:
    if isinstance(value, np.floating) and float(value).is_integer():
        return str(int(value))
    return spelled(value)
