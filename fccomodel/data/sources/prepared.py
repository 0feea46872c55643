"""Tables that ``fccomodel prepare`` wrote: columns of the model as they are, mapped into memory from their files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fccomodel.core.arrays import NotArrays, mapped
from fccomodel.core.diagnostics import refuse
from fccomodel.data.sources import _folder, errors
from fccomodel.data.sources._base import DataSource, RawColumn, RawTable, Ready, Request


def _open(folder: Path, request: Request) -> RawTable:
    manifest = _folder.read(folder)
    table = manifest["tables"].get(request.name)
    if table is None:
        refuse(errors.not_prepared(folder, request.name, list(manifest["tables"])))
    ready = {name: _ready(folder, column) for name, column in table["columns"].items()}
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


def _ready(folder: Path, column: dict[str, Any]) -> Ready:
    """A column mapped from its file: what is written to it stays in memory, the file as it is."""
    return Ready(
        values=_mapped(folder / column["file"]),
        encoding=column["encoding"],
        names=None if column["names"] is None else tuple(column["names"]),
        labels=None if column["labels"] is None else tuple(column["labels"]),
        keys=tuple(tuple(map(tuple, key)) for key in column["keys"]),
    )


def _indices(folder: Path, files: dict[str, str]) -> dict[str, np.ndarray]:
    return {name: _mapped(folder / file) for name, file in files.items()}


def _mapped(file: Path) -> np.ndarray:
    try:
        return mapped(file)
    except NotArrays:
        refuse(errors.damaged(file.parent, file.name))


SOURCE = DataSource(name="prepared", meaning="tables that `fccomodel prepare` wrote", open=_open)
