"""Which declaration each name in a text means, also in a text with errors.

Statements are read one by one, so that an error in one hides no name of another.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lark import Token

from fccomodel.core.source import Span
from fccomodel.language import lexer, parse, statements, syntax
from fccomodel.language.splitter import Piece, split
from fccomodel.language.tree import Refusal

#: Errors after which the splitter gives up.
MAX_ERRORS = 200


@dataclass(frozen=True, eq=False, kw_only=True)
class NameUses:
    """One name of a model: where it is declared and used.

    name       the name
    kind       the statement that declares it (``var``, ``data``, ..), ``column``, ``index`` or ``argument``
    span       the place of the name in its declaration
    whole      the place of the whole declaration
    domain     of an index: the set that it ranges over, as written
    owner      of a column: the name of its table
    """

    name: str
    kind: str
    span: Span
    whole: Span
    domain: syntax.Expr | None = None
    owner: str = ""


@dataclass(frozen=True, eq=False, kw_only=True)
class Occurrence:
    """A name in the text, and what it stands for."""

    span: Span
    symbol: NameUses


@dataclass(frozen=True, eq=False, kw_only=True)
class StatementText:
    """A statement of the text.

    piece  its words
    nodes  its syntax, several for ``var x, y;``, none if it has an error
    span   its place
    """

    piece: Piece
    nodes: tuple[syntax.Statement, ...]
    span: Span


#: What names mean at a place.
Scope = Mapping[str, NameUses]


@dataclass(eq=False)
class NameTable:
    """The statements and the names of a text.

    symbols      the global names
    columns      of each table, the columns
    occurrences  every name that means something, in no particular order
    scopes       for each stretch of text in which local names hold, these names
    """

    statements: list[StatementText] = field(default_factory=list)
    symbols: dict[str, NameUses] = field(default_factory=dict)
    columns: dict[str, dict[str, NameUses]] = field(default_factory=dict)
    occurrences: list[Occurrence] = field(default_factory=list)
    scopes: list[tuple[Span, Scope]] = field(default_factory=list)

    def at(self, offset: int) -> Occurrence | None:
        """The name at an offset, or None."""
        inside = [o for o in self.occurrences if o.span.start <= offset <= o.span.end]
        return min(inside, key=lambda o: o.span.end - o.span.start, default=None)

    def of(self, symbol: NameUses) -> list[Span]:
        """The places of a symbol, its declaration included, in the order of the text."""
        places = {(o.span.start, o.span.end) for o in self.occurrences if o.symbol is symbol}
        return [Span(start=start, end=end) for start, end in sorted(places)]

    def seen_from(self, offset: int) -> dict[str, NameUses]:
        """The names that can be used at an offset; inner ones hide outer ones."""
        seen = dict(self.symbols)
        around = [(span, scope) for span, scope in self.scopes if span.start <= offset <= span.end]
        for _, scope in sorted(around, key=lambda entry: entry[0].start - entry[0].end):
            seen |= scope
        return seen

    def table_of(self, domain: syntax.Expr | None) -> str:
        """The table whose rows a set has, or an empty text."""
        for _ in range(len(self.symbols) + 1):
            if isinstance(domain, syntax.SetComprehension):
                domain = domain.indexing.binders[0].domain
            elif isinstance(domain, syntax.Index):
                domain = domain.obj
            elif isinstance(domain, syntax.Name) and domain.id in self.columns:
                return domain.id
            elif isinstance(domain, syntax.Name) and domain.id in self.symbols:
                domain = self.symbols[domain.id].domain
            else:
                return ""
        return ""


def read(text: str, reading: parse.Reading = parse.statement) -> NameTable:
    """The names of a text; ``reading`` reads one statement."""
    words = [word for word in lexer.tokens(text) if word.type not in lexer.SPACE]
    pieces, _ = split(words, text, max_errors=MAX_ERRORS)
    names = NameTable()
    indices = parse.declared_indices(pieces)
    constrained = False
    for piece in pieces:
        constrained = constrained or piece.words[0].type == "SUBJECT"
        nodes: tuple[syntax.Statement, ...] = ()
        if not piece.broken:
            try:
                nodes = reading(piece, constrained, indices)
            except Refusal:
                nodes = ()
        span = lexer.span(piece.words[0], piece.words[-1])
        names.statements.append(StatementText(piece=piece, nodes=nodes, span=span))
    reader = _Reader(names, len(text))
    for statement in names.statements:
        reader.declare(statement)
    for statement in names.statements:
        reader.use(statement)
    return names


class _Reader:
    """Fills ``NameTable``.

    length  the number of characters of the text
    """

    def __init__(self, names: NameTable, length: int):
        self.names = names
        self.length = length

    # ---------------------------------------------------------------------------- declarations
    def declare(self, statement: StatementText) -> None:
        """The global names of a statement, also of one with an error."""
        if not statement.nodes:
            self._declare_broken(statement)
        for node in statement.nodes:
            kind = statements.of(node)
            for name in _declared(node):
                self._add(statement, kind.name, name, node)
            if isinstance(getattr(node, "fields", None), tuple):
                self._columns(statement, node)
            if kind.name == "index":
                for binder in getattr(node, "binders", ()):
                    self._bind(binder, statement.span)

    def _declare_broken(self, statement: StatementText) -> None:
        """The name after the word that begins a statement with an error."""
        words = statement.piece.words
        kind = statements.by_token().get(words[0].type)
        if kind is not None and len(words) > 1 and words[1].type == "NAME" and kind.name != "options":
            symbol = NameUses(
                name=str(words[1]), kind=kind.name, span=lexer.span(words[1]), whole=statement.span
            )
            self.names.symbols.setdefault(symbol.name, symbol)
            self._occurs(symbol.span, symbol)

    def _add(self, statement: StatementText, kind: str, name: str, node: Any) -> None:
        """A global name, at its first word in the statement."""
        word = next((w for w in statement.piece.words[_first_word(kind) :] if str(w) == name), None)
        if word is None:
            return
        domain = getattr(node, "value", None) if kind == "set" else None
        symbol = NameUses(name=name, kind=kind, span=lexer.span(word), whole=statement.span, domain=domain)
        self.names.symbols.setdefault(name, symbol)
        self._occurs(symbol.span, self.names.symbols[name])

    def _columns(self, statement: StatementText, node: Any) -> None:
        """The columns of a table."""
        columns = self.names.columns.setdefault(node.name, {})
        for column in node.fields:
            span = Span(start=column.span.start, end=column.span.start + len(column.name))
            symbol = NameUses(name=column.name, kind="column", span=span, whole=column.span, owner=node.name)
            columns[column.name] = symbol
            self._occurs(span, symbol)

    def _bind(self, binder: syntax.Binder, whole: Span) -> NameUses:
        """The symbol of a binder; a binder of an ``index`` statement is a global name."""
        span = Span(start=binder.span.start, end=binder.span.start + len(binder.name))
        symbol = NameUses(name=binder.name, kind="index", span=span, whole=binder.span, domain=binder.domain)
        known = self.names.symbols.get(binder.name)
        if known is not None and known.span == span:
            return known
        if whole != binder.span:
            self.names.symbols.setdefault(binder.name, symbol)
        self._occurs(span, symbol)
        return symbol

    def _occurs(self, span: Span, symbol: NameUses) -> None:
        self.names.occurrences.append(Occurrence(span=span, symbol=symbol))

    # ------------------------------------------------------------------------------------ uses
    def use(self, statement: StatementText) -> None:
        """The names that a statement uses; of one with an error, those of global names alone."""
        for node in statement.nodes:
            scope: dict[str, NameUses] = {}
            arguments = getattr(node, "params", None)
            if isinstance(arguments, tuple):
                scope = self._arguments(statement, arguments)
            family = getattr(node, "family", None)
            if isinstance(family, syntax.Indexing):
                scope = self._inside(family, scope, statement.span)
            self._walk_fields(node, scope, skipped=("family",))
        if not statement.nodes:
            self._bind_broken(statement)
            self._use_broken(statement.piece.words)

    def _bind_broken(self, statement: StatementText) -> None:
        """The indices of a statement with an error; they hold up to the next statement."""
        words = statement.piece.words
        later = (s.span.start for s in self.names.statements if s.span.start > statement.span.start)
        end = min(later, default=self.length)
        scope = {}
        for name, bound, domain in zip(words, words[1:], words[2:], strict=False):
            if name.type == "NAME" and bound.type in ("IN", "TILDE"):
                place = lexer.span(name)
                ranging = syntax.Name(id=str(domain), span=lexer.span(domain))
                scope[str(name)] = NameUses(
                    name=str(name), kind="index", span=place, whole=place | ranging.span, domain=ranging
                )
        self.names.scopes.append((Span(start=statement.span.start, end=end), scope))

    def _use_broken(self, words: tuple[Token, ...]) -> None:
        for before, word in zip((None, *words), words, strict=False):
            symbol = self.names.symbols.get(str(word))
            if symbol is not None and word.type == "NAME" and symbol.span != lexer.span(word):
                if before is None or before.type != "FIELD":
                    self._occurs(lexer.span(word), symbol)

    def _arguments(self, statement: StatementText, arguments: tuple[str, ...]) -> dict[str, NameUses]:
        """The scope of a definition's arguments."""
        words = statement.piece.words
        opened = next(k for k, word in enumerate(words) if word.type == "LPAR")
        scope = {}
        for word in words[opened : opened + 2 * len(arguments)]:
            if str(word) in arguments:
                symbol = NameUses(
                    name=str(word), kind="argument", span=lexer.span(word), whole=lexer.span(word)
                )
                scope[symbol.name] = symbol
                self._occurs(symbol.span, symbol)
        self.names.scopes.append((statement.span, scope))
        return scope

    def _inside(self, indexing: syntax.Indexing, scope: Scope, whole: Span) -> dict[str, NameUses]:
        """The scope inside some binders; their sets and condition are read."""
        inner = dict(scope)
        for binder in indexing.binders:
            self._walk(binder.domain, inner)
            inner[binder.name] = self._bind(binder, binder.span)
        self.names.scopes.append((whole, {b.name: inner[b.name] for b in indexing.binders}))
        if indexing.condition is not None:
            self._walk(indexing.condition, inner)
        return inner

    def _walk(self, node: Any, scope: Scope) -> None:
        """Every name below a node."""
        match node:
            case syntax.Name():
                self._name(node.id, node.span, scope)
            case syntax.Field():
                self._field(node, scope)
            case syntax.Call():
                self._name(node.func, _head(node.span, node.func), scope)
                self._walk_fields(node, scope)
            case syntax.Keyword():
                self._walk(node.value, scope)
            case syntax.TypeExpr():
                if node.name is not None:
                    self._name(node.name, _head(node.span, node.name), scope)
                self._walk_fields(node, scope)
            case syntax.Reduce() | syntax.Comprehension() | syntax.SetComprehension():
                self._reduction(node, scope)
            case syntax.Node():
                self._walk_fields(node, scope)
            case tuple():
                for part in node:
                    self._walk(part, scope)

    def _walk_fields(self, node: Any, scope: Scope, skipped: tuple[str, ...] = ()) -> None:
        for entry in dataclasses.fields(node):
            if entry.name not in ("span", *skipped):
                self._walk(getattr(node, entry.name), scope)

    def _reduction(self, node: Any, scope: Scope) -> None:
        """A reduction, an array by formula or a set by condition."""
        self._walk(getattr(node, "keywords", ()), scope)
        subscript = getattr(node, "subscript", None)
        inner: Scope = scope
        if subscript:
            start = node.span.start + len(node.kind) + 1
            self._name(subscript, Span(start=start, end=start + len(subscript)), scope)
        if node.indexing is not None:
            inner = self._inside(node.indexing, scope, node.span)
        if hasattr(node, "body"):
            self._walk(node.body, inner)

    def _name(self, name: str, span: Span, scope: Scope) -> None:
        symbol = scope.get(name) or self.names.symbols.get(name)
        if symbol is not None:
            self._occurs(span, symbol)

    def _field(self, node: syntax.Field, scope: Scope) -> None:
        """``z.x``: the column of the table that z ranges over."""
        self._walk(node.obj, scope)
        column = self._column(node, scope)
        if column is not None:
            self._occurs(Span(start=node.span.end - len(node.name), end=node.span.end), column)

    def _column(self, node: syntax.Field, scope: Scope) -> NameUses | None:
        if isinstance(node.obj, syntax.Name):
            row = scope.get(node.obj.id) or self.names.symbols.get(node.obj.id)
            if row is not None and row.domain is not None:
                return self.names.columns.get(self.names.table_of(row.domain), {}).get(node.name)
        known = [columns[node.name] for columns in self.names.columns.values() if node.name in columns]
        return known[0] if len(known) == 1 else None


def _declared(node: syntax.Statement) -> Iterator[str]:
    """The global names that a statement declares, labels included."""
    yield from statements.names_of(node)
    label = getattr(node, "label", None)
    if label and label not in statements.names_of(node):
        yield label


def _first_word(kind: str) -> int:
    """The number of the first word of a statement that can be its name."""
    return 0 if kind == "constraint" else 1


def _head(span: Span, name: str) -> Span:
    """The place of a name at the beginning of a node."""
    return Span(start=span.start, end=span.start + len(name))
