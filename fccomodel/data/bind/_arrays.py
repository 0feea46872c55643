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
from fccomodel.data.sources import DataRequest, RawColumn, find_file, frame


def bind_array(
    array: ir.Array, spec: ArraySpec, value: Any, sizes: KnownSizes, ways: Ways
) -> tuple[np.ndarray, dict[str, Any]]:
    """The array, float64 of its declared shape, and a record of its source.

    The labels of values come from a mapping, a pandas Series, or an ``index`` column. F0504 - F0508,
    F0511, F0512, F0515, F0516.
    """
    name = array.name
    values, labels, origin = _read(array, spec, value, ways)
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
    if labels is not None:
        values, labels = _ordered(array, values, labels, sizes)
    for axis, dim in enumerate(shape):
        sizes.unify(dim, values.shape[axis], name, f"{name} ({origin})", labels if axis == 0 else None)
    return values, {"origin": origin, "shape": list(values.shape)}


def _read(
    array: ir.Array, spec: ArraySpec, value: Any, ways: Ways
) -> tuple[np.ndarray, tuple[str, ...] | None, str]:
    """The raw values, their labels (or None), and the source in words."""
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
        labels = tuple(str(key) for key in value)
        origin = "the binding" if inline else "a mapping"
        try:
            return np.asarray([np.asarray(item, float) for item in value.values()], float), labels, origin
        except (TypeError, ValueError, ArithmeticError):
            refuse(errors.columns.values_of_array(name))
    is_path = isinstance(value, str | Path)
    if is_path:
        origin = str(value)
    elif inline:
        origin = "the binding"
    else:
        origin = f"a {type(value).__name__}"
    index = _by_label.index(value)
    if index is not None:
        return value.to_numpy(), index, origin
    if is_path and str(value).lower().endswith((".npz", ".npy")):
        find_file(value, ways.folders)
        return sources.open_array(value, request), None, origin
    if is_path or hasattr(value, "columns") or frame.streams(value):
        return (*_from_table(array, spec, value, request), origin)
    return sources.open_array(value, request), None, origin


def _from_table(
    array: ir.Array, spec: ArraySpec, value: Any, request: DataRequest
) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """The values in a table's columns, and their labels (or None).

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
    if spec.index is None:
        return np.asarray(values), None
    index = raw.load(spec.index)
    if index.categories is not None:
        texts = [index.categories[code] for code in index.values]
    else:
        texts = [str(item) for item in index.values]
    return np.asarray(values), tuple(texts)


def _ordered(
    array: ir.Array, values: np.ndarray, labels: tuple[str, ...], sizes: KnownSizes
) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """The values in the order of the set's labels, and the labels.

    The order is changed only if the set has these labels already. F0516 for two values of one label.
    """
    if len(set(labels)) < len(labels):
        repeated = next(label for label in labels if labels.count(label) > 1)
        refuse(errors.sizes.two_values(array.name, repeated))
    dim = array.type.shape[0] if array.type.shape else None
    if not isinstance(dim, str) or not isinstance(sizes.problem.sets.get(dim), ir.LabelSet):
        return values, None
    order = sizes.labels.get(dim)
    if order is not None and set(order) == set(labels):
        return values[[labels.index(label) for label in order]], order
    return values, labels
