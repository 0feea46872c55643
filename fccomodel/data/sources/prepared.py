"""Tables that ``fccomodel prepare`` wrote: columns of the model, mapped from their files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fccomodel.core.arrays import NotArrays, mapped
from fccomodel.core.diagnostics import refuse
from fccomodel.data.sources import errors, folders
from fccomodel.data.sources.base import DataRequest, DataSource, RawColumn, RawTable, Ready


def _open(folder: Path, request: DataRequest) -> RawTable:
    """The table of the request's name in a prepared folder."""
    manifest = folders.read(folder)
    table = manifest["tables"].get(request.name)
    if table is None:
        refuse(errors.not_prepared(folder, request.name, list(manifest["tables"])))
    used = [column["file"] for column in table["columns"].values()]
    used += [file for files in table.get("indices", {}).values() for file in files.values()]
    if unknown := next((file for file in used if file not in manifest["files"]), None):
        refuse(errors.damaged(folder, unknown))
    ready = {name: _ready(folder, column, table["n"]) for name, column in table["columns"].items()}
    return RawTable(
        origin=str(folder),
        n=table["n"],
        numeric={name: column.labels is None for name, column in ready.items()},
        load=lambda name: RawColumn(values=ready[name].values, categories=ready[name].labels),
        vectors=frozenset(name for name, column in ready.items() if column.values.ndim > 1),
        ready=ready,
        prepared={**table, "dtype": manifest["dtype"]},
        indices={what: _indices(folder, files) for what, files in table.get("indices", {}).items()},
    )


def _ready(folder: Path, column: dict[str, Any], n: int) -> Ready:
    """A column, mapped from its file; writes to it do not reach the file.

    Raises FccoError (F0534) if it has not ``n`` rows of numbers, or of positions among the labels.
    """
    values, labels = _mapped(folder / column["file"]), column["labels"]
    expected = "f" if labels is None else "i"
    if values.ndim == 0 or len(values) != n or values.dtype.kind != expected:
        refuse(errors.damaged(folder, column["file"]))
    if labels is not None and n and not 0 <= int(values.min()) <= int(values.max()) < len(labels):
        refuse(errors.damaged(folder, column["file"]))
    return Ready(
        values=values,
        encoding=column["encoding"],
        names=_tuple_or_none(column["names"]),
        labels=_tuple_or_none(labels),
        keys=tuple(tuple(map(tuple, key)) for key in column["keys"]),
    )


def _tuple_or_none(items: list[str] | None) -> tuple[str, ...] | None:
    """A list of the manifest as a tuple."""
    return None if items is None else tuple(items)


def _indices(folder: Path, files: dict[str, str]) -> dict[str, np.ndarray]:
    """The arrays of an order of rows, by name."""
    return {name: _mapped(folder / file) for name, file in files.items()}


def _mapped(file: Path) -> np.ndarray:
    """The array of a file, mapped. Raises FccoError (F0534) if it is damaged."""
    try:
        return mapped(file)
    except NotArrays:
        refuse(errors.damaged(file.parent, file.name))


SOURCE = DataSource(name="prepared", meaning="tables that `fccomodel prepare` wrote", open=_open)
