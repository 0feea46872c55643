"""Tables that were prepared: their columns are as the binding says already, and what it says otherwise
is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.data.bind import errors
from fccomodel.data.bind._encode import Built
from fccomodel.data.bind._rows import Rows
from fccomodel.data.bind._spec import TableSpec
from fccomodel.data.sources import RawTable, Ready

#: Bytes of a column as float64 that is held in memory, where everything is as if it had never been prepared.
HELD = 1 << 26
#: What an earlier binding learned, as far as it decides a column's numbers.
DECIDING = ("kind", "column", "columns", "map", "scale", "numbers", "texts", "intercept")
#: Settings of a section that say where data are, not what becomes of them.
PLACES = ("source", "separator", "na", "files")


def section(spec: TableSpec, raw: RawTable, name: str, stored: Mapping[str, Any]) -> TableSpec:
    """A section whose work is done. F0536 where it, or an earlier binding, says otherwise than what
    was prepared."""
    was = raw.prepared["spec"]
    for key, value in spec.raw.items():
        if key not in PLACES and plain(value) != was.get(key):
            refuse(errors.tables.prepared_otherwise(name, raw.called, key))
    for column, ready in raw.ready.items():
        if not agree(stored.get(column), ready.encoding):
            refuse(errors.tables.encoded_otherwise(f"{name}.{column}", raw.called))
    kept = {"source": spec.raw.get("source", raw.origin), **{k: v for k, v in was.items() if k != "source"}}
    return replace(spec, where=None, missing="error", entries={}, family=None, members={}, raw=kept)


def by_all_rows(raw: RawTable) -> list[str]:
    """The columns whose numbers come of all rows: scaled by them, or with the categories that they have."""
    return [c for c, ready in raw.ready.items() if ready.encoding.get("scale") or ready.encoding.get("texts")]


def agree(stored: Mapping[str, Any] | None, ready: Mapping[str, Any]) -> bool:
    """Whether what an earlier binding learned is what a column was made with."""
    return not stored or all(plain(stored.get(key)) == ready.get(key) for key in DECIDING)


def plain(value: Any) -> Any:
    """JSON-like values; a path as text, anything else that JSON lacks as None."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if hasattr(value, "__fspath__"):
        return str(value)
    return None


def column(ready: Ready, kind: ir.ColumnType, what: str, rows: Rows, dtype: str) -> Built:
    """A prepared column at the rows in use: mapped from its file where all of it is used, and it is
    large or as it is in memory; else in memory."""
    if isinstance(kind.domain, ir.LabelSet) != (ready.labels is not None):
        refuse(
            errors.tables.prepared_as_another_kind(what, "labels" if ready.labels is not None else "numbers")
        )
    own = np.int64 if ready.labels is not None else np.float64
    if rows.indices is None:
        values = ready.values
    else:
        values = ready.values[rows.indices]
    mapped = rows.indices is None and (values.size * 8 > HELD or values.ndim == 1 and values.dtype == own)
    rounded = values.ndim > 1 and values.dtype != own and bool(ready.encoding)
    notes = (f"{what}: prepared as {dtype}",) if rounded else ()
    return Built(
        values=values if mapped else np.array(values, own),
        names=ready.names,
        labels=ready.labels,
        keys=ready.keys,
        encoding=_own(ready),
        notes=notes,
    )


def _own(ready: Ready) -> dict[str, Any]:
    """The record of a column without what sets add to it."""
    return {
        key: value
        for key, value in ready.encoding.items()
        if key != "labels" and (key != "set" or ready.labels is not None)
    }
