"""A folder of prepared tables: a NumPy file for each column, and a manifest.

Entries of the manifest:

format, dtype  version of the format, and type of vectors
sources        path, size, time and SHA-256 of every file that was read
tables         by name: ``n``, the binding's section, rows read and dropped, and ``columns``
files          size, time and SHA-256 of each file of the folder
sha256         hash of all other entries

A file whose size and time are those of the manifest counts as unchanged; otherwise its bytes are read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fccomodel.core.diagnostics import refuse
from fccomodel.core.files import digest, regular_text, seal
from fccomodel.core.schema import anything, by_name, count, maybe, misfits, one_of, record, several, text
from fccomodel.data.sources import errors

#: The file name of the manifest.
MANIFEST = "manifest.json"
#: The version of the format.
FORMAT = 1

_STAMP = record({"size": count, "time": count, "sha256": text})
_KEY = several(several(lambda part: isinstance(part, list) and len(part) == 3))
_COLUMN = record(
    {
        "file": text,
        "encoding": by_name(anything),
        "names": maybe(several(text)),
        "labels": maybe(several(text)),
        "keys": _KEY,
    }
)
_TABLE = record(
    {
        "n": count,
        "spec": by_name(anything),
        "origin": text,
        "dropped": several(anything),
        "columns": by_name(_COLUMN),
    },
    {"indices": by_name(by_name(text)), "where": text, "rows_read": count},
)
#: The forms of a manifest's entries.
ENTRIES = {
    "dtype": one_of("float32", "float64"),
    "sources": several(record({"path": text, "size": count, "time": count, "sha256": text})),
    "tables": by_name(_TABLE),
    "files": by_name(_STAMP),
}


def stamp(path: Path) -> dict[str, Any]:
    """The size, time of change and SHA-256 of a file, by which it is recognised."""
    status = path.stat()
    return {"size": status.st_size, "time": status.st_mtime_ns, "sha256": digest(path)}


def same(path: Path, stamped: Mapping[str, Any]) -> bool:
    """Whether a file is unchanged; its bytes are read only if its time differs."""
    status = path.stat()
    if status.st_size != stamped["size"]:
        return False
    return status.st_mtime_ns == stamped["time"] or digest(path) == stamped["sha256"]


def read(folder: Path) -> dict[str, Any]:
    """The manifest of a folder.

    Raises FccoError with F0534 if the manifest or a file of the folder was changed, and with F0535 if a
    source of the tables has changed since.
    """
    path = folder / MANIFEST
    try:
        manifest = json.loads(regular_text(path))
        whole = manifest["format"] == FORMAT and manifest == seal(manifest) and not misfits(manifest, ENTRIES)
        whole = whole and all(Path(name).name == name for name in manifest["files"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        whole = False
    if not whole:
        refuse(errors.damaged(folder, MANIFEST))
    for name, stamped in manifest["files"].items():
        if not (folder / name).is_file() or not same(folder / name, stamped):
            refuse(errors.damaged(folder, name))
    if changed := outdated(manifest):
        refuse(errors.outdated(folder, changed))
    return manifest


def outdated(manifest: Mapping[str, Any]) -> str:
    """The name of a source that has changed since it was prepared, or "". A source that is missing counts
    as unchanged.
    """
    paths = {Path(entry["path"]): entry for entry in manifest["sources"]}
    return next((path.name for path, entry in paths.items() if path.is_file() and not same(path, entry)), "")
