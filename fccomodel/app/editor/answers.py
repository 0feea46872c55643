"""What an editor shows at a place: hovers, completions, signatures, places of names, the outline."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from lark import Token

from fccomodel.app.editor.document import Document, Edit
from fccomodel.app.editor.names import NameUses, StatementText
from fccomodel.app.shown import cards
from fccomodel.core import ir
from fccomodel.core.source import Span
from fccomodel.language import lexer, statements, vocabulary
from fccomodel.library import atoms, distributions, reductions, sets

#: A name, as the language writes it.
NAME = re.compile(r"[A-Za-z_]\w*")
#: A word that has just begun, at the end of a text.
BEGUN = re.compile(r"[A-Za-z_]\w*$|$")


@dataclass(frozen=True, kw_only=True)
class Hover:
    """A text in markdown about a place."""

    text: str
    span: Span


@dataclass(frozen=True, kw_only=True)
class Completion:
    """A completion.

    label   what is inserted
    kind    the kind of thing: ``keyword``, ``function``, ``reduction``, ``set``, ``distribution``,
            ``option``, ``algorithm``, or the kind of a symbol
    detail  one line about it
    """

    label: str
    kind: str
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Signature:
    """A call that is being written: its form, its arguments, and the number of the one at the place."""

    label: str
    arguments: tuple[str, ...]
    active: int
    meaning: str = ""


@dataclass(frozen=True, kw_only=True)
class OutlineEntry:
    """An entry of the outline."""

    name: str
    kind: str
    detail: str
    span: Span
    whole: Span


# -------------------------------------------------------------------------------------------- hover
def hover(document: Document, offset: int) -> Hover | None:
    """The declaration of the name, or the card of the word, at an offset, then the facts of the expression
    there; None if nothing is known."""
    parts: list[str] = []
    span: Span | None = None
    occurrence = document.names.at(offset)
    word = _word_at(document.text, offset)
    if occurrence is not None:
        span = occurrence.span
        parts.append(_declaration(document, occurrence.symbol))
    elif word is not None and str(word) in vocabulary.names():
        span = lexer.span(word)
        parts.append("```text\n" + "\n\n".join(map(str, cards.named(str(word)))) + "\n```")
    elif word is not None and str(word) in statements.forms():
        span = lexer.span(word)
        parts.append(f"```fcco\n{statements.form(str(word))}\n```")
    expression = smallest_expression(document.problem, offset)
    if expression is not None and document.problem is not None:
        parts.append(_facts(document, expression))
        span = span or expression.span
    if span is None:
        return None
    return Hover(text="\n\n".join(parts), span=span)


def _word_at(text: str, offset: int) -> Token | None:
    """The word at an offset, or None between words."""
    for word in lexer.tokens(text):
        if (word.start_pos or 0) <= offset < (word.end_pos or 0) and word.type not in lexer.SPACE:
            return word
    return None


def _declaration(document: Document, symbol: NameUses) -> str:
    """How a name is declared, in a sentence with its shape."""
    text = " ".join(document.text[symbol.whole.start : symbol.whole.end].split())
    lines = [f"```fcco\n{text}\n```"]
    if symbol.kind == "column":
        lines.append(f"column of `{symbol.owner}`")
    elif symbol.kind == "index":
        table = document.names.table_of(symbol.domain)
        lines.append(f"a row of `{table}`" if table else "an index")
    shape = _shape(document.problem, symbol)
    if shape:
        lines.append(f"shape `[{shape}]`")
    return "\n\n".join(lines)


def _shape(problem: ir.Problem | None, symbol: NameUses) -> str:
    """The shape of a declared array, or an empty text."""
    if problem is None:
        return ""
    shape: ir.Shape = ()
    if symbol.name in problem.variables and symbol.kind == "var":
        shape = problem.variables[symbol.name].shape
    elif symbol.name in problem.params and symbol.kind == "param":
        shape = problem.params[symbol.name].shape
    elif symbol.name in problem.arrays and symbol.kind == "data":
        shape = problem.arrays[symbol.name].type.shape
    return ", ".join(map(str, shape))


def smallest_expression(problem: ir.Problem | None, offset: int) -> ir.Expr | None:
    """The smallest expression of the objective and the constraints whose text has an offset."""
    if problem is None:
        return None
    best: ir.Expr | None = None
    for node in problem.expressions():
        inside = node.span.start <= offset < node.span.end
        if inside and not isinstance(node, ir.Const | ir.Size | ir.Element | ir.Label):
            if best is None or _length(node) < _length(best):
                best = node
    return best


def _length(node: ir.Expr) -> int:
    return node.span.end - node.span.start


def _facts(document: Document, expression: ir.Expr) -> str:
    """The curvature, smoothness and shape of an expression, with the rule that proves the curvature."""
    problem = document.problem
    assert problem is not None
    facts = document.analyser(expression)
    text = problem.text(expression)
    shape = f", shape `[{', '.join(map(str, expression.shape))}]`" if expression.shape else ""
    smooth = ""
    if not facts.constant:
        smooth = ", smooth" if facts.smooth else ", not smooth"
    lines = [f"`{text}`: **{facts.curvature}**{smooth}{shape}"]
    fact = facts.curvature_fact
    lines += [line for line in (fact.reason, fact.lacks) if line]
    return "\n\n".join(lines)


# --------------------------------------------------------------------------------------- completion
def completions(document: Document, offset: int) -> list[Completion]:
    """The words that can stand at an offset, by the text before it."""
    before = document.text[:offset]
    match = BEGUN.search(before)
    begun = match.start() if match else offset
    words = [w for w in lexer.tokens(before[:begun]) if w.type not in lexer.SPACE]
    if words and words[-1].type not in ("FIELD",) and before[:begun].endswith("."):
        return _columns(document, offset)
    if _in_options(words):
        return _options(words)
    if not words or words[-1].type in ("SEMICOLON", "RBRACE") and not _depth(words):
        return _statement_words()
    items = _names(document, offset)
    if words[-1].type in ("IN", "TILDE"):
        items = [one for one in items if one.kind in ("data", "set", "dim", "param")]
        found = [*_library("set", sets.all()), *_library("distribution", distributions.all())]
        return [*items, *found]
    return [*items, *_functions()]


def _columns(document: Document, offset: int) -> list[Completion]:
    """The columns of the row before the point."""
    row = document.names.seen_from(offset).get(_row_before(document.text, offset))
    table = ""
    if row is not None:
        table = document.names.table_of(row.domain)
    tables = [table] if table else list(document.names.columns)
    found = [column for name in tables for column in document.names.columns.get(name, {}).values()]
    return [Completion(label=c.name, kind="column", detail=_one_line(document, c)) for c in found]


def _row_before(text: str, offset: int) -> str:
    """The name before the point that precedes an offset."""
    match = re.search(r"([A-Za-z_]\w*)\s*\.\s*\w*$", text[:offset])
    return match[1] if match else ""


def _one_line(document: Document, symbol: NameUses) -> str:
    return " ".join(document.text[symbol.whole.start : symbol.whole.end].split())


def _depth(words: list[Token]) -> int:
    """The number of open brackets."""
    opened = sum(word.type in lexer.OPEN for word in words)
    return opened - sum(word.type in lexer.OPEN.values() for word in words)


def _in_options(words: list[Token]) -> bool:
    """Whether the place is in a block ``options { .. }``."""
    starts = [k for k, word in enumerate(words) if word.type == "OPTIONS"]
    return bool(starts) and _depth(words[starts[-1] :]) > 0


def _options(words: list[Token]) -> list[Completion]:
    """The options of a solve, or the values of the one that is being set."""
    if len(words) > 1 and str(words[-1]) == "=" and str(words[-2]) == "algorithm":
        return [Completion(label=name, kind="algorithm") for name in cards.registered()]
    if str(words[-1]) in ("{", ";"):
        from fccomodel.plan.settings import OPTIONS, SETTINGS

        known = {**SETTINGS, **OPTIONS}
        return [Completion(label=name, kind="option", detail=meaning) for name, meaning in known.items()]
    return []


@cache
def _statement_words() -> list[Completion]:
    """The words that begin statements."""
    return [Completion(label=word, kind="keyword", detail=form) for word, form in statements.forms().items()]


def _names(document: Document, offset: int) -> list[Completion]:
    """The names of the text that can be used at an offset."""
    seen = document.names.seen_from(offset).values()
    usable = [s for s in seen if s.kind not in ("constraint", "objective", "model")]
    return [Completion(label=s.name, kind=s.kind, detail=_one_line(document, s)) for s in usable]


@cache
def _functions() -> list[Completion]:
    """The functions and the reductions of the library."""
    functions = {name: atom for name, atom in atoms.all().items() if not atom.internal and not atom.symbol}
    kinds: dict[str, Any] = {name: kind for name, kind in reductions.all().items() if kind.written}
    kinds |= reductions.spelled()
    found = [
        Completion(label=n, kind="function", detail=f"{a.signature}: {a.meaning}")
        for n, a in functions.items()
    ]
    return [*found, *_library("reduction", kinds)]


def _library(kind: str, concepts: Mapping[str, Any]) -> list[Completion]:
    """Words of the library with their meanings."""
    return [Completion(label=name, kind=kind, detail=concept.meaning) for name, concept in concepts.items()]


# ---------------------------------------------------------------------------------------- signature
def signature(document: Document, offset: int) -> Signature | None:
    """The call around an offset, or None."""
    words = [w for w in lexer.tokens(document.text[:offset]) if w.type not in lexer.SPACE]
    depth = 0
    commas = 0
    for k in range(len(words) - 1, 0, -1):
        kind = words[k].type
        if kind == "COMMA" and depth == 0:
            commas += 1
        elif kind in lexer.OPEN.values():
            depth += 1
        elif kind in lexer.OPEN:
            depth -= 1
            if depth < 0:
                return _of_call(document, str(words[k - 1]), commas) if kind == "LPAR" else None
        elif kind == "SEMICOLON" and depth == 0:
            return None
    return None


def _of_call(document: Document, name: str, active: int) -> Signature | None:
    """The form of a function of the library or of the text."""
    symbol = document.names.symbols.get(name)
    if symbol is not None and symbol.kind in ("def", "net"):
        text = _one_line(document, symbol)
        arguments = re.search(r"\(([^)]*)\)", text)
        listed = tuple(a.strip() for a in arguments[1].split(",")) if arguments else ()
        return Signature(label=text, arguments=listed, active=active)
    for registry in (atoms.all(), sets.all(), distributions.all()):
        concept: Any = registry.get(name)
        if concept is not None and concept.signature:
            label = str(concept.signature)
            inner = label.partition("(")[2].rpartition(")")[0]
            listed = tuple(a.strip() for a in inner.split(",") if a.strip())
            return Signature(label=label, arguments=listed, active=active, meaning=concept.meaning)
    return None


# --------------------------------------------------------------------------------- places and edits
def definition(document: Document, offset: int) -> Span | None:
    """Where the name at an offset is declared."""
    occurrence = document.names.at(offset)
    return occurrence.symbol.span if occurrence else None


def references(document: Document, offset: int) -> list[Span]:
    """Every place of the name at an offset, its declaration included."""
    occurrence = document.names.at(offset)
    return document.names.of(occurrence.symbol) if occurrence else []


def rename(document: Document, offset: int, new: str) -> list[Edit] | str:
    """The changes that give the name at an offset another one, or the reason why it cannot be given."""
    occurrence = document.names.at(offset)
    if occurrence is None:
        return "there is no name of the model here"
    if not NAME.fullmatch(new) or new in lexer.grammar().words:
        return f"`{new}` cannot be a name"
    taken = document.names.seen_from(offset)
    if new in taken and taken[new] is not occurrence.symbol and occurrence.symbol.kind != "column":
        return f"`{new}` is a name of the model already"
    return [Edit(span=span, text=new) for span in document.names.of(occurrence.symbol)]


def outline(document: Document) -> Iterator[OutlineEntry]:
    """The declarations of the text in its order, objective and constraints among them."""
    for statement in document.names.statements:
        kind = _kind(statement)
        found = [s for s in document.names.symbols.values() if s.whole == statement.span and s.kind == kind]
        for symbol in found:
            detail = _one_line(document, symbol)
            yield OutlineEntry(
                name=symbol.name, kind=symbol.kind, detail=detail, span=symbol.span, whole=statement.span
            )
        if not found and kind in ("objective", "constraint"):
            text = " ".join(document.text[statement.span.start : statement.span.end].split())
            yield OutlineEntry(name=kind, kind=kind, detail=text, span=statement.span, whole=statement.span)


def _kind(statement: StatementText) -> str:
    """The kind of a statement, by its syntax or by its first word."""
    if statement.nodes:
        return statements.of(statement.nodes[0]).name
    found = statements.by_token().get(statement.piece.words[0].type)
    return found.name if found else ""


def folds(document: Document) -> list[tuple[int, int]]:
    """The first and last offsets of statements of several lines."""
    spans = [s.span for s in document.names.statements]
    return [(s.start, s.end) for s in spans if "\n" in document.text[s.start : s.end]]


def formatted(document: Document) -> str | None:
    """The text in its canonical layout, or None if it has syntax errors."""
    from fccomodel.core.diagnostics import FccoError
    from fccomodel.language.format import format as canonical

    try:
        return canonical(document.source)
    except FccoError:
        return None


#: The kinds of words that an editor colours, by the kind of what they name.
COLOURS = {
    "var": "variable",
    "param": "parameter",
    "const": "parameter",
    "data": "class",
    "set": "type",
    "dim": "type",
    "net": "function",
    "def": "function",
    "let": "variable",
    "column": "property",
    "index": "parameter",
    "argument": "parameter",
}


def coloured(document: Document) -> list[tuple[Span, str]]:
    """The names and the words of the library with the kind that colours them, in the order of the text."""
    found: dict[int, tuple[Span, str]] = {}
    for word in lexer.tokens(document.text):
        span = lexer.span(word)
        if word.type == "RED" or word.type == "NAME" and str(word) in vocabulary.names():
            found[span.start] = (span, "function")
        elif word.type == "COMMENT":
            found[span.start] = (span, "comment")
        elif word.type in ("NUMBER", "STRING"):
            found[span.start] = (span, word.type.lower())
        elif str(word) in lexer.grammar().words:
            found[span.start] = (span, "keyword")
    for occurrence in document.names.occurrences:
        colour = COLOURS.get(occurrence.symbol.kind)
        if colour:
            found[occurrence.span.start] = (occurrence.span, colour)
    return [found[start] for start in sorted(found)]
