"""Errors for users: each has a stable code, a place, a message, a reason and a fix."""

from __future__ import annotations

import re
import textwrap
import traceback
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import NoReturn

from fccomodel.core.quoting import visible
from fccomodel.core.source import NOWHERE, Source, Span

#: Columns of a page.
WIDTH = 80
#: Columns of the narrowest piece of a long source line that is shown.
NARROWEST_WINDOW = 24
#: Columns of the mark that stands for omitted text on one side of a long source line.
OMISSION_COLUMNS = 2
#: Letters by which a suggested name may differ in length from the unknown one.
LARGEST_LENGTH_DIFFERENCE = 3
#: Letters of the longest unknown name for which a similar one is sought.
LONGEST_MISSPELLING = 60
#: Characters of a message, a reason or a fix (it may quote a file).
LONGEST_TEXT = 4_000
#: The folder of this package.
PACKAGE = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, kw_only=True)
class Diagnostic:
    """One finding about a model, its binding or its run.

    code      stable identifier, e.g. ``F0203``
    topic     what the code is about
    message   what is wrong, in the user's own words (shown under the caret)
    span      its place in the text, or None if no text is to blame (a missing file, say)
    reason    the rule that was broken
    fix       what to write instead
    severity  ``error`` or ``warning`` (a lint note)
    unused    for a note about an unused name: that name
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
    """One or more diagnostics, as an exception; the command line ends with exit status 2."""

    def __init__(self, diagnostics: Iterable[Diagnostic], source: Source | None = None):
        self.diagnostics = tuple(diagnostics)
        self.source = source
        super().__init__(render(self.diagnostics, source))

    def _render_traceback_(self) -> list[str]:
        """The lines that a notebook shows: the user's own line that led here, and the diagnostics.

        The calls inside the compiler are left out.
        """
        calls = traceback.extract_tb(self.__traceback__)
        outside = list(takewhile(lambda call: not Path(call.filename).is_relative_to(PACKAGE), calls))
        lines = render(self.diagnostics, self.source, colour=True).split("\n")
        # for a magic, the last call outside is the notebook's own
        if outside and outside[-1].line and "site-packages" not in outside[-1].filename:
            lines.insert(0, f"  line {outside[-1].lineno} | {outside[-1].line}")
        return lines


def refuse(*diagnostics: Diagnostic, source: Source | None = None) -> NoReturn:
    """Raise FccoError with these diagnostics; the span NOWHERE becomes None."""
    raise FccoError((replace(d, span=None) if d.span == NOWHERE else d for d in diagnostics), source)


@contextmanager
def quoting(source: Source) -> Iterator[None]:
    """Attach the source text to every FccoError raised inside that has none."""
    try:
        yield
    except FccoError as error:
        if error.source is not None:
            raise
        raise FccoError(error.diagnostics, source) from None


@dataclass(frozen=True)
class Code:
    """The stable identifier of one kind of error, and its topic in a word or two.

    The first two digits are the stage: 00 internal, 01 syntax, 02 names, 03 shapes and types, 04
    domains and structure, 05 binding of data, 06 planning, 07 running, 08 files and options. A code
    is defined in the ``errors`` module of the lowest room that needs it, beside the functions that
    make its diagnostics. Creating it registers it; an identifier can be taken only once.
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
    candidate = nearest(name, candidates)
    if candidate:
        return f"Did you mean `{candidate}`?"
    return ""


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate nearest to a name by edit distance, or None.

    At most a third of the letters may change; letter case does not matter.
    """
    best: tuple[int, str] | None = None
    if len(name) > LONGEST_MISSPELLING:
        return None
    for candidate in candidates:
        if candidate == name or abs(len(candidate) - len(name)) > LARGEST_LENGTH_DIFFERENCE:
            continue
        distance = _edits(name.lower(), candidate.lower())
        if distance <= max(len(name), len(candidate)) // 3 and (best is None or distance < best[0]):
            best = (distance, candidate)
    if best:
        return best[1]
    return None


def _edits(a: str, b: str) -> int:
    """Edit distance: insert, delete, replace a letter, or swap two neighbours."""
    previous: list[int] = []
    current = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            row.append(min(current[j] + 1, row[j - 1] + 1, current[j - 1] + (x != y)))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                row[j] = min(row[j], previous[j - 2] + 1)
        previous, current = current, row
    return current[-1]


def render(diagnostics: Sequence[Diagnostic], source: Source | None = None, *, colour: bool = False) -> str:
    """The diagnostics as text, separated by blank lines.

    Each has its code, its place, the source line with a caret, the reason and the fix.
    """
    return "\n\n".join(_render_one(d, source, colour) for d in diagnostics)


#: A function of a text and a terminal style, which returns the text in that style.
Paint = Callable[[str, str], str]


def _styled(text: str, style: str) -> str:
    """A text in a terminal's style, e.g. ``1;31`` for bold red."""
    if text:
        return f"\x1b[{style}m{text}\x1b[0m"
    return text


def _plain(text: str, style: str) -> str:
    """A text without a style."""
    return text


