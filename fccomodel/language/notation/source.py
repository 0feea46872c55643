"""A model's text made of its statements, and for each place in it the place in Python that says the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from fccomodel.core.source import NOWHERE, Source, Span
from fccomodel.language import format as layout
from fccomodel.language import lexer, printing, statements, syntax
from fccomodel.language.notation import places
from fccomodel.language.printing import Mark
from fccomodel.language.rewriting import deep
from fccomodel.language.statements.model import ModelDecl


@dataclass(frozen=True, kw_only=True)
class Composed(Source):
    """The text of a model whose statements have places elsewhere: ``marks``, and ``whole`` where there
    is none."""

    marks: tuple[Mark, ...] = field(default=(), repr=False)
    whole: Span = field(repr=False)

    def at(self, span: Span) -> tuple[Source, Span]:
        """The Python code, or the file, that says what the text says at a place, and the place there."""
        around = [m for m in self.marks if m.start <= span.start and span.end <= m.end]
        text = self.text[span.start : span.end]
        for mark in sorted(around, key=lambda m: m.end - m.start):
            found = places.place(mark.span, self.text[mark.start : mark.end])
            if found is not None:
                if (mark.start, mark.end) == (span.start, span.end):
                    return found
                return _narrowed(*found, text)
        return places.place(self.whole, self.text[:0]) or (Source(text=self.text, name=self.name), span)

    def place(self, span: Span) -> tuple[int, int]:
        source, local = self.at(span)
        return source.place(local)

    def __reduce__(self) -> tuple[Callable[..., Composed], tuple[object, ...]]:
        """Pickled with the places looked up: code cannot be."""
        marks = tuple(
            replace(mark, span=_fixed(mark.span, self.text[mark.start : mark.end])) for mark in self.marks
        )
        return _composed, (self.text, self.name, marks, _fixed(self.whole, ""))


def _composed(text: str, name: str, marks: tuple[Mark, ...], whole: Span) -> Composed:
    return Composed(text=text, name=name, marks=marks, whole=whole)


def _fixed(span: Span, shown: str) -> Span:
    """A place that needs no code any more."""
    found = places.place(span, shown)
    if found is None:
        return NOWHERE
    return places.Written(start=found[1].start, end=found[1].end, source=found[0])


def _narrowed(source: Source, span: Span, text: str) -> tuple[Source, Span]:
    """The one place where a piece of a formula is written, inside the formula's."""
    if not text:
        return source, span
    if text[0].isalnum():
        pattern = rf"(?<![\w.]){re.escape(text)}(?!\w)"
    else:
        pattern = re.escape(text)
    within = source.text[span.start : span.end]
    found = [*re.finditer(pattern, within)] or [*re.finditer(rf"(?<!\w){re.escape(text)}(?!\w)", within)]
    if len(found) != 1:
        return source, span
    return source, Span(start=span.start + found[0].start(), end=span.start + found[0].end())


@dataclass(frozen=True, kw_only=True)
class Said:
    """A statement to write, its comment, and its place."""

    statement: syntax.Statement
    doc: str = ""


def composed(parts: Sequence[Said], *, doc: str, name: str, whole: Span) -> Composed:
    """The text in canonical layout; raises FccoError, with the places of Python, where it is no syntax."""
    writer = printing.Writer()
    _comment(writer, doc)
    writer("\n" * (bool(doc) and not (parts and isinstance(parts[0].statement, ModelDecl))))
    with deep():
        for before, said in pairwise([None, *parts]):
            assert said is not None
            _write(writer, before, said)
    raw = Composed(text=writer.text, name=name, marks=tuple(writer.marks), whole=whole)
    text = layout.format(raw)
    return Composed(text=text, name=name, marks=_moved(raw, text), whole=whole)


def _write(writer: printing.Writer, before: Said | None, said: Said) -> None:
    if before is not None and statements.of(before.statement).group != statements.of(said.statement).group:
        writer("\n")
    text = statements.text(said.statement)
    beside = statements.names_of(said.statement) and said.doc and "\n" not in said.doc
    beside = beside and len(text) + len(said.doc) + 4 <= layout.WIDTH
    if said.doc and not beside:
        _comment(writer, said.doc)
    statements.write(writer, said.statement)
    writer(f"  # {said.doc}" if beside else "", "\n")


def _comment(writer: printing.Writer, doc: str) -> None:
    for line in doc.splitlines():
        writer(f"# {line}".rstrip(), "\n")


def _moved(raw: Composed, text: str) -> tuple[Mark, ...]:
    """The marks of a text in another layout of the same words."""
    old, new = ([t for t in lexer.tokens(each) if t.type not in lexer.SPACE] for each in (raw.text, text))
    starts = {a.start_pos: b.start_pos or 0 for a, b in zip(old, new, strict=True)}
    ends = {a.end_pos: b.end_pos or 0 for a, b in zip(old, new, strict=True)}
    return tuple(
        Mark(start=starts[m.start], end=ends[m.end], span=m.span, leaf=m.leaf)
        for m in raw.marks
        if m.start in starts and m.end in ends
    )
