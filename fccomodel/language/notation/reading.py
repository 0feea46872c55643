"""A model file as statements with their comments."""

from __future__ import annotations

from dataclasses import replace

from lark import Token

from fccomodel.core.source import Source
from fccomodel.language import lexer, rewriting, syntax
from fccomodel.language.check.include import expand
from fccomodel.language.notation import places
from fccomodel.language.notation.entries import Entry
from fccomodel.language.parse import parse
from fccomodel.language.statements.model import ModelDecl


def read(source: Source) -> tuple[str | None, str, list[Entry]]:
    """The model's name, the comment at its top, and its other statements; those of included files in
    their place."""
    statements, whole = expand(parse(source).statements, source)
    comments = _comments(whole, statements)
    entries = [_entry(statement, whole, comments[k]) for k, statement in enumerate(statements)]
    if entries and isinstance(entries[0].statement, ModelDecl):
        return entries[0].statement.name, entries[0].doc, entries[1:]
    return None, "", entries


def _entry(statement: syntax.Statement, source: Source, comments: list[str]) -> Entry:
    placed = _placed(statement, source)
    assert isinstance(placed, syntax.Statement)
    return Entry(statement=placed, at=placed.span, doc="\n".join(comments))


def _placed(node: syntax.Node, source: Source) -> syntax.Node:
    """The node with places that know their file."""
    file, span = source.at(node.span)
    placed = rewriting.rebuilt(node, lambda part: _placed(part, source))
    return replace(placed, span=places.Written(start=span.start, end=span.end, source=file))


def _comments(source: Source, statements: tuple[syntax.Statement, ...]) -> list[list[str]]:
    """The comments of each statement: those before it, in it, and behind it on its last line; the last
    has what follows too."""
    found: list[list[str]] = [[] for _ in statements]
    order = sorted(range(len(statements)), key=lambda k: statements[k].span.start)
    for token in lexer.tokens(source.text):
        if token.type == "COMMENT" and order:
            found[_belongs(source.text, token, statements, order)].append(str(token).lstrip("#").strip())
    return found


def _belongs(text: str, comment: Token, statements: tuple[syntax.Statement, ...], order: list[int]) -> int:
    """The statement that a comment is about."""
    at = comment.start_pos or 0
    before = [k for k in order if statements[k].span.start < at]
    after = [k for k in order if statements[k].span.start > at]
    line = text[text.rfind("\n", 0, at) + 1 : at]
    if before and (line.strip() or statements[before[-1]].span.end > at or not after):
        return before[-1]
    if after:
        return after[0]
    return before[-1]
