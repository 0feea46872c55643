"""Preparing: a binding's tables become files that are mapped into memory, so that no table has to fit it."""

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

#: What the record of a table says of how it was read.
READ = ("origin", "rows_read", "dropped", "where", "members", "unused", "groups")


#: A table, what decides an order of its rows, and the order's arrays by name.
Ordered = tuple[str, str, Mapping[str, np.ndarray]]


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """What was written: ``tables`` by name with their numbers of rows, ``bytes`` of all files;
    ``again`` says why a folder that was there was written again ("" where there was none);
    ``notes`` are those of the binding."""

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
) -> Prepared:
    """The tables of a binding (see ``bind``) in files of a folder: vectors in ``dtype``, numbers in
    float64, labels in int64.

    The rows stay in their order, and every number is that of the same binding in memory, up to the
    rounding of ``dtype``. Sources are read once, in parts; one column of numbers or labels is in
    memory at a time, and of vectors a block of rows. ``orders``: which groups and orders of rows
    are written as well, one after another; each is sorted in memory.

    Raises F0806 where the folder holds something else or cannot be written, and what ``bind`` raises.
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
    rows, size = (
        {name: table.n for name, table in bound.tables.items()},
        sum(stamp["size"] for stamp in files.values()),
    )
    return Prepared(folder=folder, tables=rows, bytes=size, again=again, notes=bound.notes)


def _table(bound: Bound, table: BoundTable, sink: Sink) -> dict[str, Any]:
    """A table's columns in their files, and what is said of them."""
    record = bound.sources[table.name]
    read = {key: record[key] for key in READ if key in record}
    columns = {name: _column(table, name, values, sink) for name, values in table.columns.items()}
    return {"n": table.n, "spec": record["spec"], **read, "columns": columns}


def _column(table: BoundTable, name: str, values: np.ndarray, sink: Sink) -> dict[str, Any]:
    file = f"{table.name}.{name}.npy"
    if not (sink.folder / file).is_file():
        np.save(sink.folder / file, values)
    encoding = dict(table.encoding.get(name, {}))
    labels, keys = encoding.get("labels") if encoding.get("kind") in ("labels", "family") else None, []
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
    """By table and what decides an order, the files of its arrays."""
    written: dict[str, dict[str, dict[str, str]]] = {name: {} for name in bound.tables}
    for name, what, arrays in orders(bound):
        files = {part: f"{name}.order{len(written[name])}.{part}.npy" for part in arrays}
        for part, array in arrays.items():
            np.save(sink.folder / files[part], array)
        written[name][what] = files
        sink.told(f"{name}: groups and orders", len(written[name]), None)
    return written


def _reason(folder: Path) -> str:
    """Why a folder of prepared tables is written again; F0806 where something else is there."""
    if not folder.exists() or folder.is_dir() and not any(folder.iterdir()):
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
    """An empty folder beside, which takes the place of the folder at the end of the block; nothing
    changes where that fails."""
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
