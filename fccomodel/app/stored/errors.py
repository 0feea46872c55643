"""F0810: stored results that cannot be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fccomodel.core.diagnostics import Code, Diagnostic

RESULT = Code("F0810", "result")
AGAIN = "Solve again, or take the whole folder from where it was kept."


def no_result_folder(folder: Path) -> Diagnostic:
    """A result is a folder."""
    return RESULT.error(f"`{folder}` is not a folder", fix="Name the folder that `solve --out` wrote.")


def not_a_result(path: Path, error: Exception) -> Diagnostic:
    """The folder of a result has the files that a solve wrote."""
    return RESULT.error(f"`{path}` is not the result of a solve: {type(error).__name__} {error}")


def format_of_result(path: Path, written: Any, supported: Any) -> Diagnostic:
    """A result has a format that this version reads."""
    return RESULT.error(f"`{path}` has format {written}; this version reads format {supported}")


def changed_record(path: Path) -> Diagnostic:
    """The record of a result has not been changed since it was written."""
    return RESULT.error(f"`{path}` is damaged, or was changed after it was written", fix=AGAIN)


def mixed_folder(path: Path, record: Path) -> Diagnostic:
    """The files of a result were written together."""
    return RESULT.error(
        f"`{path}` is not the file that was written with `{record}`",
        reason="Its SHA-256 is another.",
        fix=AGAIN,
    )


def other_model(path: Path, stored: Any, read: str, version: Any) -> Diagnostic:
    """The model of a result is the model that was solved."""
    return RESULT.error(
        f"`{path}`: the model's text now reads as another model ({read}) than the one that was solved "
        f"({stored})",
        reason=f"fccomodel {version} wrote it.",
        fix=AGAIN,
    )


def unreadable_variables(path: Path, error: Exception) -> Diagnostic:
    """The variables of a result can be read."""
    return RESULT.error(f"`{path}` cannot be read: {error}")


def variable_not_stored(path: Path, name: str) -> Diagnostic:
    """A result has every variable of its model."""
    return RESULT.error(f"`{path}` has no `{name}`", reason=f"The model declares `var {name}`.")


def variable_not_declared(path: Path, name: str) -> Diagnostic:
    """A result has no arrays beside the variables of its model."""
    return RESULT.error(
        f"`{path}` has a `{name}`, which is no variable of the model",
        fix="Take the folder as the solve wrote it, or solve the model again.",
    )


def stored_not_numbers(path: Path, name: str) -> Diagnostic:
    """The arrays of an answer are finite real numbers."""
    return RESULT.error(
        f"`{name}` in `{path}` is not of finite real numbers",
        fix="Take the folder as the solve wrote it, or solve the model again.",
    )


def stored_shape(name: str, solved: tuple[int, ...], asked: tuple[int | None, ...]) -> Diagnostic:
    """A stored variable has the shape that the data give it."""
    return RESULT.error(
        f"`{name}` was solved with shape {solved}, and this data gives it {asked}",
        fix="Bind data with the same features.",
    )
