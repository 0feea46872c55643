"""Every error a user can meet: a stable code, a place, what is wrong, why, and a fix."""

from __future__ import annotations

import re
import textwrap
import traceback
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import NoReturn

from fccomodel.core.quoting import visible
from fccomodel.core.source import NOWHERE, Source, Span

#: Columns of a page, and of the narrowest piece of a long line that is shown.
WIDTH, NARROW = 80, 24
#: Characters of a message, a reason or a fix, which may quote what a file holds.
LONGEST_TEXT = 4_000
PACKAGE = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, kw_only=True)
class Diagnostic:
    """One finding about a model, its binding or its run.

    code      stable identifier, e.g. ``F0203``
    topic     what the code is about
    message   what is wrong, in the user's own words (shown under the caret)
    span      where, or None where no text is to blame (a missing file, say)
    reason    the rule that was broken
    fix       what to write instead
    severity  ``error`` or ``warning`` (a lint note)
    unused    the name that the note says nothing uses
    """

    code: str
    topic: str
    message: str
    span: Span | None = None
    reason: str = ""
    fix: str = ""
    severity: str = "error"
    unused: str = ""

    def __post_init__(self) -> None:
        for part in ("message", "reason", "fix"):
            text = getattr(self, part)
            if len(text) > LONGEST_TEXT:
                object.__setattr__(self, part, text[:LONGEST_TEXT] + " ...")


class FccoError(Exception):
    """Raised with every diagnostic so far; the command line turns it into exit status 2."""

    def __init__(self, diagnostics: Iterable[Diagnostic], source: Source | None = None):
        self.diagnostics = tuple(diagnostics)
        self.source = source
        super().__init__(render(self.diagnostics, source))

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows in place of the calls inside the compiler: the line of the user's that
        led there, and the diagnostics."""
        calls = traceback.extract_tb(self.__traceback__)
        outside = list(takewhile(lambda call: not Path(call.filename).is_relative_to(PACKAGE), calls))
        by_hand = (
            outside and outside[-1].line and "site-packages" not in outside[-1].filename
        )  # of a magic the notebook's own
        if by_hand:
            at = [f"  line {outside[-1].lineno} | {outside[-1].line}"]
        else:
            at = []
        return [*at, *render(self.diagnostics, self.source, colour=True).split("\n")]


def refuse(*diagnostics: Diagnostic, source: Source | None = None) -> NoReturn:
    """Raise diagnostics; one that is nowhere in the text has no place."""
    raise FccoError((replace(d, span=None) if d.span == NOWHERE else d for d in diagnostics), source)


@contextmanager
def quoting(source: Source) -> Iterator[None]:
    """Errors raised inside know the text that their places are in."""
    try:
        yield
    except FccoError as error:
        if error.source is not None:
            raise
        raise FccoError(error.diagnostics, source) from None


@dataclass(frozen=True)
class Code:
    """The stable identifier of one kind of error, and its topic in a word or two; it registers itself,
    once.

    The first two digits are the stage: 00 internal, 01 syntax, 02 names, 03 shapes and types, 04
    domains and structure, 05 binding of data, 06 planning, 07 running, 08 files and options. A code
    stands in the ``errors`` module of the lowest room that needs it, beside the functions that make
    its diagnostics.
    """

    id: str
    topic: str

    def __post_init__(self) -> None:
        assert re.fullmatch(r"F0[0-8]\d\d", self.id), f"{self.id} is no code"
        assert self.id not in _CODES, f"{self.id} is taken: {_CODES[self.id].topic}"
        _CODES[self.id] = self

    def error(self, message: str, *, span: Span | None = None, reason: str = "", fix: str = "") -> Diagnostic:
        """An error under this code."""
        return Diagnostic(code=self.id, topic=self.topic, message=message, span=span, reason=reason, fix=fix)

    def warning(
        self, message: str, *, span: Span | None = None, reason: str = "", fix: str = "", unused: str = ""
    ) -> Diagnostic:
        """A lint note under this code: the model is taken as it stands."""
        return replace(
            self.error(message, span=span, reason=reason, fix=fix), severity="warning", unused=unused
        )


_CODES: dict[str, Code] = {}


def registered() -> tuple[Code, ...]:
    """The codes of the modules imported so far, sorted."""
    return tuple(sorted(_CODES.values(), key=lambda code: code.id))


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """``Did you mean `x`?`` for the nearest candidate by edit distance, or an empty string."""
    near = nearest(name, candidates)
    if near:
        return f"Did you mean `{near}`?"
    return ""


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate nearest to a name, if one in three letters or fewer must change (letter case
    counts nothing)."""
    best: tuple[int, str] | None = None
    for candidate in candidates:
        if candidate == name or abs(len(candidate) - len(name)) > 3 or len(name) > 60:
            continue
        distance = _edits(name.lower(), candidate.lower())
        if distance <= max(len(name), len(candidate)) // 3 and (best is None or distance < best[0]):
            best = (distance, candidate)
    if best:
        return best[1]
    return None


