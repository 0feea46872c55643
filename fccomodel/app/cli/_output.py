"""The output of commands: diagnostics on standard error, JSON and reports on standard output."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from fccomodel.core import diagnostics
from fccomodel.core.diagnostics import Diagnostic
from fccomodel.core.quoting import visible
from fccomodel.core.source import Source

if TYPE_CHECKING:
    from fccomodel.app.shown.display import RenderableType
    from fccomodel.pipeline import Compiled


def lint(compiled: Compiled, quiet: bool, shown: Sequence[str] = ()) -> None:
    """Print the lint notes. A `let` that is to be shown counts as used."""
    notes = [note for note in compiled.problem.warnings if note.unused not in shown]
    if notes and not quiet:
        show(notes, compiled.problem.source)


def show(messages: Sequence[Diagnostic], source: Source | None) -> None:
    """Print diagnostics on standard error, in colour on a terminal."""
    colour = sys.stderr.isatty() and "NO_COLOR" not in os.environ
    print(diagnostics.render(messages, source, colour=colour).rstrip("\n"), file=sys.stderr)
    errors = [d for d in messages if d.severity == "error"]
    if len(errors) > 1 or errors and not sys.stderr.isatty():
        say(f"\n{_in_a_line(errors, source)}", sys.stderr)


def _in_a_line(errors: Sequence[Diagnostic], source: Source | None) -> str:
    """The last line of an error's output, for logs that keep only this line."""
    first = errors[0]
    place = ""
    if source is not None and first.span is not None:
        place = "{}:{}:{} ".format(source.name, *source.place(first.span))
    if len(errors) == 1:
        count = "1 error: "
    else:
        count = f"{len(errors)} errors, the first: "
    return f"{count}{first.code} {place}{' '.join(first.message.split())}"


def say(text: object, file: TextIO | None = None) -> None:
    """Print a text on standard output (or ``file``), with control characters made visible."""
    print(visible(str(text), "\n\t"), file=file)


def print_json(record: dict[str, Any]) -> None:
    """Print a record as JSON, with control characters escaped."""
    text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False)
    print("".join(c if visible(c, "\n") == c else json.dumps(c)[1:-1] for c in text))


def print_report(report: RenderableType) -> None:
    """Print a report on standard output, at the width of all reports."""
    from fccomodel.app.shown import display

    display.terminal(sys.stdout).print(report)


def print_written(folder: Path | None, otherwise: str) -> None:
    """Print where results were written, or which option would keep them."""
    say(f"\n written: {folder}" if folder is not None else f"\n not written: {otherwise}")
