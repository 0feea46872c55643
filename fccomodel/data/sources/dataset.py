"""torch Datasets with a length: every item is read once, and the parts of the items become columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fccomodel.core.diagnostics import refuse
from fccomodel.data.sources import arrays, errors
from fccomodel.data.sources.base import DataSource, RawTable, Request


def _accepts(value: Any) -> bool:
    return any(base.__module__ == "torch.utils.data.dataset" for base in type(value).__mro__)


def _open(value: Any, request: Request) -> RawTable:
    origin = f"a {type(value).__name__}"
    if not hasattr(value, "__len__") or not hasattr(value, "__getitem__"):
        refuse(errors.no_length(request.name, origin))
    if hasattr(value, "tensors"):  # a TensorDataset has its columns already
        return _named(value.tensors, request, origin)
    if len(value) == 0:
        refuse(errors.no_items(request.name, origin))
    first = value[0]
    if isinstance(first, Mapping):
        return arrays.from_mapping(
            {name: _column(value, name, first[name], request) for name in first}, origin
        )
    if not isinstance(first, tuple | list):
        return _named((_column(value, None, first, request),), request, origin)
    columns = tuple(_column(value, part, first[part], request) for part in range(len(first)))
    return _named(columns, request, origin)


def _named(parts: tuple[Any, ...], request: Request, origin: str) -> RawTable:
    """The parts as the declared columns, in order."""
    if len(parts) != len(request.fields):
        refuse(errors.parts_of_an_item(request.name, origin, len(parts), request.fields))
    return arrays.from_mapping(dict(zip(request.fields, parts, strict=True)), origin)


def _column(items: Any, part: Any, first: Any, request: Request) -> np.ndarray:
    """One part of every item, written straight into its column."""
    sample = arrays.to_numpy(first, str(part))
    text = sample.dtype.kind not in "biuf"
    column = np.empty((len(items), *sample.shape), object if text else sample.dtype)
    for row in range(len(items)):
        item = items[row]
        value = arrays.to_numpy(item if part is None else item[part], str(part))
        if value.shape != sample.shape:
            refuse(errors.shape_of_item(request.name, row, value.shape, sample.shape))
        if column.dtype.kind in "biu" and value.dtype.kind == "f":
            column = column.astype(float)
        if text:
            column[row] = value.item()
        else:
            column[row] = value
    return column


SOURCE = DataSource(name="dataset", meaning="a torch Dataset", open=_open, accepts=_accepts, needs=("torch",))
