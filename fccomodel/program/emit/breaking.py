"""Long statements of a program on several lines, broken where they have brackets."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

#: Columns of a line in a program.
WIDTH = 110
INDENT = "    "
OPENING = ("(", "[", "{")
CLOSING = (")", "]", "}")
#: Operators between terms, those that bind least first.
OPERATORS = (("|", "&"), ("+", "-"), ("*", "/"))
#: Before a sign that is no operator between terms.
SIGNED = ("+", "-", "*", "/", "|", "&")
#: A statement that returns or assigns, and its value; only a value where it does neither.
STATEMENT = re.compile(r"(\s*(?:return |[\w.\[\], ]+ = )?)(.*)")


@dataclass(frozen=True)
class LineToken:
    """A token of a line: its text, the columns where it starts and ends, and the brackets around it."""

    text: str
    start: int
    end: int
    depth: int


def broken(line: str, width: int = WIDTH) -> list[str]:
    """A statement, on several lines if it is longer than ``width``.

    A sum or a tuple is put in brackets; any other statement is broken inside its longest brackets. A line
    with a comment, or without a place to break it, stays as it is.
    """
    if len(line) <= width or "#" in line:
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    statement = STATEMENT.fullmatch(line)
    assert statement is not None
    head, value = statement.groups()
    pieces = split(value)
    if head.strip() and len(pieces) > 1:
        return [f"{head}(", *parts(pieces, indent, width), f"{indent})"]
    inside = longest_brackets(list(tokens(line)))
    if inside is None:
        return [line]
    first, last = inside
    pieces = split(line[first.end : last.start])
    return [line[: first.end], *parts(pieces, indent, width), indent + line[last.start :]]


def parts(pieces: list[str], indent: str, width: int) -> list[str]:
    """Arguments or terms on lines of their own, as many on one as fit."""
    return filled([part for piece in pieces for part in broken(indent + INDENT + piece, width)], width)


def tokens(line: str) -> Iterator[LineToken]:
    """The tokens of one line, each with the number of brackets around it."""
    depth = 0
    indent = len(line) - len(line.lstrip())
    for token in tokenize.generate_tokens(io.StringIO(line.lstrip()).readline):
        if token.string in CLOSING:
            depth -= 1
        yield LineToken(token.string, indent + token.start[1], indent + token.end[1], depth)
        if token.string in OPENING:
            depth += 1


def longest_brackets(places: list[LineToken]) -> tuple[LineToken, LineToken] | None:
    """The longest pair of brackets that no others enclose, or None if there is none."""
    outermost = [place for place in places if place.depth == 0 and place.text in OPENING + CLOSING]
    pairs = list(zip(outermost[::2], outermost[1::2], strict=False))
    return max(pairs, key=lambda pair: pair[1].start - pair[0].end, default=None)


def split(content: str) -> list[str]:
    """The arguments between brackets, each with its comma; or the terms of a sum, each with its sign."""
    outside = [place for place in tokens(content) if place.depth == 0]
    cuts = [place.end for place in outside if place.text == ","]
    for operators in OPERATORS:
        cuts = cuts or [
            place.start
            for before, place in zip(outside, outside[1:], strict=False)
            if place.text in operators and before.text not in SIGNED
        ]
    pieces = [content[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(content)], strict=True)]
    return [piece.strip() for piece in pieces if piece.strip()]


def filled(lines: list[str], width: int) -> list[str]:
    """Lines that follow one another on as few lines as fit: arguments end with a comma."""
    joined: list[str] = []
    for line in lines:
        alone = line.strip()
        same_place = joined and len(joined[-1]) - len(joined[-1].lstrip()) == len(line) - len(line.lstrip())
        if same_place and joined[-1].endswith(",") and len(joined[-1]) + 1 + len(alone) <= width:
            joined[-1] += f" {alone}"
        else:
            joined.append(line)
    return joined
