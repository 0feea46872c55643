"""F0801 - F0809: files, arguments and options that the user names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fccomodel.core.diagnostics import Code, Diagnostic, did_you_mean

NO_SUCH_FILE = Code("F0801", "no such file")
FILE = Code("F0802", "file")
SIZE = Code("F0803", "size")
NOT_TEXT = Code("F0804", "not text")
ARGUMENT = Code("F0805", "argument")
OUTPUT = Code("F0806", "output")
CONFIGURATION = Code("F0807", "configuration")
OPTION = Code("F0808", "option")
DEVICE = Code("F0809", "device")


# -------------------------------------------------------------------------------------------- files
def no_file(path: Path, kind: str, beside: Sequence[str] | None) -> Diagnostic:
    """A file that is read is there; ``beside`` are its folder's files, None where the folder is
    missing too."""
    if beside is None:
        fix = f"There is no folder `{path.parent}` either."
    else:
        fix = did_you_mean(path.name, beside)
    return NO_SUCH_FILE.error(f"There is no {kind} file `{path}`", fix=fix)


def folder_as_file(path: Path, kind: str, candidates: Sequence[str]) -> Diagnostic:
    """A file is named, not its folder; ``candidates`` are files of it that may be meant."""
    if candidates:
        fix = f"Name one of its files: {', '.join(candidates)}."
    else:
        fix = ""
    return FILE.error(f"`{path}` is a folder, not a {kind} file", fix=fix)


def no_lasting_file(path: Path, kind: str) -> Diagnostic:
    """What is read more than once, or named inside another file, is a file on a disk."""
    return FILE.error(f"`{path}` is a pipe or a device, not a {kind} file", fix="Write its text into a file.")


def unreadable_file(path: Path, error: Exception) -> Diagnostic:
    """The system lets the file be read."""
    return FILE.error(f"`{path}` cannot be read: {_message(error)}")


def file_too_long(path: Path, size: int, kind: str, limit: int) -> Diagnostic:
    """A file that people write has at most ``limit`` bytes."""
    return SIZE.error(
        f"`{path}` has {size:,} bytes; a {kind} file has at most {limit:,}",
        reason="The text is mathematics only; numbers come from data files.",
        fix="Put the numbers into a table or an array, and bind it with --data NAME=FILE.",
    )


def input_too_long(limit: int) -> Diagnostic:
    """A model on standard input is as short as one in a file."""
    return SIZE.error(f"The model on standard input is longer than {limit:,} characters")


def text_too_long(length: int, limit: int) -> Diagnostic:
    """A model given as text is as short as one in a file."""
    return SIZE.error(f"The model's text has {length:,} characters; at most {limit:,} are read")


def not_text(path: Path, kind: str, byte: int) -> Diagnostic:
    """What people write is UTF-8."""
    return NOT_TEXT.error(f"`{path}` is not UTF-8 text (byte {byte})", fix=f"Save the {kind} as UTF-8.")


def file_as_folder(path: Path) -> Diagnostic:
    """Results go into a folder."""
    return OUTPUT.error(f"Cannot write into `{path}`: it is a file, not a folder", fix="Name another folder.")


def folder_not_writable(path: Path, error: Exception) -> Diagnostic:
    """The system lets a folder take files."""
    return OUTPUT.error(f"Cannot write into `{path}`: {_message(error)}")


def file_not_writable(path: Path, error: Exception) -> Diagnostic:
    """The system lets a file be written."""
    return OUTPUT.error(f"Cannot write `{path}`: {_message(error)}")


def _message(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)


# ---------------------------------------------------------------------------- arguments and options
def not_a_pair(option: str, item: str, example: str) -> Diagnostic:
    """A repeated option takes NAME=VALUE."""
    return ARGUMENT.error(
        f"`{option} {item}` is not of the form NAME=VALUE", fix=f"Write, say, {option} {example}."
    )


def given_twice(name: str, places: Sequence[str]) -> Diagnostic:
    """A name has one value; two that are given for it, in the same door, are not weighed against each
    other."""
    return ARGUMENT.error(f"`{name}` is given twice: {' and '.join(places)}", fix="Give it once.")


def not_a_number(option: str, name: str, text: str) -> Diagnostic:
    """The value of a parameter is a number or a list of numbers."""
    return ARGUMENT.error(
        f"`{option} {name}={text}`: `{text}` is not a number", fix="A vector is written [1, 2, 3]."
    )


def configuration_not_toml(path: Path, error: Exception) -> Diagnostic:
    """The user's configuration is TOML."""
    return CONFIGURATION.error(f"`{path}` is not valid TOML: {error}")


def configuration_table(path: Path, table: str) -> Diagnostic:
    """The user's configuration has no tables."""
    return CONFIGURATION.error(
        f"`{path}` has a table [{table}]", reason="It holds options alone, as `name = value`."
    )


def not_in_range(name: str, value: Any, origin: str, kind: str) -> Diagnostic:
    """An option's number is of its kind and in its range, which ``kind`` says."""
    return OPTION.error(f"`{value}` is no {name} ({origin})", reason=f"{kind}.")


def not_a_seed(value: Any, origin: str) -> Diagnostic:
    """A seed is what every random generator used takes."""
    return OPTION.error(
        f"`{value}` is no seed ({origin})", reason="A seed is a whole number from 0 to 2^63 - 1."
    )


def not_a_word(name: str, value: Any, origin: str, allowed: Sequence[str]) -> Diagnostic:
    """An option takes one of a few words."""
    fix = did_you_mean(str(value), allowed) or f"Use {', '.join(allowed[:-1])} or {allowed[-1]}."
    return OPTION.error(f"`{value}` is no {name} ({origin})", fix=fix)


def not_a_budget(value: Any, origin: str) -> Diagnostic:
    """A budget is a time, or a whole number of iterations or of oracle calls."""
    return OPTION.error(
        f"`{value}` is no budget ({origin})",
        fix="Write a time (60s, 5m, 2h), a number of iterations (5000it) or of oracle calls (1e6oracles).",
    )


def no_device(name: str, count: int) -> Diagnostic:
    """A GPU asked for by name is there."""
    return DEVICE.error(
        f"There is no device `{name}`: torch sees {count} GPUs", fix="Use --device cpu, or auto."
    )
