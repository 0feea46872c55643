"""Checkpoints of a run: folders with its state and a manifest, from which a killed run goes on.

``000007/`` has ``state.json`` and ``tensors.npz``, which are read without pickle, and
``manifest.json``. The manifest has the format, the run's identity (model, params, data, options,
program), the tensors' types and shapes, and the hashes of the files. A checkpoint is written to a
temporary name and renamed; the last two are kept. NumPy's format needs no further package, and has
every type that a state has.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fccomodel.core import arrays, files
from fccomodel.core.diagnostics import FccoError, refuse
from fccomodel.core.files import flush, make_folder
from fccomodel.core.schema import anything, by_name, count, misfits, number, text
from fccomodel.data.drawn import drawn
from fccomodel.execution import errors

#: The version of the format.
FORMAT = 1
#: How many checkpoints are kept.
KEPT = 2
#: The file with the identity of the run and the hashes of the files.
MANIFEST = "manifest.json"
#: The file with the state but for its tensors.
STATE = "state.json"
#: The file with the tensors.
TENSORS = "tensors.npz"
#: The entries of a manifest besides the format.
NEEDED = {
    "identity": by_name(anything),
    "stage": text,
    "step": count,
    "seconds": number,
    "files": by_name(text),
}
#: Errors that a damaged checkpoint may raise when it is read.
DAMAGES = (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, RecursionError)


@dataclass(frozen=True, kw_only=True)
class Checkpoints:
    """The folder where a run keeps its state, and the seconds between two checkpoints."""

    folder: Path
    every: float = 60.0

    def part(self, name: str) -> Checkpoints:
        """The checkpoints of one run of several, in a folder inside this one."""
        return replace(self, folder=self.folder / name)


@dataclass(frozen=True, eq=False, kw_only=True)
class Checkpoint:
    """A checkpoint that was read: its manifest, the state as JSON values, and its tensors."""

    manifest: Mapping[str, Any]
    state: Mapping[str, Any]
    tensors: Mapping[str, torch.Tensor]


def newest(at: Checkpoints, identity: Mapping[str, Any]) -> tuple[Checkpoint | None, str]:
    """The last whole checkpoint, or None; and a note if later ones are damaged.

    Raises F0817 if all are damaged, or if it belongs to another run than ``identity`` says.
    """
    make_folder(at.folder)
    damaged: list[Path] = []
    for place in _places(at.folder):
        try:
            checkpoint = _read(place)
        except DAMAGES:
            damaged.append(place)
            continue
        _same(place, checkpoint.manifest, identity)
        return checkpoint, f"{damaged[0]} is damaged: this goes on from the one before" if damaged else ""
    if damaged:
        refuse(errors.checkpoint_damaged(damaged[0]))
    return None, ""


def write(
    at: Checkpoints,
    manifest: Mapping[str, Any],
    state: Mapping[str, Any],
    tensors: Mapping[str, torch.Tensor],
) -> None:
    """Write a checkpoint, whole or not at all; then remove those before the last two. Raises OSError."""
    places = list(_places(at.folder))
    number = 1 + max((int(place.name) for place in places), default=0)
    new = at.folder / f".{number:06d}.{os.getpid()}"
    shutil.rmtree(new, ignore_errors=True)
    try:
        new.mkdir(parents=True)
        (new / STATE).write_text(json.dumps(state), encoding="utf-8")
        arrays: dict[str, Any] = {name: x.numpy() for name, x in tensors.items()}
        np.savez(new / TENSORS, **arrays)
        record = {"format": FORMAT, "written": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **manifest}
        record["shapes"] = {name: [str(x.dtype), list(x.shape)] for name, x in arrays.items()}
        record["files"] = {name: files.digest(new / name) for name in (STATE, TENSORS)}
        sealed = json.dumps(files.seal(record), indent=1)
        (new / MANIFEST).write_text(f"{sealed}\n", encoding="utf-8")
        for path in new.iterdir():
            flush(path)
        os.replace(new, at.folder / f"{number:06d}")
    finally:
        shutil.rmtree(new, ignore_errors=True)
    for place in [*places[KEPT - 1 :], *_unfinished(at.folder)]:
        shutil.rmtree(place, ignore_errors=True)


def remove(at: Checkpoints) -> None:
    """Remove all checkpoints, and their folder."""
    for place in [*_places(at.folder), *_unfinished(at.folder)]:
        shutil.rmtree(place, ignore_errors=True)
    with suppress(OSError):  # it has other files, or is not there
        at.folder.rmdir()


def digest(array: Any) -> str:
    """Sixteen hexadecimal digits of an array's numbers, shape and type; of rows that are drawn, which
    ones they are and from what."""
    if drawn(array):
        words = f"{array.source.what} {array.name} {array.dtype} {array.shape}"
        return hashlib.sha256(words.encode() + array.at.tobytes()).hexdigest()[:16]
    array = np.ascontiguousarray(array)
    return hashlib.sha256(f"{array.dtype} {array.shape}".encode() + array.tobytes()).hexdigest()[:16]


def _places(folder: Path) -> Iterator[Path]:
    """The checkpoints in a folder, the last one first."""
    if folder.is_dir():
        folders = [
            place for place in folder.glob("[0-9]" * 6 + "*") if place.name.isdecimal() and _ours(place)
        ]
        yield from sorted(folders, key=lambda place: -int(place.name))


def _unfinished(folder: Path) -> list[Path]:
    """Temporary folders of processes that were killed while they wrote."""
    return [place for place in folder.glob("." + "[0-9]" * 6 + "*.[0-9]*") if _ours(place)]


def _ours(place: Path) -> bool:
    """Whether a folder has only files of a checkpoint."""
    return (
        place.is_dir()
        and not place.is_symlink()
        and {p.name for p in place.iterdir()} <= {MANIFEST, STATE, TENSORS}
    )


def _read(place: Path) -> Checkpoint:
    """A checkpoint. Raises one of ``DAMAGES`` if it is not as it was written."""
    manifest = json.loads(files.regular_text(place / MANIFEST))
    if manifest != files.seal(manifest):
        raise ValueError("another manifest than was written")
    if manifest["format"] != FORMAT:
        refuse(errors.checkpoint_of_another(place, ["format"]))
    for name, known in manifest["files"].items():
        if files.digest(place / name) != known:
            raise ValueError(f"another {name} than was written")
    tensors = {name: torch.from_numpy(array) for name, array in arrays.read(place / TENSORS).items()}
    state = json.loads(files.regular_text(place / STATE))
    if (
        misfits(manifest, NEEDED)
        or not isinstance(state, Mapping)
        or not set(manifest["files"]) >= {STATE, TENSORS}
    ):
        raise ValueError("another record than is written")
    return Checkpoint(manifest=manifest, state=state, tensors=tensors)


def _same(place: Path, manifest: Mapping[str, Any], identity: Mapping[str, Any]) -> None:
    """Raise F0817 if a checkpoint belongs to another run."""
    there = manifest["identity"]
    differing = [name for name in {**identity, **there} if there.get(name) != identity.get(name)]
    if differing:
        refuse(
            errors.checkpoint_of_another(place, [_difference(name, there, identity) for name in differing])
        )


def _difference(name: str, there: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """The name of an entry that differs, with both values if they are short."""
    one, other = (json.dumps(side[name]) if name in side else "none" for side in (there, here))
    if len(one) + len(other) <= 60:
        return f"{name} ({one} there, {other} here)"
    return name


def unwritable(at: Checkpoints, error: OSError) -> FccoError:
    """The error F0806: a run ends without its checkpoint."""
    return FccoError([errors.checkpoint_not_written(at.folder, error)])
