"""Statements that were read before: while somebody types, all but one are the same, moved perhaps."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from fccomodel.core.source import Span
from fccomodel.language import parse, syntax
from fccomodel.language.splitter import Piece

#: What decides the syntax of a statement: its words with their places in it, and what is around it.
Key = tuple[Any, ...]


@dataclass(eq=False)
class KnownStatements:
    """The statements of a text, by their words.

    now      those that were read, each with the offset that it was read at
    earlier  those of the text before, which are taken over when they are met again
    """

    now: dict[Key, tuple[int, tuple[syntax.Statement, ...]]] = field(default_factory=dict)
    earlier: dict[Key, tuple[int, tuple[syntax.Statement, ...]]] = field(default_factory=dict)

    def aged(self) -> KnownStatements:
        """The knowledge for the next text."""
        return KnownStatements(earlier=self.now or self.earlier)

    def read(self, piece: Piece, constrained: bool, indices: frozenset[str]) -> tuple[syntax.Statement, ...]:
        """The nodes of a statement; raises ``Refusal`` as ``parse.statement`` does."""
        start = piece.words[0].start_pos or 0
        words = tuple((w.type, str(w), (w.start_pos or 0) - start) for w in piece.words)
        key = (words, constrained, indices)
        found = self.now.get(key) or self.earlier.get(key)
        if found is None:
            nodes = parse.statement(piece, constrained, indices)
        elif found[0] == start:
            nodes = found[1]
        else:
            nodes = moved(found[1], start - found[0])
        self.now[key] = start, nodes
        return nodes


def moved(node: Any, by: int) -> Any:
    """The same syntax at another place of the text."""
    if isinstance(node, tuple):
        return tuple(moved(part, by) for part in node)
    if not isinstance(node, syntax.Node):
        return node
    changes: dict[str, Any] = {"span": Span(start=node.span.start + by, end=node.span.end + by)}
    for entry in dataclasses.fields(node):
        value = getattr(node, entry.name)
        if isinstance(value, tuple | syntax.Node):
            changes[entry.name] = moved(value, by)
    return dataclasses.replace(node, **changes)
