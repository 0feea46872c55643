"""Arrays without rows: ``data c : real[A]``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.data import sources
from fccomodel.data.bind import _by_label, errors
from fccomodel.data.bind._families import EVERYWHERE, Ways, demand_column
from fccomodel.data.bind._rows import RowsInUse, demand_finite, writable
from fccomodel.data.bind._sizes import KnownSizes
from fccomodel.data.bind._spec import ArraySpec
from fccomodel.data.sources import DataRequest, RawColumn, RawTable, find_file, frame

#: The labels along each axis of an array; None for an axis whose source has none.
Labels = tuple[tuple[str, ...] | None, ...]


def bind_array(
    array: ir.Array, spec: ArraySpec, value: Any, sizes: KnownSizes, ways: Ways
) -> tuple[np.ndarray, dict[str, Any]]:
    """The array, float64 of its declared shape, and a record of its source.

    The labels of values come from a mapping, the index of pandas, an ``index`` column, and, along the
    second axis of a matrix, the names of columns. F0504 - F0508, F0511, F0512, F0515, F0516.
    """
    name = array.name
    values, labels, origin = _read(array, spec, value, sizes, ways)
    if isinstance(array.type.domain, ir.LabelSet):
        refuse(errors.columns.array_of_labels(name))
    if values.dtype.kind not in "biuf":
        refuse(errors.columns.array_of_type(name, origin, values.dtype))
    values = writable(values)
    shape = array.type.shape
    if values.ndim != len(shape):
        refuse(errors.columns.axes_of_array(name, values.shape, len(shape)))
    demand_finite(
        RawColumn(values=np.atleast_1d(values)), name, RowsInUse(total=len(np.atleast_1d(values))), name
    )
    for axis, dim in enumerate(shape):
        names = labels[axis] if axis < len(labels) else None
        if names is not None:
            values, names = _ordered(array, axis, values, names, sizes)
        sizes.unify(dim, values.shape[axis], name, f"{name} ({origin})", names)
    return values, {"origin": origin, "shape": list(values.shape)}


def _read(
    array: ir.Array, spec: ArraySpec, value: Any, sizes: KnownSizes, ways: Ways
) -> tuple[np.ndarray, Labels, str]:
    """The raw values, the labels along their axes, and the source in words."""
    name = array.name
    within = ways.within if value is None else EVERYWHERE
    request = DataRequest(name=name, folders=ways.folders, within=within, options=spec.options)
    inline = value is None and spec.values is not None
    if value is None:
        value = spec.values
    if value is None:
        value = spec.source
    if value is None:
        refuse(errors.demands.no_array(name))
    if isinstance(value, Mapping):
        return (*_from_mapping(name, value), "the binding" if inline else "a mapping")
    is_path = isinstance(value, str | Path)
    if is_path:
        origin = str(value)
    elif inline:
        origin = "the binding"
    else:
        origin = f"a {type(value).__name__}"
    index = _by_label.index(value, _known(array, 0, sizes))
    if index is not None:
        return value.to_numpy(), (index,), origin
    if is_path and str(value).lower().endswith((".npz", ".npy")):
        find_file(value, ways.folders)
        return sources.open_array(value, request), (), origin
    if is_path or hasattr(value, "columns") or frame.streams(value):
        return (*_from_table(array, spec, value, sizes, request), origin)
    return sources.open_array(value, request), (), origin


def _from_mapping(name: str, value: Mapping[Any, Any]) -> tuple[np.ndarray, Labels]:
    """The values and labels of ``{"a": 1, "b": 2}``, or of a mapping or Series for each row of a matrix."""
    labels: Labels = (tuple(map(str, value)),)
    rows: list[Any] = []
    for row in value.values():
        found = _by_label.labelled(row)
        if found is not None:
            row = dict(zip(found.labels, found.values, strict=True))
        rows.append(row)
    if rows and all(isinstance(row, Mapping) and set(row) == set(rows[0]) for row in rows):
        columns = list(rows[0])
        rows = [[row[column] for column in columns] for row in rows]
        labels = (*labels, tuple(map(str, columns)))
    try:
        return np.asarray([np.asarray(row, float) for row in rows], float), labels
    except (TypeError, ValueError, ArithmeticError):
        refuse(errors.columns.values_of_array(name))


def _from_table(
    array: ir.Array, spec: ArraySpec, value: Any, sizes: KnownSizes, request: DataRequest
) -> tuple[np.ndarray, Labels]:
    """The values in a table's columns, and the labels of its rows and columns.

    The columns are those that the binding names, or the column with the array's name, or all columns of
    numbers.
    """
    raw = sources.open(value, request)
    for name in spec.columns:
        demand_column(raw, name, array.name)
    if spec.index:
        demand_column(raw, spec.index, array.name)
    if spec.columns:
        names = spec.columns
    else:
        names = tuple(
            name for name in raw.names if raw.numeric[name] and name not in raw.hidden and name != spec.index
        )
        if array.name in names:
            names = (array.name,)
    rank = len(array.type.shape)
    if not names or rank == 1 and len(names) > 1:
        refuse(errors.tables.array(array.name, raw.called, names[0] if names else "..."))
    columns = [raw.load(name) for name in names]
    for name, column in zip(names, columns, strict=True):
        if column.categories is not None or column.unusable:
            refuse(errors.columns.column_of_array(array.name, name, raw.called))
    if len(columns) == 1 and rank == 1:
        values = columns[0].values
    else:
        values = np.column_stack([column.values for column in columns])
    if rank == 0 and values.shape == (1, 1):
        values = values[0, 0]
    rows = _labels_of_rows(array, spec, value, raw, sizes)
    if rank < 2:
        return np.asarray(values), (rows,)
    return np.asarray(values), (rows, _labels_of_columns(array, spec, value, names, rows, sizes))


def _labels_of_rows(
    array: ir.Array, spec: ArraySpec, value: Any, raw: RawTable, sizes: KnownSizes
) -> tuple[str, ...] | None:
    """The labels of a table's rows, or None.

    They are in the ``index`` column; without one in the index of pandas, or in the only column of texts,
    if its texts are the labels of the set or nothing has named these yet.
    """
    if spec.index is not None:
        return _texts(raw.load(spec.index))
    if not _has_labels(array, 0, sizes):
        return None
    known = _known(array, 0, sizes)
    index = _by_label.index_of_frame(value, known)
    if index is not None:
        return index
    texts = [name for name in raw.names if not raw.numeric[name] and name not in raw.hidden]
    if spec.columns or len(texts) != 1:
        return None
    labels = _texts(raw.load(texts[0]))
    if len(set(labels)) == len(labels) and (known is None or set(known) == set(labels)):
        return labels
    return None


def _labels_of_columns(
    array: ir.Array,
    spec: ArraySpec,
    value: Any,
    names: tuple[str, ...],
    rows: tuple[str, ...] | None,
    sizes: KnownSizes,
) -> tuple[str, ...] | None:
    """The names of columns as labels of a matrix's second axis, or None if they name nothing.

    ``columns = [...]`` may list other names than the labels, in the order of these. ``rows`` are the labels
    of the first axis, which a matrix over pairs of one set has along both.
    """
    if not _has_labels(array, 1, sizes):
        return None
    known = _known(array, 1, sizes)
    if known is None and array.type.shape[0] == array.type.shape[1]:
        known = rows
    labels = tuple(map(str, names))
    if spec.columns and known is not None and set(known) != set(labels):
        return None
    default = _by_label.is_default(getattr(value, "columns", None))
    return _by_label.naming(labels, known, default=default)


def _known(array: ir.Array, axis: int, sizes: KnownSizes) -> tuple[str, ...] | None:
    """The labels along an axis that something has named already, or None.

    Elements that an array without labels only counted have no names yet.
    """
    if len(array.type.shape) <= axis:
        return None
    dim = str(array.type.shape[axis])
    if dim in sizes.counted:
        return None
    return sizes.labels.get(dim)


def _has_labels(array: ir.Array, axis: int, sizes: KnownSizes) -> bool:
    """Whether the elements along an axis are labels."""
    return isinstance(sizes.problem.sets.get(str(array.type.shape[axis])), ir.LabelSet)


def _texts(column: RawColumn) -> tuple[str, ...]:
    """The entries of a column as texts."""
    if column.categories is not None:
        return tuple(column.categories[code] for code in column.values)
    return tuple(str(item) for item in column.values)


def _ordered(
    array: ir.Array, axis: int, values: np.ndarray, labels: tuple[str, ...], sizes: KnownSizes
) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """The values along an axis in the order of the set's labels, and the labels.

    The order is changed only if the set has these labels already. F0516 for two values of one label.
    """
    if len(set(labels)) < len(labels):
        repeated = next(label for label in labels if labels.count(label) > 1)
        refuse(errors.sizes.two_values(array.name, repeated))
    if not _has_labels(array, axis, sizes):
        return values, None
    order = sizes.labels.get(str(array.type.shape[axis]))
    if order is not None and set(order) == set(labels):
        return np.take(values, [labels.index(label) for label in order], axis=axis), order
    return values, labels
