"""Prepared tables, whose columns are made already. A binding that contradicts them is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.data.bind import errors
from fccomodel.data.bind._encode import Built
from fccomodel.data.bind._rows import RowsInUse
from fccomodel.data.bind._spec import TableSpec
from fccomodel.data.sources import RawTable, Ready

#: Largest size of a column (as float64, in bytes) that is held in memory; larger ones stay in files.
HELD = 1 << 26
#: Keys of a column's encoding that decide its numbers.
DECIDING = ("kind", "column", "columns", "map", "scale", "numbers", "texts", "intercept")
#: Settings of a section about reading the source. They may differ from those of the preparation.
PLACES = ("source", "separator", "na", "files")


def section(spec: TableSpec, raw: RawTable, name: str, stored: Mapping[str, Any]) -> TableSpec:
    """The section with nothing left to do.

    F0536 if the section, or the encoding of an earlier binding, contradicts the preparation.
    """
    prepared = raw.prepared["spec"]
    for key, value in spec.raw.items():
        if key not in PLACES and plain(value) != prepared.get(key):
            refuse(errors.tables.prepared_otherwise(name, raw.called, key))
    for column, ready in raw.ready.items():
        if not agree(stored.get(column), ready.encoding):
            refuse(errors.tables.encoded_otherwise(f"{name}.{column}", raw.called))
    raw_section = {"source": spec.raw.get("source", raw.origin)}
    raw_section |= {key: value for key, value in prepared.items() if key != "source"}
    return replace(spec, where=None, missing="error", entries={}, family=None, members={}, raw=raw_section)


def by_all_rows(raw: RawTable) -> list[str]:
    """The columns whose numbers depend on all rows: scaled ones, and one-hot blocks of categories."""
    return [c for c, ready in raw.ready.items() if ready.encoding.get("scale") or ready.encoding.get("texts")]


def agree(stored: Mapping[str, Any] | None, ready: Mapping[str, Any]) -> bool:
    """Whether a prepared column has the encoding of an earlier binding, if there is one."""
    return not stored or all(plain(stored.get(key)) == ready.get(key) for key in DECIDING)


def plain(value: Any) -> Any:
    """The value with JSON's types alone: a path as text, and any other object as None."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if hasattr(value, "__fspath__"):
        return str(value)
    return None


def column(ready: Ready, kind: ir.ColumnType, what: str, rows: RowsInUse, dtype: str) -> Built:
    """A prepared column at the rows in use.

    It stays in its file if all rows are used, and if it is large or has its type in memory already.

    dtype   precision of the stored vectors
    """
    has_labels = ready.labels is not None
    if isinstance(kind.domain, ir.LabelSet) != has_labels:
        refuse(errors.tables.prepared_as_another_kind(what, "labels" if has_labels else "numbers"))
    own = np.int64 if has_labels else np.float64
    values = ready.values
    if rows.indices is not None:
        values = values[rows.indices]
    is_large = values.size * 8 > HELD
    has_own_type = values.ndim == 1 and values.dtype == own
    notes: tuple[str, ...] = ()
    if values.ndim > 1 and values.dtype != own and ready.encoding:
        notes = (f"{what}: prepared as {dtype}",)
    if rows.indices is not None or not (is_large or has_own_type):
        values = np.array(values, own)
    return Built(
        values=values,
        names=ready.names,
        labels=ready.labels,
        keys=ready.keys,
        encoding=_own(ready),
        notes=notes,
    )


def _own(ready: Ready) -> dict[str, Any]:
    """The encoding of a column without the labels that its set added."""
    return {
        key: value
        for key, value in ready.encoding.items()
        if key != "labels" and (key != "set" or ready.labels is not None)
    }
