"""F0712, F0801 - F0809: starts, files, arguments and options that the user names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fccomodel.core.diagnostics import Code, Diagnostic, did_you_mean

START = Code("F0712", "start")
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
    """A file that does not exist; ``beside`` are the files of its folder, None if there is no folder."""
    if beside is None:
        fix = f"There is no folder `{path.parent}` either."
    else:
        fix = did_you_mean(path.name, beside)
    return NO_SUCH_FILE.error(f"There is no {kind} file `{path}`", fix=fix)


def folder_as_file(path: Path, kind: str, candidates: Sequence[str]) -> Diagnostic:
    """A folder in place of a file; ``candidates`` are files in it that may be meant."""
    if candidates:
        fix = f"Name one of its files: {', '.join(candidates)}."
    else:
        fix = ""
    return FILE.error(f"`{path}` is a folder, not a {kind} file", fix=fix)


def no_lasting_file(path: Path, kind: str) -> Diagnostic:
    """A pipe or a device in place of a file that is read more than once."""
    return FILE.error(f"`{path}` is a pipe or a device, not a {kind} file", fix="Write its text into a file.")


def unreadable_file(path: Path, error: Exception) -> Diagnostic:
    """A file that the system does not let us read."""
    return FILE.error(f"`{path}` cannot be read: {_message(error)}")


def file_too_long(path: Path, size: int, kind: str, limit: int) -> Diagnostic:
    """A file longer than ``limit`` bytes, although people write it by hand."""
    return SIZE.error(
        f"`{path}` has {size:,} bytes; a {kind} file has at most {limit:,}",
        reason="The text is mathematics only; numbers come from data files.",
        fix="Put the numbers into a table or an array, and bind it with --data NAME=FILE.",
    )


def input_too_long(limit: int) -> Diagnostic:
    """A model on standard input that is longer than a model file may be."""
    return SIZE.error(f"The model on standard input is longer than {limit:,} characters")


def text_too_long(length: int, limit: int) -> Diagnostic:
    """A model given as text that is longer than a model file may be."""
    return SIZE.error(f"The model's text has {length:,} characters; at most {limit:,} are read")


def not_text(path: Path, kind: str, byte: int) -> Diagnostic:
    """A file that is not UTF-8 text."""
    return NOT_TEXT.error(f"`{path}` is not UTF-8 text (byte {byte})", fix=f"Save the {kind} as UTF-8.")


def file_as_folder(path: Path) -> Diagnostic:
    """A file in place of the folder for results."""
    return OUTPUT.error(f"Cannot write into `{path}`: it is a file, not a folder", fix="Name another folder.")


def folder_not_writable(path: Path, error: Exception) -> Diagnostic:
    """A folder that the system does not let us write into."""
    return OUTPUT.error(f"Cannot write into `{path}`: {_message(error)}")


def file_not_writable(path: Path, error: Exception) -> Diagnostic:
    """A file that the system does not let us write."""
    return OUTPUT.error(f"Cannot write `{path}`: {_message(error)}")


def _message(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)


# ---------------------------------------------------------------------------- arguments and options
def not_a_pair(option: str, item: str, example: str) -> Diagnostic:
    """A value of a repeated option that is not NAME=VALUE."""
    return ARGUMENT.error(
        f"`{option} {item}` is not of the form NAME=VALUE", fix=f"Write, say, {option} {example}."
    )


def given_twice(name: str, places: Sequence[str]) -> Diagnostic:
    """Two values for one name, given in equally strong places."""
    return ARGUMENT.error(f"`{name}` is given twice: {' and '.join(places)}", fix="Give it once.")


def not_a_number(option: str, name: str, text: str) -> Diagnostic:
    """A parameter whose value is neither a number nor a list of numbers."""
    return ARGUMENT.error(
        f"`{option} {name}={text}`: `{text}` is not a number", fix="A vector is written [1, 2, 3]."
    )


def configuration_not_toml(path: Path, error: Exception) -> Diagnostic:
    """A user's configuration that is not TOML."""
    return CONFIGURATION.error(f"`{path}` is not valid TOML: {error}")


def configuration_table(path: Path, table: str) -> Diagnostic:
    """A table in the user's configuration."""
    return CONFIGURATION.error(
        f"`{path}` has a table [{table}]", reason="It holds options alone, as `name = value`."
    )


def not_in_range(name: str, value: Any, origin: str, kind: str) -> Diagnostic:
    """An option's value outside its range; ``kind`` says what the option takes."""
    return OPTION.error(f"`{value}` is no {name} ({origin})", reason=f"{kind}.")


def not_a_seed(value: Any, origin: str) -> Diagnostic:
    """A seed that not every random generator takes."""
    return OPTION.error(
        f"`{value}` is no seed ({origin})", reason="A seed is a whole number from 0 to 2^63 - 1."
    )


def not_a_word(name: str, value: Any, origin: str, allowed: Sequence[str]) -> Diagnostic:
    """A word that is not among those that an option takes."""
    fix = did_you_mean(str(value), allowed) or f"Use {', '.join(allowed[:-1])} or {allowed[-1]}."
    return OPTION.error(f"`{value}` is no {name} ({origin})", fix=fix)


def not_a_budget(value: Any, origin: str) -> Diagnostic:
    """A budget that is neither a time nor a whole number of iterations or oracle calls."""
    return OPTION.error(
        f"`{value}` is no budget ({origin})",
        fix="Write a time (60s, 5m, 2h), a number of iterations (5000it) or of oracle calls (1e6oracles).",
    )


def no_device(name: str, count: int) -> Diagnostic:
    """A GPU, asked for by name, that does not exist."""
    return DEVICE.error(
        f"There is no device `{name}`: torch sees {count} GPUs", fix="Use --device cpu, or auto."
    )
