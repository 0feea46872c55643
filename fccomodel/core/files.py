"""Reading what the user names, and making the folder that results go into; every failure has a code."""

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

#: A model is written by a person: more than this is another kind of file, and would only exhaust the parser.
LONGEST_MODEL = 1 << 20
#: Bytes of a pipe or a device that are read.
LONGEST_STREAM = 1 << 26
SUFFIX = ".fcco"


def read_text(path: Path, *, kind: str, limit: int | None = None, lasting: bool = False) -> str:
    """The text of a file that the user named; ``kind`` says what it is in the messages (``model``,
    ``binding``...).

    ``lasting``: no pipe or device, which may have no end, or wait for ever; where one may be read,
    it is up to a limit.
    """
    try:
        if path.is_dir():
            refuse(errors.folder_as_file(path, kind, _candidates(path, kind)))
        size, regular = path.stat().st_size, path.is_file()
        if lasting and not regular:
            refuse(errors.no_lasting_file(path, kind))
        most = limit or (None if regular else LONGEST_STREAM)
        with open(path, "rb") as file:
            if most is None:
                content = file.read()
            else:
                content = file.read(most + 1)
        if most is not None and len(content) > most:
            refuse(errors.file_too_long(path, max(size, len(content)), kind, most))
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except FileNotFoundError:
        raise FccoError([errors.no_file(path, kind, _neighbours(path))]) from None
    except UnicodeDecodeError as error:
        raise FccoError([errors.not_text(path, kind, error.start)]) from None
    except (OSError, ValueError) as error:  # ValueError: a null byte in the name
        raise FccoError([errors.unreadable_file(path, error)]) from None


def _neighbours(path: Path) -> list[str] | None:
    """The files of the same folder, None where there is no such folder."""
    if not path.parent.exists():
        return None
    try:
        if path.parent.is_dir():
            return [p.name for p in path.parent.iterdir()]
        return []
    except OSError:
        return []


def _candidates(path: Path, kind: str) -> list[str]:
    """The model files of a folder that was named in place of one."""
    if kind == "model":
        return sorted(p.name for p in path.glob("*" + SUFFIX))[:5]
    return []


def read_model(path: str | Path) -> Source:
    """The text of a model file, ``-`` for standard input."""
    if str(path) == "-":
        text = sys.stdin.read(LONGEST_MODEL + 1)
        if len(text) > LONGEST_MODEL:
            refuse(errors.input_too_long(LONGEST_MODEL))
        return Source(text=text, name="<stdin>")
    return Source(text=read_text(Path(path), kind="model", limit=LONGEST_MODEL), name=str(path))


def model_source(text_or_path: str | Path) -> Source:
    """Model text where the string has a line break or a ``;``, and otherwise the file of that name."""
    if isinstance(text_or_path, str) and ("\n" in text_or_path or ";" in text_or_path):
        if len(text_or_path) > LONGEST_MODEL:
            refuse(errors.text_too_long(len(text_or_path), LONGEST_MODEL))
        return Source(text=text_or_path)
    return read_model(text_or_path)


def digest(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal digits. OSError where it is no file, but a pipe,
    say, which may never end."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def open_regular(path: Path) -> BufferedReader:
    """A file, open for reading; OSError where it is none: a pipe or a device may have no end, or wait
    for ever."""
    if not path.is_file():
        raise FileNotFoundError(errno.ENOENT, "there is no such file", str(path))
    return open(path, "rb")


def regular_text(path: Path) -> str:
    """The text of a file that this program wrote; OSError where it is no file, ValueError where it is
    no text."""
    with open_regular(path) as file:
        return file.read().decode()


def seal(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest with the hash of its other entries, ``sha256``: what was written is equal to its own
    seal."""
    text = json.dumps({name: entry for name, entry in manifest.items() if name != "sha256"}, sort_keys=True)
    return {**manifest, "sha256": hashlib.sha256(text.encode()).hexdigest()}


def pairs(items: Iterable[str], option: str) -> dict[str, str]:
    """``NAME=VALUE`` arguments of a repeated option as a dictionary; F0805 where a name has two values."""
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
    """What several mappings give by name, each with the place that it is; F0805 where two give the
    same name."""
    places: dict[str, str] = {}
    values: dict[str, Any] = {}
    for called, part in parts:
        for name, value in (part or {}).items():
            if name in places:
                refuse(errors.given_twice(str(name), [places[name], called]))
            places[name], values[name] = called, value
    return values


EXAMPLES = {
    "--data": "D=train.parquet",
    "--param": "mu=0.01",
    "--net": '"s=mlp(64, 64, activation=elu)"',
    "--option": "inner_batch=64",
}


def numbers(items: Iterable[str], option: str = "--param") -> dict[str, Any]:
    """``NAME=NUMBER`` arguments; a bracketed list gives a vector parameter."""
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
    """``NAME=NUMBER,NUMBER,..`` arguments; others, of one number or a bracketed list, as one value."""
    values: dict[str, list[float]] = {}
    for name, text in pairs(items, option).items():
        if text.startswith("["):
            parts = [text]
        else:
            parts = [part for part in text.split(",") if part.strip()]
        values[name] = [value for part in parts for value in numbers([f"{name}={part}"], option).values()]
    return values


def make_folder(path: Path) -> Path:
    """The folder, made where it is not there; writing a file into it is tried."""
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
    """Write a file whole or not at all; halves of surrogate pairs, which names of files may hold, by
    their escapes."""
    with whole(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Another name to write a file by, which then takes the file's place: an interruption leaves the
    old one."""
    make_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield temporary
        flush(temporary)
        os.replace(temporary, path)
    except OSError as error:
        raise FccoError([errors.file_not_writable(path, error)]) from None
    finally:
        with suppress(OSError):  # it was put in place, or never made
            temporary.unlink()


def flush(path: Path) -> None:
    """A file's bytes, not in the system's memory alone."""
    with open(path, "rb") as file, suppress(OSError):  # not every file system has it
        os.fsync(file.fileno())
