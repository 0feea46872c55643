"""A folder of files that belong together: written in one go, and read only as it was written.

Files are written into ``.writing`` inside the folder, which becomes ``.written`` once all of them
are there. From then on they belong to the folder, wherever a process ends. Then they replace the
earlier files of the same names; other files stay. Files that are read are checked against the
hashes in the record among them, which has a hash of itself too.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fccomodel.app.errors import folder_in_use
from fccomodel.app.stored import errors
from fccomodel.core.diagnostics import FccoError, refuse
from fccomodel.core.errors import file_not_writable, no_lasting_file
from fccomodel.core.files import digest, flush, make_folder, read_text

#: The folder in which files are being written.
WRITING = ".writing"
#: The folder of files that are all written, but not yet in their places.
WRITTEN = ".written"
#: The key of a record for the hashes of the other files, by name.
FILES = "files"
#: The key of a record for its own hash, over all its other entries.
OWN = "sha256"


@dataclass(frozen=True)
class Claimed:
    """A folder in which no other process writes."""

    folder: Path


@contextmanager
def claim(folder: Path) -> Iterator[Claimed]:
    """The folder, which only this process may write in until the block ends. It is made if missing.

    A dead process claims nothing. Raises F0806 if another process writes there, or if nothing can
    be written.
    """
    make_folder(folder)
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # a system whose folders are not opened
        yield Claimed(folder)
        return
    try:
        if not _lock(descriptor):
            refuse(folder_in_use(folder))
        yield Claimed(folder)
    finally:
        os.close(descriptor)


def _lock(held: int) -> bool:
    """Take the lock of an open folder; whether that worked. A file system without locks allows it."""
    try:
        import fcntl

        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        return True
    except OSError as error:
        return error.errno not in (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)
    return True


@contextmanager
def replacing(claimed: Claimed, names: Collection[str]) -> Iterator[Path]:
    """An empty folder to write files in. At the end of the block they replace the earlier files, all or none.

    Files among ``names`` that are not written are removed. Raises F0806 if files cannot be written;
    then the earlier files stay.
    """
    new, written = claimed.folder / WRITING, claimed.folder / WRITTEN
    try:
        _settle(claimed.folder)
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        yield new
        for path in new.iterdir():
            flush(path)
        os.replace(new, written)
        for name in names:
            if not (written / name).exists():
                (claimed.folder / name).unlink(missing_ok=True)
        _settle(claimed.folder)
    except OSError as error:
        raise FccoError([file_not_writable(Path(error.filename or claimed.folder), error)]) from None
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _settle(folder: Path) -> None:
    """Put written files into their places."""
    if _is_own(folder / WRITTEN):
        for path in (folder / WRITTEN).iterdir():
            os.replace(path, folder / path.name)
        (folder / WRITTEN).rmdir()


# ------------------------------------------------------------------------------------------ records
def json_text(record: Mapping[str, Any]) -> str:
    """A record as indented JSON."""
    return json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _own(record: Mapping[str, Any]) -> str:
    """The hash of a record's other entries."""
    text = json_text({name: entry for name, entry in record.items() if name != OWN})
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()


def sealed(record: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The record with the hashes of all files that are in the folder, and its own."""
    record = {**record, FILES: {path.name: digest(path) for path in sorted(folder.iterdir())}}
    return record | {OWN: _own(record)}


def read(folder: Path, name: str, parsed: Callable[[Any], Any]) -> tuple[Any, dict[str, Path]]:
    """The record of that name, ``parsed``, and the paths of the other files that it was written with.

    Raises F0810 if it is not a record, or if it or a file has changed since it was written; and
    whatever ``parsed`` raises.
    """
    path = _place(folder, name)
    try:
        record = json.loads(read_text(path, kind="result", lasting=True))
        result, files, own = parsed(record), record[FILES], record[OWN]
        if not isinstance(files, Mapping) or not all(map(_is_name, files)):
            raise ValueError("the names of its files are not names of files in this folder")
        places = {file: _place(folder, file) for file in files}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FccoError([errors.not_a_result(path, error)]) from None
    if own != _own(record):
        refuse(errors.changed_record(path))
    for file, place in places.items():
        if place.exists() and not place.is_file():
            refuse(no_lasting_file(place, "result"))
        if place.is_file() and digest(place) != files[file]:
            refuse(errors.mixed_folder(place, path))
    return result, places


def _place(folder: Path, name: str) -> Path:
    """The path of a file, which an interruption may have left among the written ones."""
    waiting = folder / WRITTEN / name
    if _is_own(folder / WRITTEN) and waiting.is_file():
        return waiting
    return folder / name


def _is_name(file: Any) -> bool:
    """Whether it is the name of a file, without folders."""
    return isinstance(file, str) and Path(file).name == file


def _is_own(folder: Path) -> bool:
    """Whether it is a folder, and not a link to one, whose files belong to somebody else."""
    return folder.is_dir() and not folder.is_symlink()
