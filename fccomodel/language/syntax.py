"""The abstract syntax of formulas and of the parts that statements share. These records are frozen;
names and types are resolved later.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fccomodel.core.source import Span


@dataclass(frozen=True, kw_only=True)
class Node:
    """A piece of syntax and its place; two nodes are equal if they read the same, wherever they stand."""

    span: Span = field(compare=False, repr=False)


# -------------------------------------------------------------------------------------- expressions
class Expr(Node):
    """Base of expressions."""


@dataclass(frozen=True, kw_only=True)
class Number(Expr):
    """A literal; ``text`` keeps its spelling."""

    value: float
    text: str


@dataclass(frozen=True, kw_only=True)
class String(Expr):
    """A text in quotes."""

    value: str


@dataclass(frozen=True, kw_only=True)
class Name(Expr):
    """A name."""

    id: str


@dataclass(frozen=True, kw_only=True)
class Unary(Expr):
    """``op`` is ``-``, ``+`` or ``not``."""

    op: str
    arg: Expr


@dataclass(frozen=True, kw_only=True)
class Binary(Expr):
    """``op`` is one of ``+ - * / @ ^ and or``."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, kw_only=True)
class Compare(Expr):
    """A chain ``operands[0] ops[0] operands[1] ...`` of ``<= >= == != < >``."""

    operands: tuple[Expr, ...]
    ops: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Choice(Expr):
    """``if condition then yes else no``."""

    condition: Expr
    yes: Expr
    no: Expr


@dataclass(frozen=True, kw_only=True)
class Range(Expr):
    """``low .. high by step``, both ends included."""

    low: Expr
    high: Expr
    step: Expr | None = None


@dataclass(frozen=True, kw_only=True)
class Whole(Expr):
    """``..`` in the place of an index: all of an axis."""


@dataclass(frozen=True, kw_only=True)
class Field(Expr):
    """``obj.name``."""

    obj: Expr
    name: str


@dataclass(frozen=True, kw_only=True)
class Index(Expr):
    """``obj[items]``."""

    obj: Expr
    items: tuple[Expr, ...]


@dataclass(frozen=True, kw_only=True)
class Keyword(Node):
    """``name = value`` in a call or in options."""

    name: str
    value: Expr


@dataclass(frozen=True, kw_only=True)
class Call(Expr):
    """``func(args; more, name = value)``: a ``;`` may stand in place of one of the commas.

    semicolon  the number of arguments before the ``;``, or None without one
    """

    func: str
    args: tuple[Expr, ...] = ()
    keywords: tuple[Keyword, ...] = ()
    semicolon: int | None = None


@dataclass(frozen=True, kw_only=True)
class SetLiteral(Expr):
    """``{a, b, ...}``."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, kw_only=True)
class Binder(Node):
    """``name in domain`` (``kind`` is ``in``), ``name ~ domain`` or ``name ~ domain by weight`` (``~``)."""

    name: str
    kind: str
    domain: Expr
    weight: Expr | None = None


@dataclass(frozen=True, kw_only=True)
class Indexing(Node):
    """``[binders | condition]``, the head of a reduction or of a family."""

    binders: tuple[Binder, ...]
    condition: Expr | None = None


@dataclass(frozen=True, kw_only=True)
class SetComprehension(Expr):
    """``{z in D | condition}``."""

    indexing: Indexing


@dataclass(frozen=True, kw_only=True)
class Reduce(Expr):
    """``kind(keywords)[indexing] body``, ``mean_i body`` (``subscript``), or ``E[body]`` without either."""

    kind: str
    body: Expr
    indexing: Indexing | None = None
    subscript: str | None = None
    keywords: tuple[Keyword, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Comprehension(Expr):
    """``[indexing] body``: the array whose entries are the body."""

    indexing: Indexing
    body: Expr


@dataclass(frozen=True, kw_only=True)
class Vector(Expr):
    """``[a, b, ...]``: the array of these entries, or of these rows."""

    items: tuple[Expr, ...]


# --------------------------------------------------------------------------------------- statements
class Statement(Node):
    """The base class of statements. Each has a file in ``language/statements``."""


@dataclass(frozen=True, kw_only=True)
class TypeExpr(Node):
    """``name[shape]`` (``real[d]``, ``int``, a set's name) or ``{...}`` (``values``).

    limit  the bound of its numbers: ``>= 0``, ``in [0, 1]``, ``in psd``
    """

    name: str | None = None
    shape: tuple[Expr, ...] = ()
    values: SetLiteral | None = None
    limit: Bound | None = None


@dataclass(frozen=True, kw_only=True)
class FieldDecl(Node):
    """``name: type`` of a table's column."""

    name: str
    type: TypeExpr


@dataclass(frozen=True, kw_only=True)
class Bound(Node):
    """``>= e``, ``<= e``, ... or ``in set``; ``op`` is the comparison or ``in``."""

    op: str
    value: Expr


@dataclass(frozen=True, kw_only=True)
class Model(Node):
    """A file: its statements in order. Comments live in the source text alone."""

    statements: tuple[Statement, ...]
