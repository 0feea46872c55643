"""``include "file";``: the statements of another file in this one's place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fccomodel.core.diagnostics import Diagnostic, FccoError
from fccomodel.core.files import LONGEST_MODEL, read_text
from fccomodel.core.source import Source, Span
from fccomodel.language import errors, statements, syntax
from fccomodel.language.parse import parse
from fccomodel.language.statements.include import Include


@dataclass(frozen=True, kw_only=True)
class Joined(Source):
    """Several files as one text, one after the other; ``parts`` are the offsets and the files, in order."""

    parts: tuple[tuple[int, Source], ...] = ()

    def at(self, span: Span) -> tuple[Source, Span]:
        """The file that a place is in, and the place there."""
        offset, source = max((p for p in self.parts if p[0] <= span.start), key=lambda p: p[0])
        return source, Span(start=span.start - offset, end=span.end - offset)

    def place(self, span: Span) -> tuple[int, int]:
        source, local_span = self.at(span)
        return source.place(local_span)


def expand(
    parsed: tuple[syntax.Statement, ...], source: Source
) -> tuple[tuple[syntax.Statement, ...], Source]:
    """The statements with every ``include`` replaced by its file's; spans then count in the joined
    text.

    Raises FccoError for a file that is not there, a file that is included twice or by itself, and
    the syntax errors in it.
    """
    if not any(isinstance(s, Include) for s in parsed):
        return parsed, source
    joiner = _Joiner(source)
    expanded = joiner.expand(parsed, source, (_path(source),))
    if joiner.diagnostics:
        raise FccoError(joiner.diagnostics, joiner.joined())
    return expanded, joiner.joined()


def _path(source: Source) -> Path:
    return Path(source.name).resolve()


class _Joiner:
    def __init__(self, source: Source):
        self.parts: list[tuple[int, Source]] = [(0, source)]
        self.length = len(source.text) + 1
        self.included: dict[Path, Include] = {}
        self.diagnostics: list[Diagnostic] = []

    def joined(self) -> Joined:
        text = "\n".join(part.text for _, part in self.parts)
        return Joined(text=text, name=self.parts[0][1].name, parts=tuple(self.parts))

    def expand(
        self, parsed: tuple[syntax.Statement, ...], source: Source, chain: tuple[Path, ...]
    ) -> tuple[syntax.Statement, ...]:
        result: list[syntax.Statement] = []
        for statement in parsed:
            if isinstance(statement, Include):
                result.extend(self.read(statement, source, chain))
            elif len(chain) > 1 and not statements.of(statement).included:
                continue
            else:
                result.append(statement)
        return tuple(result)

    def read(self, node: Include, source: Source, chain: tuple[Path, ...]) -> tuple[syntax.Statement, ...]:
        """The statements of one included file, its path relative to the file that names it."""
        shown = Path(source.name).parent / node.path
        path = shown.resolve()
        if path in chain:
            self.diagnostics.append(errors.names.includes_itself(node.path, node.span))
            return ()
        if path in self.included:
            self.diagnostics.append(errors.names.included_twice(node.path, node.span))
            return ()
        self.included[path] = node
        try:
            text = read_text(shown, kind="model", limit=LONGEST_MODEL, lasting=True)
        except FccoError as error:
            self.diagnostics.extend(
                errors.names.not_included(diagnostic, node.span) for diagnostic in error.diagnostics
            )
            return ()
        part = Source(text=text, name=str(shown))
        offset = self.length
        self.parts.append((offset, part))
        self.length += len(text) + 1
        try:
            model = parse(Source(text=" " * offset + text, name=str(shown)))
        except FccoError as error:
            self.diagnostics.extend(error.diagnostics)
            return ()
        return self.expand(model.statements, part, (*chain, path))
