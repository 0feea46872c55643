"""Reading a model file: its statements with their comments."""

from __future__ import annotations

from dataclasses import replace

from fccomodel.core.source import Source
from fccomodel.language import lexer, rewriting, syntax
from fccomodel.language.check.include import expand
from fccomodel.language.notation import places
from fccomodel.language.notation.entries import StatementEntry
from fccomodel.language.parse import parse
from fccomodel.language.statements.model import ModelDecl


def read(source: Source) -> tuple[str | None, str, list[StatementEntry]]:
    """The model's name, the comment at its top, and its statements, with those of included files."""
    parsed, whole = expand(parse(source).statements, source)
    entries = [
        _entry(statement, whole, comments)
        for statement, comments in zip(parsed, _comments(whole, parsed), strict=True)
    ]
    if entries:
        first = entries[0].statement
    else:
        first = None
    if isinstance(first, ModelDecl):
        return first.name, entries[0].doc, entries[1:]
    return None, "", entries


def _entry(statement: syntax.Statement, source: Source, comments: list[str]) -> StatementEntry:
    placed = _placed(statement, source)
    assert isinstance(placed, syntax.Statement)
    return StatementEntry(statement=placed, at=placed.span, doc="\n".join(comments))


def _placed(node: syntax.Node, source: Source) -> syntax.Node:
    """The node with places that name their file."""
    file, span = source.at(node.span)
    placed = rewriting.rebuilt(node, lambda part: _placed(part, source))
    return replace(placed, span=places.Written(start=span.start, end=span.end, source=file))


def _comments(source: Source, parsed: tuple[syntax.Statement, ...]) -> list[list[str]]:
    """The comments of each statement: above it, in it, and after it on its last line.

    The last statement has the comments below it too.
    """
    comments: list[list[str]] = [[] for _ in parsed]
    if not parsed:
        return comments
    order = sorted(range(len(parsed)), key=lambda k: parsed[k].span.start)
    for token in lexer.tokens(source.text):
        if token.type == "COMMENT":
            k = _commented(source.text, token.start_pos or 0, parsed, order)
            comments[k].append(str(token).lstrip("#").strip())
    return comments


def _commented(text: str, at: int, parsed: tuple[syntax.Statement, ...], order: list[int]) -> int:
    """The index of the statement that the comment at a place is about."""
    before = [k for k in order if parsed[k].span.start < at]
    after = [k for k in order if parsed[k].span.start > at]
    if not before:
        return after[0]
    line = text[text.rfind("\n", 0, at) + 1 : at]
    inside = parsed[before[-1]].span.end > at
    if line.strip() or inside or not after:
        return before[-1]
    return after[0]