def _edits(a: str, b: str) -> int:
    """Edit distance: insert, delete, replace a letter, or swap two neighbours."""
    before: list[int] = []
    last = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            row.append(min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y)))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                row[j] = min(row[j], before[j - 2] + 1)
        before, last = last, row
    return last[-1]


def render(diagnostics: Sequence[Diagnostic], source: Source | None = None, *, colour: bool = False) -> str:
    """The diagnostics as text, a blank line between two: code, place, source line, caret, reason and fix."""
    return "\n\n".join(_render_one(d, source, colour) for d in diagnostics)


def _render_one(d: Diagnostic, source: Source | None, colour: bool) -> str:
    def paint(text: str, style: str) -> str:
        if colour and text:
            return f"\x1b[{style}m{text}\x1b[0m"
        return text

    d = replace(d, message=visible(d.message, "\n"), reason=visible(d.reason, "\n"), fix=visible(d.fix, "\n"))
    strong = "1;31" if d.severity == "error" else "1;33"
    head = paint(f"{d.severity}[{d.code}]", strong) + " " + paint(d.topic, "1")
    lines: list[str] = []
    if source is not None and d.span is not None:
        source, span = source.at(d.span)
        row, column = source.place(span)
        lines.append(f"{head}  {visible(source.name)}:{row}:{column}")
        gutter = f"  {row} | "
        shown, start, length = _window(
            source.line(row), column - 1, span.end - span.start, max(NARROW, WIDTH - len(gutter))
        )
        lines.append(paint(gutter, "2") + shown)
        margin = paint(" " * (len(gutter) - 2) + "| ", "2")
        beside, below = _beside(d.message, WIDTH - len(gutter), start, length)
        lines.append(margin + " " * start + paint("^" * length + beside, strong))
        lines += [margin + paint(line, strong) for line in below]
    else:
        lines.append(f"{head}  {visible(source.name)}" if source is not None else head)
        lines += ["  " + m for m in _wrap(d.message, "")]
    lines += ["  " + line for line in _wrap(d.reason, "")]
    if d.fix:
        fix = _wrap(d.fix, "     ")
        lines += ["  " + paint("Fix:", "1;32") + " " + fix[0], *("  " + line for line in fix[1:])]
    return "\n".join(line.rstrip() for line in lines)


def _beside(message: str, room: int, start: int, length: int) -> tuple[str, list[str]]:
    """A message right of its caret where it fits there, else in lines of its own below, as near to the
    caret as there is room."""
    said = message.split("\n")
    after = start + length + 1
    if all(after + _columns(line) <= room for line in said):
        return f" {said[0]}" if said[0] else "", [" " * after + line for line in said[1:]]
    lines = _wrap(message, "", room)
    at = max(0, min(start, room - max(map(_columns, lines))))
    return "", [" " * at + line for line in lines]


def _wrap(text: str, hanging: str, width: int = WIDTH - 7) -> list[str]:
    """Each line of a text wrapped to the page; all but the very first begin with ``hanging``."""
    lines: list[str] = []
    for paragraph in text.split("\n") if text else []:
        lines += textwrap.wrap(paragraph, width, break_long_words=False, break_on_hyphens=False) or [""]
    return [line if k == 0 else hanging + line for k, line in enumerate(lines)]


def _columns(text: str) -> int:
    """Columns of a terminal that a text takes."""
    return sum(map(_width, text))


def _width(character: str) -> int:
    """Columns of a terminal that a character takes."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _window(line: str, start: int, length: int, room: int) -> tuple[str, int, int]:
    """A line fit to print in ``room`` columns, with the caret's first column and its length in it.

    Tabs become four columns, what cannot be printed a middle dot; of a long line only the part
    around the caret is left.
    """
    line = line.rstrip("\r")
    start = min(start, len(line))
    skipped = max(0, start - 2 * room)  # what is further away is not shown in any case
    whole, line = len(line), line[skipped : start + 2 * room]
    start -= skipped
    shown = ["    " if c == "\t" else c if c.isprintable() else "·" for c in line]
    columns = [_columns(piece) for piece in shown]
    length = max(1, min(length, len(line) - start))
    while length > 1 and sum(columns[start : start + length]) > room // 2:
        length -= 1
    first, last = 0, len(line)
    if len(line) < whole or sum(columns) > room:
        inside = room - 4  # a mark of what is left out on each side
        first = last = start
        before = min(sum(columns[:start]), max(inside // 3, inside - sum(columns[start:])))
        while first > 0 and sum(columns[first - 1 : start]) <= before:
            first -= 1
        while last < len(line) and sum(columns[first : last + 1]) <= inside:
            last += 1
    head, tail = ("… " if first or skipped else ""), (" …" if skipped + last < whole else "")
    at = start - first
    shown, columns = shown[first:last], columns[first:last]
    return head + "".join(shown) + tail, len(head) + sum(columns[:at]), max(1, sum(columns[at : at + length]))