def _render_one(d: Diagnostic, source: Source | None, colour: bool) -> str:
    """One diagnostic as text."""
    paint = _styled if colour else _plain
    d = replace(d, message=visible(d.message, "\n"), reason=visible(d.reason, "\n"), fix=visible(d.fix, "\n"))
    strong = "1;31" if d.severity == "error" else "1;33"
    head = paint(f"{d.severity}[{d.code}]", strong) + " " + paint(d.topic, "1")
    if source is not None and d.span is not None:
        lines = _at_its_place(d.message, source, d.span, head, paint, strong)
    else:
        if source is not None:
            head = f"{head}  {visible(source.name)}"
        lines = [head, *("  " + line for line in _wrap(d.message, ""))]
    lines += ["  " + line for line in _wrap(d.reason, "")]
    if d.fix:
        fix = _wrap(d.fix, "     ")
        lines += ["  " + paint("Fix:", "1;32") + " " + fix[0], *("  " + line for line in fix[1:])]
    return "\n".join(line.rstrip() for line in lines)


def _at_its_place(
    message: str, source: Source, span: Span, head: str, paint: Paint, strong: str
) -> list[str]:
    """The head with file, line and column, the source line, and the message at a caret below it."""
    source, span = source.at(span)
    row, column = source.place(span)
    gutter = f"  {row} | "
    room = WIDTH - len(gutter)
    shown, start, length = _window(
        source.line(row), column - 1, span.end - span.start, max(NARROWEST_WINDOW, room)
    )
    margin = paint(" " * (len(gutter) - 2) + "| ", "2")
    beside, below = _beside(message, room, start, length)
    return [
        f"{head}  {visible(source.name)}:{row}:{column}",
        paint(gutter, "2") + shown,
        margin + " " * start + paint("^" * length + beside, strong),
        *(margin + paint(line, strong) for line in below),
    ]


def _beside(message: str, room: int, start: int, length: int) -> tuple[str, list[str]]:
    """The text to the right of the caret, and the lines below it.

    The message stands right of the caret if it fits there. Otherwise it is wrapped below, as near to
    the caret as there is room.
    """
    message_lines = message.split("\n")
    after = start + length + 1
    if all(after + _columns(line) <= room for line in message_lines):
        first = message_lines[0]
        return f" {first}" if first else "", [" " * after + line for line in message_lines[1:]]
    lines = _wrap(message, "", room)
    at = max(0, min(start, room - max(map(_columns, lines))))
    return "", [" " * at + line for line in lines]


def _wrap(text: str, hanging: str, width: int = WIDTH - 7) -> list[str]:
    """The lines of a text, wrapped to the page; all but the very first begin with ``hanging``."""
    if not text:
        return []
    lines: list[str] = []
    for paragraph in text.split("\n"):
        lines += textwrap.wrap(paragraph, width, break_long_words=False, break_on_hyphens=False) or [""]
    return [lines[0], *(hanging + line for line in lines[1:])]


def _columns(text: str) -> int:
    """Terminal columns of a text."""
    return sum(map(_width, text))


def _width(character: str) -> int:
    """Terminal columns of a character."""
    if unicodedata.combining(character):
        return 0
    if unicodedata.east_asian_width(character) in "WF":
        return 2
    return 1


def _window(line: str, start: int, length: int, room: int) -> tuple[str, int, int]:
    """A line fit to print in ``room`` columns, with the caret's first column and its length in it.

    A tab becomes four columns, and an unprintable character a middle dot. Of a long line only the
    part around the caret is kept.
    """
    line = line.rstrip("\r")
    start = min(start, len(line))
    skipped = max(0, start - 2 * room)  # text that is further away cannot fit
    whole = len(line)
    line = line[skipped : start + 2 * room]
    start -= skipped
    shown = [_printable(c) for c in line]
    columns = [_columns(piece) for piece in shown]
    length = max(1, min(length, len(line) - start))
    while length > 1 and sum(columns[start : start + length]) > room // 2:
        length -= 1
    first, last = 0, len(line)
    if len(line) < whole or sum(columns) > room:
        first, last = _around(start, columns, room - 2 * OMISSION_COLUMNS)
    head = "… " if first or skipped else ""
    tail = " …" if skipped + last < whole else ""
    at = start - first
    shown, columns = shown[first:last], columns[first:last]
    return head + "".join(shown) + tail, len(head) + sum(columns[:at]), max(1, sum(columns[at : at + length]))


def _printable(character: str) -> str:
    """A character of a source line, as it is printed."""
    if character == "\t":
        return "    "
    if character.isprintable():
        return character
    return "·"


def _around(start: int, columns: Sequence[int], room: int) -> tuple[int, int]:
    """The range of characters around ``start`` that fits into ``room`` columns."""
    first = last = start
    before = min(sum(columns[:start]), max(room // 3, room - sum(columns[start:])))
    while first > 0 and sum(columns[first - 1 : start]) <= before:
        first -= 1
    while last < len(columns) and sum(columns[first : last + 1]) <= room:
        last += 1
    return first, last
