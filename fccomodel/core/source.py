"""Model text and places in it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Span:
    """A piece of text: offsets ``start`` (inclusive) and ``end`` (exclusive) into the source."""

    start: int
    end: int

    def __or__(self, other: Span) -> Span:
        """The smallest span that covers both."""
        return Span(start=min(self.start, other.start), end=max(self.end, other.end))


#: The place of things that stand in no text.
NOWHERE = Span(start=0, end=0)


@dataclass(frozen=True, kw_only=True)
class Source:
    """A model's text and the name it is reported under (a file name, or ``<model>``)."""

    text: str
    name: str = "<model>"

    def place(self, span: Span) -> tuple[int, int]:
        """Line and column of the span's start, both from 1."""
        line = self.text.count("\n", 0, span.start) + 1
        first = self.text.rfind("\n", 0, span.start) + 1
        return line, span.start - first + 1

    def at(self, span: Span) -> tuple[Source, Span]:
        """The file that a place is in, and the place in it; it differs if the text joins several files."""
        return self, span

    def line(self, number: int) -> str:
        """The text of a line, without its end."""
        return self.text.split("\n")[number - 1]
