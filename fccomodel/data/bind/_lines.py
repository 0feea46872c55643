"""The lines of the keys in a TOML text."""

from __future__ import annotations

import re


def key_lines(text: str) -> dict[tuple[str, ...], int]:
    """The line (from 1) of every section and key. Lines inside a value are skipped."""
    lines: dict[tuple[str, ...], int] = {}
    section: tuple[str, ...] = ()
    depth, quote = 0, ""
    for number, line in enumerate(text.splitlines(), start=1):
        if depth == 0 and not quote:
            if head := re.match(r"\s*\[+\s*([^\]]+?)\s*\]", line):
                section = _dotted(head[1])
                lines.setdefault(section, number)
                continue
            if key := re.match(r"""\s*((?:"[^"]*"|'[^']*'|[\w.-]|\s(?=[.\w"']))+?)\s*=""", line):
                lines.setdefault(section + _dotted(key[1]), number)
        depth, quote = _brackets(line, depth, quote)
    return lines


def _dotted(text: str) -> tuple[str, ...]:
    """The parts of a key such as ``a."b c".d``, without quotes."""
    parts = re.findall(r"""\s*("[^"]*"|'[^']*'|[^.]+)\s*(?:\.|$)""", text)
    return tuple(part.strip().strip("\"'") for part in parts)


def _brackets(line: str, depth: int, quote: str) -> tuple[int, str]:
    """The depth of brackets and the quote of an open multi-line string, after a line."""
    position = 0
    while position < len(line):
        if quote:
            end = line.find(quote, position)
            if end < 0:
                return depth, quote if len(quote) == 3 else ""
            position, quote = end + len(quote), ""
            continue
        character = line[position]
        if character in "\"'":
            if line.startswith(character * 3, position):
                quote = character * 3
            else:
                quote = character
            position += len(quote)
            continue
        if character == "#":
            break
        depth += (character in "[{") - (character in "]}")
        position += 1
    return max(depth, 0), quote if len(quote) == 3 else ""
