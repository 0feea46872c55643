"""Arrays and tensors in memory: a mapping by name, or a tuple in the order of the table's columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fccomodel.core.diagnostics import refuse
from fccomodel.data.sources import errors
from fccomodel.data.sources.base import (
    DataRequest,
    DataSource,
    RawColumn,
    RawTable,
    as_array,
    demand_distinct,
    from_array,
)


def to_numpy(value: Any, what: str) -> np.ndarray:
    """An array-like value (NumPy, torch, lists) as a NumPy array; a tensor on the CPU shares its memory.

    ``what`` names the value in messages. Raises FccoError (F0507) if it is not array-like.
    """
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        if str(value.dtype) == "torch.bfloat16":
            value = value.float()
        return value.numpy()
    if isinstance(value, np.ma.MaskedArray):
        return _with_gaps(value)
    if isinstance(value, np.ndarray):
        return value
    try:
        if hasattr(value, "to_numpy"):
            return np.asarray(value.to_numpy())
        return as_array(value)
    except (ValueError, TypeError) as error:
        refuse(errors.not_array_like(what, error))


def _with_gaps(values: np.ma.MaskedArray) -> np.ndarray:
    """A masked array with missing values in the masked places: NaN among numbers, else None."""
    hidden = np.ma.getmaskarray(values)
    if not hidden.any():
        return np.asarray(values.data)
    kind = float if values.dtype.kind in "biuf" else object
    plain = values.data.astype(kind)
    plain[hidden] = np.nan if kind is float else None
    return plain


def from_mapping(
    columns: Mapping[str, Any], origin: str = "arrays", request: DataRequest | None = None
) -> RawTable:
    """A table of arrays of one length; each is a column, and its axes after the first are a row's shape.

    Columns of the ``request`` that only nets read are drawn if they are mapped from files, or if
    somebody asks for it.
    """
    demand_distinct([str(name) for name in columns], origin)
    arrays = {str(name): to_numpy(value, str(name)) for name, value in columns.items()}
    if not arrays:
        refuse(errors.no_columns(origin))
    scalars = sorted(name for name, array in arrays.items() if array.ndim == 0)
    if scalars:
        refuse(errors.single_value(scalars[0]))
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        refuse(errors.lengths(lengths))
    n = next(iter(lengths.values()))
    if request is not None and (own := _drawn_columns(arrays, request)):
        from fccomodel.data.sources import drawn_rows

        rest = as_table({name: from_array(a) for name, a in arrays.items() if name not in own}, origin, n)
        return drawn_rows.of_arrays(own, origin, request).beside(rest)
    return as_table({name: from_array(array) for name, array in arrays.items()}, origin, n)


def as_table(raw: Mapping[str, RawColumn], origin: str, n: int) -> RawTable:
    """A table of columns that are read already."""
    numeric = {name: column.categories is None and not column.unusable for name, column in raw.items()}
    vectors = frozenset(name for name, column in raw.items() if numeric[name] and column.values.ndim > 1)
    return RawTable(origin=origin, n=n, numeric=numeric, load=raw.__getitem__, vectors=vectors)


def _drawn_columns(arrays: Mapping[str, np.ndarray], request: DataRequest) -> dict[str, np.ndarray]:
    """The arrays that are not read while they are bound."""
    return {
        name: array
        for name, array in arrays.items()
        if name in request.drawn
        and array.dtype.kind in "biuf"
        and array.ndim > 1
        and (isinstance(array, np.memmap) or request.drawing.asked)
    }


def _accepts(value: Any) -> bool:
    known = isinstance(value, Mapping | tuple | list | np.ndarray | int | float) or hasattr(value, "detach")
    return known or (hasattr(value, "to_numpy") and not hasattr(value, "columns"))


def _open(value: Any, request: DataRequest) -> RawTable:
    if isinstance(value, np.ndarray) and value.dtype.names:
        value = {name: value[name] for name in value.dtype.names}
    if isinstance(value, Mapping):
        return from_mapping(value, request=request)
    parts = value if isinstance(value, tuple) else (value,)
    if len(parts) != len(request.fields):
        refuse(errors.parts_of_a_tuple(request.name, len(parts), request.fields))
    return from_mapping(dict(zip(request.fields, parts, strict=True)), request=request)


SOURCE = DataSource(
    name="arrays",
    meaning="arrays or tensors",
    open=_open,
    accepts=_accepts,
    array=lambda value, request: to_numpy(value, request.name),
)
