"""The statements of included files in the place of ``include``."""

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
class JoinedFiles(Source):
    """Several files as one text, one after the other; ``parts`` holds their offsets and the files."""

    parts: tuple[tuple[int, Source], ...] = ()

    def at(self, span: Span) -> tuple[Source, Span]:
        """The file that a place is in, and the place there."""
        begun = [part for part in self.parts if part[0] <= span.start]
        offset, source = max(begun, key=lambda part: part[0])
        return source, Span(start=span.start - offset, end=span.end - offset)

    def place(self, span: Span) -> tuple[int, int]:
        """Line and column in the file that a place is in."""
        source, local_span = self.at(span)
        return source.place(local_span)


def expand(
    parsed: tuple[syntax.Statement, ...], source: Source
) -> tuple[tuple[syntax.Statement, ...], Source]:
    """The statements with every ``include`` replaced by the statements of its file, and the joined text.

    Spans count in the joined text. Raises FccoError for a file that does not exist, for a file that is
    included twice or by itself, and for syntax errors in an included file.
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
    """Reads included files.

    parts        the offset of each file in the joined text, and the file
    length       the length of the joined text
    included     the statement that included each file
    diagnostics  the errors so far
    """

    def __init__(self, source: Source):
        self.parts: list[tuple[int, Source]] = [(0, source)]
        self.length = len(source.text) + 1
        self.included: dict[Path, Include] = {}
        self.diagnostics: list[Diagnostic] = []

    def joined(self) -> JoinedFiles:
        """The files as one text."""
        text = "\n".join(part.text for _, part in self.parts)
        return JoinedFiles(text=text, name=self.parts[0][1].name, parts=tuple(self.parts))

    def expand(
        self, parsed: tuple[syntax.Statement, ...], source: Source, chain: tuple[Path, ...]
    ) -> tuple[syntax.Statement, ...]:
        """The statements of a file with those of the files that it includes; ``chain``: the open files."""
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
        """The statements of an included file, whose path is relative to the file that names it."""
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
