"""Reading what the user names, and making the folder that results go into; every failure has a code."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fccomodel.core import diagnostics
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.source import Source

#: A model is written by a person: more than this is another kind of file, and would only exhaust the parser.
LONGEST_MODEL = 1 << 20
SUFFIX = ".fcco"


def fail(code: str, message: str, *, reason: str = "", fix: str = "") -> FccoError:
    """The error to raise for one thing wrong outside the model's text."""
    return FccoError([diagnostics.error(code, message, reason=reason, fix=fix)])


def read_text(path: Path, *, kind: str, limit: int | None = None) -> str:
    """The text of a file that the user named; ``kind`` says what it is in the messages (``model``, ``binding``...)."""
    try:
        if path.is_dir():
            raise fail("F0802", f"`{path}` is a folder, not a {kind} file", fix=_candidates(path, kind))
        if limit is not None and path.stat().st_size > limit:
            raise fail(
                "F0803",
                f"`{path}` has {path.stat().st_size:,} bytes; a {kind} file has at most {limit:,}",
                reason="The text is mathematics only; numbers come from data files.",
                fix="Put the numbers into a table or an array, and bind it with --data NAME=FILE.",
            )
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise fail("F0801", f"There is no {kind} file `{path}`", fix=_neighbours(path)) from None
    except UnicodeDecodeError as error:
        raise fail("F0804", f"`{path}` is not UTF-8 text (byte {error.start})", fix=f"Save the {kind} as UTF-8.") from None
    except (OSError, ValueError) as error:  # ValueError: a null byte in the name
        raise fail("F0802", f"`{path}` cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _neighbours(path: Path) -> str:
    """A guess at the file that was meant: one of the same folder with a similar name."""
    try:
        names = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
    except OSError:
        names = []
    if not path.parent.exists():
        return f"There is no folder `{path.parent}` either."
    return diagnostics.did_you_mean(path.name, names)


def _candidates(path: Path, kind: str) -> str:
    """The model files of a folder that was named in place of one."""
    found = sorted(p.name for p in path.glob("*" + SUFFIX))[:5] if kind == "model" else []
    return f"Name one of its files: {', '.join(found)}." if found else ""


def read_model(path: str | Path) -> Source:
    """The text of a model file, ``-`` for standard input."""
    if str(path) == "-":
        text = sys.stdin.read(LONGEST_MODEL + 1)
        if len(text) > LONGEST_MODEL:
            raise fail("F0803", f"The model on standard input is longer than {LONGEST_MODEL:,} characters")
        return Source(text=text, name="<stdin>")
    return Source(text=read_text(Path(path), kind="model", limit=LONGEST_MODEL), name=str(path))


def model_source(text_or_path: str | Path) -> Source:
    """Model text where the string has a line break or a ``;``, and otherwise the file of that name."""
    if isinstance(text_or_path, str) and ("\n" in text_or_path or ";" in text_or_path):
        if len(text_or_path) > LONGEST_MODEL:
            raise fail("F0803", f"The model's text has {len(text_or_path):,} characters; at most {LONGEST_MODEL:,} are read")
        return Source(text=text_or_path)
    return read_model(text_or_path)


def pairs(items: Iterable[str], option: str) -> dict[str, str]:
    """``NAME=VALUE`` arguments of a repeated option as a dictionary; a later one replaces an earlier one."""
    found: dict[str, str] = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not (equals and name.strip() and value.strip()):
            raise fail(
                "F0805", f"`{option} {item}` is not of the form NAME=VALUE", fix=f"Write, say, {option} {EXAMPLES[option]}."
            )
        found[name.strip()] = value.strip()
    return found


EXAMPLES = {
    "--data": "D=train.parquet",
    "--param": "mu=0.01",
    "--net": '"s=mlp(64, 64, activation=elu)"',
    "--option": "inner_batch=64",
}


def numbers(items: Iterable[str], option: str = "--param") -> dict[str, Any]:
    """``NAME=NUMBER`` arguments; a bracketed list gives a vector parameter."""
    found: dict[str, Any] = {}
    for name, text in pairs(items, option).items():
        try:
            found[name] = json.loads(text) if text.startswith("[") else float(text)
        except ValueError:
            raise fail(
                "F0805", f"`{option} {name}={text}`: `{text}` is not a number", fix="A vector is written [1, 2, 3]."
            ) from None
    return found


def make_folder(path: Path) -> Path:
    """The folder, made where it is not there, and known to take files."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except FileExistsError:
        raise fail("F0806", f"Cannot write into `{path}`: it is a file, not a folder", fix="Name another folder.") from None
    except (OSError, ValueError) as error:
        raise fail("F0806", f"Cannot write into `{path}`: {getattr(error, 'strerror', None) or error}") from None
    return path


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all: an interruption leaves the old one."""
    make_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    except OSError as error:
        raise fail("F0806", f"Cannot write `{path}`: {error.strerror or error}") from None
    finally:
        temporary.unlink(missing_ok=True)
