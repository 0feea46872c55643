"""Offsets in a text, and places as editors count them: lines from 0, and UTF-16 units in a line."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

from fccomodel.core.source import Span

#: The largest character that is one UTF-16 unit.
LAST_OF_ONE_UNIT = 0xFFFF


@dataclass(eq=False)
class Places:
    """The places of one text."""

    text: str

    @cached_property
    def starts(self) -> list[int]:
        """The offset at which each line begins."""
        starts = [0]
        for offset, character in enumerate(self.text):
            if character == "\n":
                starts.append(offset + 1)
        return starts

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset."""
        line = bisect_right(self.starts, offset) - 1
        return line, _units(self.text[self.starts[line] : offset])

    def offset(self, line: int, column: int) -> int:
        """The offset of a place; one beyond the end of its line is at that end."""
        if line >= len(self.starts):
            return len(self.text)
        offset = self.starts[line]
        while column > 0 and offset < len(self.text) and self.text[offset] != "\n":
            column -= _units(self.text[offset])
            offset += 1
        return offset

    def ends(self, span: Span) -> tuple[tuple[int, int], tuple[int, int]]:
        """The places of both ends of a span."""
        return self.place(span.start), self.place(span.end)


def _units(text: str) -> int:
    """The UTF-16 units of a text."""
    return len(text) + sum(ord(character) > LAST_OF_ONE_UNIT for character in text)
