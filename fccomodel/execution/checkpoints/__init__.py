"""Checkpoints of a run: folders with its state and a manifest, from which a killed run goes on.

``000007/`` has ``state.json`` and ``tensors.npz``, read without pickle, and ``manifest.json``: the
format, what the run is of, by name (model, params, data, options, program), tensors with their
types and shapes, and the hashes of the files. It is written beside and renamed into place, and the
last two are kept. NumPy's format needs no package that is not there in any case, and has every type
that a state has.
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
from fccomodel.execution import errors

FORMAT, KEPT = 1, 2
MANIFEST, STATE, TENSORS = "manifest.json", "state.json", "tensors.npz"
#: What a manifest says beside.
NEEDED = {
    "identity": by_name(anything),
    "stage": text,
    "step": count,
    "seconds": number,
    "files": by_name(text),
}
#: what a file that is no checkpoint is read with
DAMAGES = (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, RecursionError)


@dataclass(frozen=True, kw_only=True)
class Checkpoints:
    """Where a run keeps its state, and after how many seconds again."""

    folder: Path
    every: float = 60.0

    def part(self, name: str) -> Checkpoints:
        """Those of one run of several."""
        return replace(self, folder=self.folder / name)


@dataclass(frozen=True, eq=False, kw_only=True)
class Checkpoint:
    """One that was read: its manifest, the state as text, and its tensors."""

    manifest: Mapping[str, Any]
    state: Mapping[str, Any]
    tensors: Mapping[str, torch.Tensor]


def newest(at: Checkpoints, identity: Mapping[str, Any]) -> tuple[Checkpoint | None, str]:
    """The last whole checkpoint, None where there is none; and what is to be said of damaged ones.

    Raises F0817 where all are damaged, or where it is of another run than ``identity`` says.
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
    """One more checkpoint, whole or not at all; then those before the last two are removed. Raises
    OSError."""
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
        (new / MANIFEST).write_text(json.dumps(files.seal(record), indent=1) + "\n", encoding="utf-8")
        for path in new.iterdir():
            flush(path)
        os.replace(new, at.folder / f"{number:06d}")
    finally:
        shutil.rmtree(new, ignore_errors=True)
    for place in [*places[KEPT - 1 :], *_unfinished(at.folder)]:
        shutil.rmtree(place, ignore_errors=True)


def remove(at: Checkpoints) -> None:
    """All of them, and their folder."""
    for place in [*_places(at.folder), *_unfinished(at.folder)]:
        shutil.rmtree(place, ignore_errors=True)
    with suppress(OSError):  # it has other files, or is not there
        at.folder.rmdir()


def digest(array: Any) -> str:
    """Sixteen hexadecimal digits of an array's numbers, shape and type."""
    array = np.ascontiguousarray(array)
    return hashlib.sha256(f"{array.dtype} {array.shape}".encode() + array.tobytes()).hexdigest()[:16]


def _places(folder: Path) -> Iterator[Path]:
    """The checkpoints in a folder, the last one first."""
    if folder.is_dir():
        found = [place for place in folder.glob("[0-9]" * 6 + "*") if place.name.isdecimal() and _ours(place)]
        yield from sorted(found, key=lambda place: -int(place.name))


def _unfinished(folder: Path) -> list[Path]:
    """What a process left that was killed while it wrote."""
    return [place for place in folder.glob("." + "[0-9]" * 6 + "*.[0-9]*") if _ours(place)]


def _ours(place: Path) -> bool:
    """A folder with the files of a checkpoint, or some of them, and no others."""
    return (
        place.is_dir()
        and not place.is_symlink()
        and {p.name for p in place.iterdir()} <= {MANIFEST, STATE, TENSORS}
    )


def _read(place: Path) -> Checkpoint:
    """One of the checkpoints; an error of ``DAMAGES`` where it is not as it was written."""
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
    """F0817 where a checkpoint is of another run."""
    there = manifest["identity"]
    differing = [name for name in {**identity, **there} if there.get(name) != identity.get(name)]
    if differing:
        refuse(
            errors.checkpoint_of_another(place, [_difference(name, there, identity) for name in differing])
        )


def _difference(name: str, there: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """What differs, and how."""
    one, other = (json.dumps(side[name]) if name in side else "none" for side in (there, here))
    if len(one) + len(other) <= 60:
        return f"{name} ({one} there, {other} here)"
    return name


def unwritable(at: Checkpoints, error: OSError) -> FccoError:
    """F0806 of a run that ends without its checkpoint."""
    return FccoError([errors.checkpoint_not_written(at.folder, error)])
