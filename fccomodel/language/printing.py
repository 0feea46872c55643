"""Abstract syntax to text: as few brackets as the grammar allows, and where in the text each piece of
syntax stands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from fccomodel.core.source import Span
from fccomodel.language import lexer, syntax

#: Binding strength of the kinds of expressions; a ``REDUCED`` one ends in a reduction's body, so
#: that nothing can follow it.
OR, AND, NOT, COMPARED, RANGED, SUM, REDUCED, PRODUCT, SIGNED, POWER, POSTFIX, ATOM = range(12)
_BINARY = {"or": (OR, AND, OR), "and": (AND, NOT, AND), "+": (SUM, REDUCED, SUM), "-": (SUM, REDUCED, SUM)}


@dataclass(frozen=True, kw_only=True)
class Mark:
    """The text from ``start`` to ``end`` writes a piece of syntax whose own place is ``span``;
    ``leaf``: a name by itself."""

    start: int
    end: int
    span: Span
    leaf: bool = False


@dataclass(kw_only=True)
class Writer:
    """A text that grows, and the marks of what was written."""

    pieces: list[str] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    length: int = 0

    def __call__(self, *pieces: str) -> None:
        self.pieces += pieces
        self.length += sum(map(len, pieces))

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @contextmanager
    def marked(self, span: Span, *, leaf: bool = False) -> Iterator[None]:
        start = self.length
        yield
        self.marks.append(Mark(start=start, end=self.length, span=span, leaf=leaf))

    # ---------------------------------------------------------------------------------- expressions
    def expression(self, node: syntax.Expr, level: int = OR) -> None:
        """An expression, in brackets where its place binds more tightly than it does."""
        bracketed = strength(node) < level
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
            case syntax.Unary():
                self(node.op, " " * (node.op == "not"))
                self.expression(
                    node.arg, NOT if node.op == "not" else REDUCED if _reduces(node.arg) else SIGNED
                )
            case syntax.Binary():
                self._binary(node)
            case syntax.Compare():
                self.expression(node.operands[0], RANGED)
                for op, operand in zip(node.ops, node.operands[1:], strict=True):
                    self(f" {op} ")
                    self.expression(operand, RANGED)
            case syntax.Range():
                self._range(node)
            case syntax.Field():
                self.expression(node.obj, POSTFIX)
                self(".", node.name)
            case syntax.Index():
                self.expression(node.obj, ATOM)
                self.items("[", node.items, "]")
            case syntax.Call():
                self(node.func)
                self._arguments(node)
            case syntax.SetLiteral():
                self.items("{", node.items, "}")
            case syntax.SetComprehension():
                self("{")
                self._heads(node.indexing)
                self("}")
            case syntax.Reduce():
                self._reduce(node)
            case _:
                raise TypeError(node)

    def _binary(self, node: syntax.Binary) -> None:
        """An operation; a chain's left operands without recursion."""
        chain = [node]
        while (
            isinstance(chain[-1].left, syntax.Binary) and strength(chain[-1].left) >= _strengths(chain[-1])[0]
        ):
            chain.append(chain[-1].left)
        start = self.length
        self.expression(chain[-1].left, _strengths(chain[-1])[0])
        for link in reversed(chain):
            self(link.op if link.op == "^" else f" {link.op} ")
            self.expression(link.right, _strengths(link)[1])
            if link is not node:
                self.marks.append(Mark(start=start, end=self.length, span=link.span))

    def _range(self, node: syntax.Range) -> None:
        self.expression(node.low, SUM)
        self(" .. ")
        self.expression(node.high, SUM)
        if node.step is not None:
            self(" by ")
            self.expression(node.step, SUM)

    def _arguments(self, node: syntax.Call) -> None:
        """``(a, b; c, name = d)``."""
        self("(")
        parts: tuple[syntax.Expr | syntax.Keyword, ...] = (*node.args, *node.keywords)
        for k, part in enumerate(parts):
            self("" if k == 0 else "; " if k == node.semicolon else ", ")
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
        self.expression(node.body, REDUCED)

    def keyword(self, node: syntax.Keyword) -> None:
        with self.marked(node.span):
            self(node.name, " = ")
            self.expression(node.value)

    def listed(self, parts: Iterable, write: Callable) -> None:
        """Parts with commas between them."""
        for k, part in enumerate(parts):
            self(", " * (k > 0))
            write(part)

    def items(self, opened: str, items: Sequence[syntax.Expr], closed: str) -> None:
        self(opened)
        self.listed(items, self.expression)
        self(closed)

    def indexing(self, node: syntax.Indexing | None) -> None:
        """``[i in I, z ~ D | condition]``, or nothing."""
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
        with self.marked(node.span):
            self(f"{node.name} {node.kind} ")
            self.expression(node.domain, RANGED)

    # --------------------------------------------------------------------- what statements share
    def after(self, sign: str, node: syntax.Expr | None) -> None:
        """A sign and an expression, or nothing."""
        if node is not None:
            self(sign)
            self.expression(node)

    def shape(self, shape: Sequence[syntax.Expr]) -> None:
        """``[d, K]``, or nothing."""
        if shape:
            self.items("[", shape, "]")

    def bounded(self, shape: Sequence[syntax.Expr], bounds: Sequence[syntax.Bound]) -> None:
        """``[d] >= 0, in simplex(d)``: a shape and bounds."""
        self.shape(shape)
        for k, bound in enumerate(bounds):
            self("," * (k > 0), " ")
            with self.marked(bound.span):
                self(bound.op, " ")
                self.expression(bound.value, RANGED)

    def type(self, node: syntax.TypeExpr) -> None:
        """``real[d]``, ``{0, 1}``, ``G``."""
        with self.marked(node.span):
            if node.values is not None:
                self.expression(node.values)
            self(node.name or "")
            self.shape(node.shape)


def expression(node: syntax.Expr) -> str:
    """The text of an expression."""
    writer = Writer()
    writer.expression(node)
    return writer.text


def strength(node: syntax.Expr) -> int:
    """How tightly an expression's text holds together."""
    match node:
        case syntax.Unary(op="not"):
            return NOT
        case syntax.Unary():
            return REDUCED if _reduces(node) else SIGNED
        case syntax.Binary():
            return _strengths(node)[2]
        case syntax.Compare():
            return COMPARED
        case syntax.Range():
            return RANGED
        case syntax.Reduce():
            return REDUCED if _reduces(node) else ATOM
        case syntax.Call():
            return POSTFIX if _reads_as_reduction(node) else ATOM
    return ATOM


def _strengths(node: syntax.Binary) -> tuple[int, int, int]:
    """What an operation asks of its operands, and its own strength."""
    if node.op in _BINARY:
        return _BINARY[node.op]
    if node.op == "^":
        return POSTFIX, SIGNED, POWER
    if _reduces(node.right):
        return (PRODUCT, REDUCED, REDUCED)
    return (PRODUCT, SIGNED, PRODUCT)


def _reduces(node: syntax.Expr) -> bool:
    """Whether an expression is a reduction with a body behind it, or the negative of one."""
    while isinstance(node, syntax.Unary) and node.op != "not":
        node = node.arg
    return isinstance(node, syntax.Reduce) and (node.indexing is not None or node.subscript is not None)


def _reads_as_reduction(node: syntax.Call) -> bool:
    """Whether square brackets after ``sum(u)`` would be read as the index of the reduction ``sum``."""
    return node.func in lexer.grammar().reductions
