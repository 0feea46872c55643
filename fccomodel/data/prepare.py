"""Preparing: write a binding's tables into files that are mapped into memory, for data that do not fit it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.core.errors import file_not_writable
from fccomodel.core.files import make_folder, seal
from fccomodel.data import errors
from fccomodel.data.bind import Sink, bind
from fccomodel.data.bind.errors import demands
from fccomodel.data.bound import Bound, BoundTable
from fccomodel.data.sources import Spool, folders

#: Entries of a table's record that say how it was read.
READING_ENTRIES = ("origin", "rows_read", "dropped", "where", "members", "unused", "groups")


#: A table, the expression that decides an order of its rows, and the order's arrays by name.
Ordered = tuple[str, str, Mapping[str, np.ndarray]]


@dataclass(frozen=True, kw_only=True)
class PreparedFolder:
    """A folder of prepared tables.

    tables  number of rows by table
    bytes   size of all files
    again   why an existing folder was written again; "" if there was none
    notes   notes of the binding
    """

    folder: Path
    tables: Mapping[str, int]
    bytes: int
    again: str = ""
    notes: tuple[str, ...] = ()


def prepare(
    problem: ir.Problem,
    folder: Path,
    *,
    dtype: str = "float32",
    told: Callable[[str, int, int | None], None] = lambda *_: None,
    orders: Callable[[Bound], Iterable[Ordered]] = lambda bound: (),
    **binding: Any,
) -> PreparedFolder:
    """Write the tables of a binding (see ``bind``) into files of a folder.

    The rows keep their order, and all numbers are those of the same binding in memory, up to the
    rounding of ``dtype``. Sources are read once, in parts. One column of numbers or labels is in
    memory at a time, and of vectors a block of rows.

    dtype    type of vectors (numbers are float64, labels int64)
    told     called with progress: what is read, rows so far, rows in all or None
    orders   groups and orders of rows that are written as well; each is sorted in memory

    Raises FccoError with F0806 if the folder holds something else or cannot be written, and with the
    codes of ``bind``.
    """
    again = _reason(folder)
    with _replacing(folder) as new:
        scratch = new / "spool"
        scratch.mkdir()
        spool = Spool(scratch, told)
        sink = Sink(folder=new, dtype=np.dtype(dtype), spool=spool, told=told)
        bound = bind(problem, **binding, sink=sink)
        if not bound.tables:
            refuse(demands.no_table_to_prepare())
        tables = {name: _table(bound, table, sink) for name, table in bound.tables.items()}
        for name, indices in _orders(bound, orders, sink).items():
            tables[name]["indices"] = indices
        shutil.rmtree(scratch)
        sources = [
            {"path": str(path.absolute()), **folders.stamp(path)} for path in dict.fromkeys(spool.paths)
        ]
        files = {path.name: folders.stamp(path) for path in sorted(new.iterdir())}
        manifest = {
            "format": folders.FORMAT,
            "dtype": dtype,
            "sources": sources,
            "tables": tables,
            "files": files,
        }
        (new / folders.MANIFEST).write_text(json.dumps(seal(manifest), indent=1) + "\n", encoding="utf-8")
    rows = {name: table.n for name, table in bound.tables.items()}
    size = sum(stamp["size"] for stamp in files.values())
    return PreparedFolder(folder=folder, tables=rows, bytes=size, again=again, notes=bound.notes)


def _table(bound: Bound, table: BoundTable, sink: Sink) -> dict[str, Any]:
    """The manifest's entry of a table, whose columns are written into files."""
    record = bound.sources[table.name]
    read = {key: record[key] for key in READING_ENTRIES if key in record}
    columns = {name: _column(table, name, values, sink) for name, values in table.columns.items()}
    return {"n": table.n, "spec": record["spec"], **read, "columns": columns}


def _column(table: BoundTable, name: str, values: np.ndarray, sink: Sink) -> dict[str, Any]:
    """The manifest's entry of a column, which is written into a file unless it is there."""
    file = f"{table.name}.{name}.npy"
    if not (sink.folder / file).is_file():
        np.save(sink.folder / file, values)
    encoding = dict(table.encoding.get(name, {}))
    labels = None
    keys = []
    if encoding.get("kind") in ("labels", "family"):
        labels = encoding.get("labels")
    if labels is not None:
        own, sorting = sink.labels.get((table.name, name), ((), ()))
        known = dict(zip(own, sorting, strict=True))
        keys = [known.get(label, ((1, 0.0, label),)) for label in labels]
    return {
        "file": file,
        "encoding": encoding,
        "names": encoding.get("names"),
        "labels": labels,
        "keys": keys,
    }


def _orders(
    bound: Bound, orders: Callable[[Bound], Iterable[Ordered]], sink: Sink
) -> dict[str, dict[str, dict[str, str]]]:
    """The files of all orders: by table, the expression that decides the order, and the array's name."""
    written: dict[str, dict[str, dict[str, str]]] = {name: {} for name in bound.tables}
    for name, what, arrays in orders(bound):
        files = {part: f"{name}.order{len(written[name])}.{part}.npy" for part in arrays}
        for part, array in arrays.items():
            np.save(sink.folder / files[part], array)
        written[name][what] = files
        sink.told(f"{name}: groups and orders", len(written[name]), None)
    return written


def _reason(folder: Path) -> str:
    """Why a folder of prepared tables is written again, or "" if it is new.

    Raises FccoError (F0806) if the folder holds something else.
    """
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return ""
    manifest = folder / folders.MANIFEST
    if not manifest.is_file():
        refuse(errors.not_a_prepared_folder(folder))
    try:
        changed = folders.outdated(json.loads(manifest.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError):
        return "its manifest was damaged"
    if changed:
        return f"{changed} has changed"
    return "it was asked for again"


@contextmanager
def _replacing(folder: Path) -> Iterator[Path]:
    """An empty folder, which replaces ``folder`` at the end of the block; after an error nothing changes."""
    make_folder(folder.absolute().parent)
    new, old = (folder.with_name(f".{folder.name}.{word}.{os.getpid()}") for word in ("new", "old"))
    try:
        new.mkdir()
        yield new
        if folder.exists():
            os.replace(folder, old)
        os.replace(new, folder)
    except OSError as error:
        refuse(file_not_writable(Path(error.filename or folder), error))
    finally:
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
