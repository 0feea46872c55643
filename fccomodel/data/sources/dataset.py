"""torch Datasets and datasets of Hugging Face, with a length.

Their items are read once, and the parts of the items become columns. Parts that only nets read are
drawn row by row instead, if they are large, if they change from one reading to the next, or if
somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fccomodel.core.diagnostics import refuse
from fccomodel.data import errors as drawn_errors
from fccomodel.data.sources import _random_numbers, arrays, drawn_rows, errors
from fccomodel.data.sources.base import DataRequest, DataSource, RawTable, from_array
from fccomodel.data.sources.drawn_rows import ItemReader

#: items that are read a second time, to see whether their parts change
AGAIN = 8


def _modules(value: Any) -> list[str]:
    """The modules of a value's classes."""
    return [base.__module__ for base in type(value).__mro__]


def _of_hugging_face(value: Any) -> bool:
    """Whether a value is a dataset of the package ``datasets``, which is not imported."""
    return any(name.partition(".")[0] == "datasets" for name in _modules(value))


def _accepts(value: Any) -> bool:
    modules = _modules(value)
    if any(name.startswith("torch.utils.data.data") for name in modules):
        return True
    return _of_hugging_face(value)


def _open(value: Any, request: DataRequest) -> RawTable:
    origin = f"a {type(value).__name__}"
    if "torch.utils.data.dataloader" in _modules(value):
        refuse(errors.a_loader(request.name))
    if not hasattr(value, "__len__") or not hasattr(value, "__getitem__"):
        refuse(errors.no_length(request.name, origin))
    if hasattr(value, "tensors") and not request.drawing.asked:  # its columns are arrays already
        return _named(value.tensors, request, origin)
    if len(value) == 0:
        refuse(errors.no_items(request.name, origin))
    with _random_numbers.watched():
        return _of_items(value, origin, request)


def _of_items(value: Any, origin: str, request: DataRequest) -> RawTable:
    """The table of a data set; parts of its items that are not drawn are read."""
    first = value[0]
    reader = ItemReader(value)
    if not isinstance(first, Mapping):
        reader = ItemReader(value, _names(first, request, origin))
    drawn = drawn_rows.chosen(reader, list(reader.parts(first)), len(value), origin, request)
    if drawn.keys is not None:
        return drawn.beside_keys()
    eager_columns = [name for name in reader.parts(first) if name not in drawn.names]
    columns = _Columns(value, reader, request)
    arrays_by_name = columns.read(eager_columns)
    raw = {str(name): from_array(column) for name, column in arrays_by_name.items()}
    table = replace(arrays.as_table(raw, origin, len(value)), notes=columns.changes(arrays_by_name))
    return drawn.beside(table)


def _names(first: Any, request: DataRequest, origin: str) -> tuple[str, ...]:
    """The declared columns as the names of an item's parts, in order.

    With ``keys`` an item may have the drawn columns alone, as the first of its parts.
    """
    count = len(first) if isinstance(first, tuple | list) else 1
    if request.drawing.keys is not None:
        lazy_columns = [name for name in request.fields if name in request.drawn]
        if count == len(lazy_columns):
            return tuple(lazy_columns)
    if count != len(request.fields):
        refuse(errors.parts_of_an_item(request.name, origin, count, request.fields))
    return request.fields


def _named(parts: tuple[Any, ...], request: DataRequest, origin: str) -> RawTable:
    """The parts as the declared columns, in order."""
    if len(parts) != len(request.fields):
        refuse(errors.parts_of_an_item(request.name, origin, len(parts), request.fields))
    return arrays.from_mapping(dict(zip(request.fields, parts, strict=True)), origin)


class _Columns:
    """Parts of every item as columns."""

    def __init__(self, items: Any, reader: ItemReader, request: DataRequest):
        self.items, self.reader, self.request = items, reader, request

    def read(self, names: list[Any]) -> dict[Any, np.ndarray]:
        """One reading of the items; a dataset of Hugging Face gives single columns without the others."""
        if not names:
            return {}
        if _of_hugging_face(self.items):
            return {name: arrays.to_numpy(self.items[name][:], str(name)) for name in names}
        columns: dict[Any, np.ndarray] = {}
        for row in range(len(self.items)):
            parts = self.reader.parts(self.items[row])
            for name in names:
                value = drawn_rows.numeric_or_text(parts[name], str(name))
                if row == 0:
                    columns[name] = _empty(value, len(self.items))
                columns[name] = self._put(columns[name], row, value)
        return columns

    def changes(self, found: Mapping[Any, np.ndarray]) -> tuple[str, ...]:
        """Notes about vectors that were read once and change at another reading; F0539 for labels that do."""
        if not found:
            return ()
        notes = dict[str, None]()
        for row in np.unique(np.linspace(0, len(self.items) - 1, AGAIN).astype(int)).tolist():
            parts = self.reader.parts(self.items[row])
            for name, column in found.items():
                again = drawn_rows.numeric_or_text(parts[name], str(name))
                if np.array_equal(column[row], again):
                    continue
                if column.ndim == 1:
                    refuse(drawn_errors.changing_keys(str(name), row))
                notes[
                    f"{self.request.name}: {name} changes from one reading to the next, and was read once, "
                    "since formulas read it too"
                ] = None
        return tuple(notes)

    def _put(self, column: np.ndarray, row: int, value: np.ndarray) -> np.ndarray:
        """Write a value into its column; a column of integers becomes one of floats for a float."""
        if value.shape != column.shape[1:]:
            refuse(errors.shape_of_item(self.request.name, row, value.shape, column.shape[1:]))
        if column.dtype.kind in "biu" and value.dtype.kind == "f":
            column = column.astype(float)
        if column.dtype.kind == "O":
            column[row] = value.item()
        else:
            column[row] = value
        return column


def _empty(value: np.ndarray, n: int) -> np.ndarray:
    """A column for values like the first one."""
    if value.dtype.kind in "biuf":
        return np.empty((n, *value.shape), value.dtype)
    return np.empty((n, *value.shape), object)


SOURCE = DataSource(name="dataset", meaning="a torch Dataset", open=_open, accepts=_accepts, needs=("torch",))
