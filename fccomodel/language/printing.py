"""Formulas as text with as few brackets as the grammar allows, and where each piece of syntax stands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from fccomodel.core.source import Span
from fccomodel.language import lexer, syntax


class Strength(IntEnum):
    """How tightly the text of an expression holds together.

    A ``REDUCED`` expression ends in the body of a reduction, so that nothing can follow it.
    """

    CHOICE = 0
    OR = 1
    AND = 2
    NOT = 3
    COMPARED = 4
    RANGED = 5
    SUM = 6
    REDUCED = 7
    PRODUCT = 8
    SIGNED = 9
    POWER = 10
    POSTFIX = 11
    ATOM = 12


class Demands(NamedTuple):
    """The strengths that an operation demands of its operands, and its own strength."""

    left: Strength
    right: Strength
    own: Strength


_DEMANDS = {
    "or": Demands(Strength.OR, Strength.AND, Strength.OR),
    "and": Demands(Strength.AND, Strength.NOT, Strength.AND),
    "+": Demands(Strength.SUM, Strength.REDUCED, Strength.SUM),
    "-": Demands(Strength.SUM, Strength.REDUCED, Strength.SUM),
    "^": Demands(Strength.POSTFIX, Strength.SIGNED, Strength.POWER),
}


@dataclass(frozen=True, kw_only=True)
class Mark:
    """The place of a piece of syntax in a text.

    start  the first character in the text
    end    the end in the text
    span   the place of the syntax where it was said
    leaf   whether it is a name by itself
    """

    start: int
    end: int
    span: Span
    leaf: bool = False


@dataclass(kw_only=True)
class TextWriter:
    """A text that is written piece by piece, with marks for what was written. Call it to add text."""

    pieces: list[str] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    length: int = 0

    def __call__(self, *pieces: str) -> None:
        self.pieces += pieces
        self.length += sum(map(len, pieces))

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self.pieces)

    @contextmanager
    def marked(self, span: Span, *, leaf: bool = False) -> Iterator[None]:
        """Mark the text that is written inside this context."""
        start = self.length
        yield
        self.marks.append(Mark(start=start, end=self.length, span=span, leaf=leaf))

    # ---------------------------------------------------------------------------------- expressions
    def expression(self, node: syntax.Expr, demand: Strength = Strength.CHOICE) -> None:
        """Write an expression, in brackets if its place demands more strength than it has."""
        bracketed = strength(node) < demand
        self("(" * bracketed)
        with self.marked(node.span, leaf=isinstance(node, syntax.Name)):
            self._bare(node)
        self(")" * bracketed)

    def _bare(self, node: syntax.Expr) -> None:
        match node:
            case syntax.Number():
                self(node.text)
            case syntax.String():
                self(f'"{node.value}"')
            case syntax.Name():
                self(node.id)
            case syntax.Unary() | syntax.Binary() | syntax.Compare() | syntax.Range():
                self._operation(node)
            case syntax.Choice():
                self("if ")
                self.expression(node.condition, Strength.OR)
                self(" then ")
                self.expression(node.yes)
                self(" else ")
                self.expression(node.no)
            case syntax.Field():
                self.expression(node.obj, Strength.POSTFIX)
                self(".", node.name)
            case syntax.Index():
                self.expression(node.obj, Strength.ATOM)
                self.items("[", node.items, "]")
            case syntax.Call():
                self(node.func)
                self._arguments(node)
            case syntax.SetLiteral() | syntax.SetComprehension():
                self._set(node)
            case syntax.Reduce():
                self._reduce(node)
            case syntax.Whole() | syntax.Vector() | syntax.Comprehension():
                self._array(node)
            case _:
                raise TypeError(node)

    def _set(self, node: syntax.SetLiteral | syntax.SetComprehension) -> None:
        if isinstance(node, syntax.SetLiteral):
            self.items("{", node.items, "}")
            return
        self("{")
        self._heads(node.indexing)
        self("}")

    def _array(self, node: syntax.Whole | syntax.Vector | syntax.Comprehension) -> None:
        match node:
            case syntax.Whole():
                self("..")
            case syntax.Vector():
                self.items("[", node.items, "]")
            case syntax.Comprehension():
                self.indexing(node.indexing)
                self(" ")
                self.expression(node.body, Strength.REDUCED)

    def _operation(self, node: syntax.Unary | syntax.Binary | syntax.Compare | syntax.Range) -> None:
        match node:
            case syntax.Unary(op="not"):
                self("not ")
                self.expression(node.arg, Strength.NOT)
            case syntax.Unary():
                self(node.op)
                self.expression(node.arg, Strength.REDUCED if _reduces(node.arg) else Strength.SIGNED)
            case syntax.Binary():
                self._binary(node)
            case syntax.Compare():
                self.expression(node.operands[0], Strength.RANGED)
                for op, operand in zip(node.ops, node.operands[1:], strict=True):
                    self(f" {op} ")
                    self.expression(operand, Strength.RANGED)
            case syntax.Range():
                self._range(node)

    def _binary(self, node: syntax.Binary) -> None:
        """Write an operation; a chain is followed to the left without recursion."""
        chain = [node]
        while isinstance(chain[-1].left, syntax.Binary):
            if strength(chain[-1].left) < _demands(chain[-1]).left:
                break
            chain.append(chain[-1].left)
        start = self.length
        self.expression(chain[-1].left, _demands(chain[-1]).left)
        for link in reversed(chain):
            self(link.op if link.op == "^" else f" {link.op} ")
            self.expression(link.right, _demands(link).right)
            if link is not node:
                self.marks.append(Mark(start=start, end=self.length, span=link.span))

    def _range(self, node: syntax.Range) -> None:
        self.expression(node.low, Strength.SUM)
        self(" .. ")
        self.expression(node.high, Strength.SUM)
        if node.step is not None:
            self(" by ")
            self.expression(node.step, Strength.SUM)

    def _arguments(self, node: syntax.Call) -> None:
        """``(a, b; c, name = d)``."""
        self("(")
        parts: tuple[syntax.Expr | syntax.Keyword, ...] = (*node.args, *node.keywords)
        for k, part in enumerate(parts):
            if k > 0:
                self("; " if k == node.semicolon else ", ")
            if isinstance(part, syntax.Keyword):
                self.keyword(part)
            else:
                self.expression(part)
        self(")")

    def _reduce(self, node: syntax.Reduce) -> None:
        self(node.kind)
        if node.subscript is not None:
            self("_", node.subscript)
        elif node.indexing is None:
            self.items("[", (node.body,), "]")
            return
        else:
            if node.keywords:
                self("(")
                self.listed(node.keywords, self.keyword)
                self(")")
            self.indexing(node.indexing)
        self(" ")
        self.expression(node.body, Strength.REDUCED)

    def keyword(self, node: syntax.Keyword) -> None:
        """Write ``name = value``."""
        with self.marked(node.span):
            self(node.name, " = ")
            self.expression(node.value)

    def listed(self, parts: Iterable, write: Callable) -> None:
        """Write parts with commas between them."""
        for k, part in enumerate(parts):
            self(", " * (k > 0))
            write(part)

    def items(self, opened: str, items: Sequence[syntax.Expr], closed: str) -> None:
        """Write expressions between brackets, with commas between them."""
        self(opened)
        self.listed(items, self.expression)
        self(closed)

    def indexing(self, node: syntax.Indexing | None) -> None:
        """Write ``[i in I, z ~ D | condition]``, or nothing."""
        if node is not None:
            self("[")
            self._heads(node)
            self("]")

    def _heads(self, node: syntax.Indexing) -> None:
        with self.marked(node.span):
            self.listed(node.binders, self.binder)
            if node.condition is not None:
                self(" | ")
                self.expression(node.condition)

    def binder(self, node: syntax.Binder) -> None:
        """Write ``name in domain``, ``name ~ domain`` or ``name ~ domain by weight``."""
        with self.marked(node.span):
            self(f"{node.name} {node.kind} ")
            self.expression(node.domain, Strength.RANGED)
            if node.weight is not None:
                self(" by ")
                self.expression(node.weight, Strength.SUM)

    # --------------------------------------------------------------------- what statements share
    def after(self, sign: str, node: syntax.Expr | None) -> None:
        """Write a sign and an expression, or nothing."""
        if node is not None:
            self(sign)
            self.expression(node)

    def shape(self, shape: Sequence[syntax.Expr]) -> None:
        """Write ``[d, K]``, or nothing."""
        if shape:
            self.items("[", shape, "]")

    def bounded(self, shape: Sequence[syntax.Expr], bounds: Sequence[syntax.Bound]) -> None:
        """Write a shape and bounds: ``[d] >= 0, in simplex(d)``."""
        self.shape(shape)
        for k, bound in enumerate(bounds):
            self("," * (k > 0), " ")
            with self.marked(bound.span):
                self(bound.op, " ")
                self.expression(bound.value, Strength.RANGED)

    def type(self, node: syntax.TypeExpr) -> None:
        """Write ``real[d]``, ``{0, 1}`` or ``G``."""
        with self.marked(node.span):
            if node.values is not None:
                self.expression(node.values)
            self(node.name or "")
            self.shape(node.shape)
            if node.limit is not None:
                self(" ", node.limit.op, " ")
                self.expression(node.limit.value, Strength.SUM)


def expression(node: syntax.Expr) -> str:
    """The text of an expression."""
    writer = TextWriter()
    writer.expression(node)
    return writer.text


def strength(node: syntax.Expr) -> Strength:
    """How tightly an expression's text holds together."""
    match node:
        case syntax.Choice():
            return Strength.CHOICE
        case syntax.Unary(op="not"):
            return Strength.NOT
        case syntax.Unary():
            if _reduces(node):
                return Strength.REDUCED
            return Strength.SIGNED
        case syntax.Binary():
            return _demands(node).own
        case syntax.Compare():
            return Strength.COMPARED
        case syntax.Range():
            return Strength.RANGED
        case syntax.Reduce() | syntax.Comprehension():
            if _reduces(node):
                return Strength.REDUCED
            return Strength.ATOM
        case syntax.Call():
            if _reads_as_reduction(node):
                return Strength.POSTFIX
            return Strength.ATOM
    return Strength.ATOM


def _demands(node: syntax.Binary) -> Demands:
    """The strengths that an operation demands of its operands, and its own strength."""
    if node.op in _DEMANDS:
        return _DEMANDS[node.op]
    if _reduces(node.right):
        return Demands(Strength.PRODUCT, Strength.REDUCED, Strength.REDUCED)
    return Demands(Strength.PRODUCT, Strength.SIGNED, Strength.PRODUCT)


def _reduces(node: syntax.Expr) -> bool:
    """Whether an expression is an array or a reduction with a body behind it, or the negative of one."""
    while isinstance(node, syntax.Unary) and node.op != "not":
        node = node.arg
    if isinstance(node, syntax.Comprehension):
        return True
    return isinstance(node, syntax.Reduce) and (node.indexing is not None or node.subscript is not None)


def _reads_as_reduction(node: syntax.Call) -> bool:
    """Whether square brackets after ``sum(u)`` would be read as the index of the reduction ``sum``."""
    return node.func in lexer.grammar().reductions
