"""Reading files that the user names, and writing results. Every failure has an error code."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import Any

from fccomodel.core import errors
from fccomodel.core.diagnostics import FccoError, refuse
from fccomodel.core.source import Source

#: Bytes of the longest model. People write models by hand, so a longer file is something else.
LONGEST_MODEL = 1 << 20
#: Bytes that are read from a pipe or a device.
LONGEST_STREAM = 1 << 26
#: The suffix of model files.
SUFFIX = ".fcco"
#: Model files of a folder that a message lists.
LISTED_CANDIDATES = 5


def read_text(path: Path, *, kind: str, limit: int | None = None, lasting: bool = False) -> str:
    """The text of a file that the user named.

    kind     what the file is, for the messages: ``model``, ``binding``, ...
    limit    bytes that it may have; for pipes and devices LONGEST_STREAM if None
    lasting  whether pipes and devices are refused (they may have no end, or wait for ever)

    Raises FccoError with F0801 - F0804.
    """
    try:
        if path.is_dir():
            refuse(errors.folder_as_file(path, kind, _candidates(path, kind)))
        size, regular = path.stat().st_size, path.is_file()
        if lasting and not regular:
            refuse(errors.no_lasting_file(path, kind))
        if not limit and not regular:
            limit = LONGEST_STREAM
        with open(path, "rb") as file:
            if limit:
                content = file.read(limit + 1)
            else:
                content = file.read()
        if limit and len(content) > limit:
            refuse(errors.file_too_long(path, max(size, len(content)), kind, limit))
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except FileNotFoundError:
        raise FccoError([errors.no_file(path, kind, _neighbours(path))]) from None
    except UnicodeDecodeError as error:
        raise FccoError([errors.not_text(path, kind, error.start)]) from None
    except (OSError, ValueError) as error:  # ValueError: a null byte in the name
        raise FccoError([errors.unreadable_file(path, error)]) from None


def _neighbours(path: Path) -> list[str] | None:
    """The files of the same folder, or None if there is no such folder."""
    if not path.parent.exists():
        return None
    try:
        if path.parent.is_dir():
            return [p.name for p in path.parent.iterdir()]
        return []
    except OSError:
        return []


def _candidates(path: Path, kind: str) -> list[str]:
    """The model files of a folder, if the folder was named in place of a model."""
    if kind == "model":
        return sorted(p.name for p in path.glob("*" + SUFFIX))[:LISTED_CANDIDATES]
    return []


def read_model(path: str | Path) -> Source:
    """The source of a model file; ``-`` is standard input."""
    if str(path) == "-":
        text = sys.stdin.read(LONGEST_MODEL + 1)
        if len(text) > LONGEST_MODEL:
            refuse(errors.input_too_long(LONGEST_MODEL))
        return Source(text=text, name="<stdin>")
    return Source(text=read_text(Path(path), kind="model", limit=LONGEST_MODEL), name=str(path))


def model_source(text_or_path: str | Path) -> Source:
    """The source of a model: the text itself if it has a line break or a ``;``, else the file so named."""
    if isinstance(text_or_path, str) and ("\n" in text_or_path or ";" in text_or_path):
        if len(text_or_path) > LONGEST_MODEL:
            refuse(errors.text_too_long(len(text_or_path), LONGEST_MODEL))
        return Source(text=text_or_path)
    return read_model(text_or_path)


def digest(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal digits. Raises OSError for pipes and devices."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def open_regular(path: Path) -> BufferedReader:
    """A file, opened for reading. Raises OSError for pipes and devices, which may have no end."""
    if not path.is_file():
        raise FileNotFoundError(errno.ENOENT, "there is no such file", str(path))
    return open(path, "rb")


def regular_text(path: Path) -> str:
    """The text of a file that this program wrote. Raises OSError (no file) or ValueError (no text)."""
    with open_regular(path) as file:
        return file.read().decode()


def seal(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest with the hash of its other entries under ``sha256``.

    An unchanged manifest equals its own seal.
    """
    text = json.dumps({name: entry for name, entry in manifest.items() if name != "sha256"}, sort_keys=True)
    return {**manifest, "sha256": hashlib.sha256(text.encode()).hexdigest()}


def pairs(items: Iterable[str], option: str) -> dict[str, str]:
    """``NAME=VALUE`` arguments of a repeated option, as a dictionary.

    Raises FccoError (F0805) if a name has two values.
    """
    values: dict[str, str] = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not (equals and name.strip() and value.strip()):
            refuse(errors.not_a_pair(option, item, EXAMPLES[option]))
        name, value = name.strip(), value.strip()
        if values.setdefault(name, value) != value:
            refuse(errors.given_twice(name, [f"{option} {name}={one}" for one in (values[name], value)]))
    return values


def merged(*parts: tuple[str, Mapping[str, Any] | None]) -> dict[str, Any]:
    """The union of several mappings, each with the name of the place that it comes from.

    Raises FccoError (F0805) if two have the same key.
    """
    places: dict[str, str] = {}
    values: dict[str, Any] = {}
    for place, part in parts:
        for name, value in (part or {}).items():
            if name in places:
                refuse(errors.given_twice(str(name), [places[name], place]))
            places[name], values[name] = place, value
    return values


#: Of each repeated option, a value for its error message.
EXAMPLES = {
    "--data": "D=train.parquet",
    "--param": "mu=0.01",
    "--net": '"s=mlp(64, 64, activation=elu)"',
    "--option": "inner_batch=64",
}


def numbers(items: Iterable[str], option: str = "--param") -> dict[str, Any]:
    """``NAME=NUMBER`` arguments, as a dictionary; a bracketed list gives a vector parameter."""
    values: dict[str, Any] = {}
    for name, text in pairs(items, option).items():
        try:
            if text.startswith("["):
                values[name] = json.loads(text)
            else:
                values[name] = float(text)
        except (ValueError, RecursionError):
            raise FccoError([errors.not_a_number(option, name, text)]) from None
    return values


def lists(items: Iterable[str], option: str = "--param") -> dict[str, list[float]]:
    """``NAME=NUMBER,NUMBER,..`` arguments, as lists; a bracketed list is one value."""
    values: dict[str, list[float]] = {}
    for name, text in pairs(items, option).items():
        if text.startswith("["):
            parts = [text]
        else:
            parts = [part for part in text.split(",") if part.strip()]
        values[name] = [value for part in parts for value in numbers([f"{name}={part}"], option).values()]
    return values


def make_folder(path: Path) -> Path:
    """Make a folder unless it exists, and check that it can be written into.

    Raises FccoError (F0806).
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except FileExistsError:
        raise FccoError([errors.file_as_folder(path)]) from None
    except (OSError, ValueError) as error:
        raise FccoError([errors.folder_not_writable(path, error)]) from None
    return path


def write_text(path: Path, text: str) -> None:
    """Write a file completely or not at all; halves of surrogate pairs are written as escapes."""
    with whole(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A temporary path to write to, which is renamed to ``path`` at the end.

    After an interruption the old file is unchanged. Raises FccoError (F0806).
    """
    make_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield temporary
        flush(temporary)
        os.replace(temporary, path)
    except OSError as error:
        raise FccoError([errors.file_not_writable(path, error)]) from None
    finally:
        with suppress(OSError):  # it was renamed, or never made
            temporary.unlink()


def flush(path: Path) -> None:
    """Wait until a file's bytes are on the disk."""
    with open(path, "rb") as file, suppress(OSError):  # some file systems cannot do this
        os.fsync(file.fileno())
