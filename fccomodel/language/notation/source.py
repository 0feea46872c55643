"""The text of a model that is written in Python, and for each place in the text the place in the code."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from lark import Token

from fccomodel.core.source import NOWHERE, Source, Span
from fccomodel.language import format as layout
from fccomodel.language import lexer, printing, statements, syntax
from fccomodel.language.notation import places
from fccomodel.language.printing import Mark
from fccomodel.language.rewriting import deep
from fccomodel.language.statements.model import ModelDecl


@dataclass(frozen=True, kw_only=True)
class ComposedText(Source):
    """The text of a model whose statements are written in Python code or in other files.

    marks  the pieces of syntax in the text, each with its place in the code or the file
    whole  the place for pieces that have none
    """

    marks: tuple[Mark, ...] = field(default=(), repr=False)
    whole: Span = field(repr=False)

    def at(self, span: Span) -> tuple[Source, Span]:
        """The Python code or the file for a place in the text, and the place in it."""
        around = [mark for mark in self.marks if mark.start <= span.start and span.end <= mark.end]
        text = self.text[span.start : span.end]
        for mark in sorted(around, key=lambda mark: mark.end - mark.start):
            located = places.place(mark.span, self.text[mark.start : mark.end])
            if located is None:
                continue
            if (mark.start, mark.end) == (span.start, span.end):
                return located
            return _narrowed(*located, text)
        located = places.place(self.whole, "")
        if located is not None:
            return located
        return Source(text=self.text, name=self.name), span

    def place(self, span: Span) -> tuple[int, int]:
        """Line and column in the Python code, or in the file."""
        source, local = self.at(span)
        return source.place(local)

    def __reduce__(self) -> tuple[Callable[..., ComposedText], tuple[object, ...]]:
        """Pickle with places in texts, since places in code cannot be pickled."""
        marks = []
        for mark in self.marks:
            shown = self.text[mark.start : mark.end]
            marks.append(replace(mark, span=_looked_up(mark.span, shown)))
        return _composed, (self.text, self.name, tuple(marks), _looked_up(self.whole, ""))


def _composed(text: str, name: str, marks: tuple[Mark, ...], whole: Span) -> ComposedText:
    return ComposedText(text=text, name=name, marks=marks, whole=whole)


def _looked_up(span: Span, shown: str) -> Span:
    """A place in code as a place in the text of the code."""
    located = places.place(span, shown)
    if located is None:
        return NOWHERE
    source, local = located
    return places.Written(start=local.start, end=local.end, source=source)


def _narrowed(source: Source, span: Span, text: str) -> tuple[Source, Span]:
    """The place of a piece of a formula if it occurs once in the formula, else the formula's place."""
    if not text:
        return source, span
    piece, within = re.escape(text), source.text[span.start : span.end]
    if text[0].isalnum():
        pattern = rf"(?<![\w.]){piece}(?!\w)"
    else:
        pattern = piece
    matches = list(re.finditer(pattern, within))
    if not matches:
        matches = list(re.finditer(rf"(?<!\w){piece}(?!\w)", within))
    if len(matches) != 1:
        return source, span
    return source, Span(start=span.start + matches[0].start(), end=span.start + matches[0].end())


@dataclass(frozen=True, kw_only=True)
class Said:
    """A statement to write, and its comment."""

    statement: syntax.Statement
    doc: str = ""


def composed(parts: Sequence[Said], *, doc: str, name: str, whole: Span) -> ComposedText:
    """The text in canonical layout; raises FccoError with places in Python if it does not parse."""
    writer = printing.TextWriter()
    _comment(writer, doc)
    if doc and not (parts and isinstance(parts[0].statement, ModelDecl)):
        writer("\n")
    with deep():
        for before, said in pairwise([None, *parts]):
            assert said is not None
            _write(writer, before, said)
    raw = ComposedText(text=writer.text, name=name, marks=tuple(writer.marks), whole=whole)
    text = layout.format(raw)
    return ComposedText(text=text, name=name, marks=_moved(raw, text), whole=whole)


def _write(writer: printing.TextWriter, before: Said | None, said: Said) -> None:
    """Write a statement with its comment: beside a declaration if it fits, else above."""
    if before is not None and statements.of(before.statement).group != statements.of(said.statement).group:
        writer("\n")
    text = statements.text(said.statement)
    comment = f"  # {said.doc}"
    fits = "\n" not in said.doc and len(text) + len(comment) <= layout.WIDTH
    beside = said.doc and statements.names_of(said.statement) and fits
    if said.doc and not beside:
        _comment(writer, said.doc)
    statements.write(writer, said.statement)
    if beside:
        writer(comment)
    writer("\n")


def _comment(writer: printing.TextWriter, doc: str) -> None:
    """Write a comment on lines of its own."""
    for line in doc.splitlines():
        writer(f"# {line}".rstrip(), "\n")


def _moved(raw: ComposedText, text: str) -> tuple[Mark, ...]:
    """The marks of a text, at the places of the same words in another layout."""
    pairs = list(zip(_words(raw.text), _words(text), strict=True))
    starts = {old.start_pos: new.start_pos or 0 for old, new in pairs}
    ends = {old.end_pos: new.end_pos or 0 for old, new in pairs}
    return tuple(
        replace(mark, start=starts[mark.start], end=ends[mark.end])
        for mark in raw.marks
        if mark.start in starts and mark.end in ends
    )


def _words(text: str) -> list[Token]:
    """The words of a text, without spaces and comments."""
    return [token for token in lexer.tokens(text) if token.type not in lexer.SPACE]
