"""A folder of files that belong together: written beside, put in place as a whole, and read only as it
was written.

Files are written into ``.writing`` inside the folder, which becomes ``.written`` once all of them
are there: from then on they are the folder's, wherever a process ends. Then they take the places of
the files of before, of the same names; other files stay. What is read is checked against the hashes
that the record among them has of the others, and of itself.
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

from fccomodel.app import errors
from fccomodel.core.diagnostics import FccoError, refuse
from fccomodel.core.errors import file_not_writable, no_lasting_file
from fccomodel.core.files import digest, flush, make_folder, read_text

WRITING, WRITTEN = ".writing", ".written"
#: keys of a record: the hashes of the other files by name, and its own, over all its other entries
FILES, OWN = "files", "sha256"


@dataclass(frozen=True)
class Claimed:
    """A folder in which no other process writes."""

    folder: Path


@contextmanager
def claim(folder: Path) -> Iterator[Claimed]:
    """The folder, made where it is not there, for this process to write in until the block ends; a
    dead process claims nothing.

    Raises F0806 where another writes there, or nothing can be written.
    """
    make_folder(folder)
    try:
        held = os.open(folder, os.O_RDONLY)
    except OSError:  # a system whose folders are not opened
        yield Claimed(folder)
        return
    try:
        if not _lock(held):
            refuse(errors.folder_in_use(folder))
        yield Claimed(folder)
    finally:
        os.close(held)


def _lock(held: int) -> bool:
    """Take the lock of an open folder; False where another has it. A file system without locks gives
    it to everyone."""
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
    """An empty folder to write files in; at the end of the block they take the places of those of
    before, all or none.

    Of ``names``, those that are not written are removed. Raises F0806 where files cannot be
    written: what was there stays.
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
    """Files that are written and not yet in their places are put there."""
    if _is_own(folder / WRITTEN):
        for path in (folder / WRITTEN).iterdir():
            os.replace(path, folder / path.name)
        (folder / WRITTEN).rmdir()


# ------------------------------------------------------------------------------------------ records
def json_text(record: Mapping[str, Any]) -> str:
    """A record as JSON, in lines."""
    return json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _own(record: Mapping[str, Any]) -> str:
    """The same of a record's entries."""
    text = json_text({name: entry for name, entry in record.items() if name != OWN})
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()


def sealed(record: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The record with the hashes of all files that are in the folder, and its own."""
    record = {**record, FILES: {path.name: digest(path) for path in sorted(folder.iterdir())}}
    return record | {OWN: _own(record)}


def read(folder: Path, name: str, parsed: Callable[[Any], Any]) -> tuple[Any, dict[str, Path]]:
    """What ``parsed`` makes of the record of that name, and where the other files are that it was
    written with.

    Raises F0810 where it is no record, where it or a file has another hash than when it was
    written, and what ``parsed`` raises.
    """
    path = _place(folder, name)
    try:
        record = json.loads(read_text(path, kind="result", lasting=True))
        result, files, own = parsed(record), record[FILES], record[OWN]
        if not isinstance(files, Mapping) or not all(
            isinstance(file, str) and Path(file).name == file for file in files
        ):
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
    """Where a file is: an interruption may have left it among those that are written and not yet in
    their places."""
    waiting = folder / WRITTEN / name
    if _is_own(folder / WRITTEN) and waiting.is_file():
        return waiting
    return folder / name


def _is_own(folder: Path) -> bool:
    """Whether it is a folder where it is named, and not a link to one, whose files are others'."""
    return folder.is_dir() and not folder.is_symlink()
