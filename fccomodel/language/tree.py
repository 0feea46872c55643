"""Parse trees to the abstract syntax: one function per grammar rule, called from the leaves up,
without recursion."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

from lark import Token, Tree

from fccomodel.core.diagnostics import Diagnostic
from fccomodel.core.source import Span
from fccomodel.language import errors, lexer, syntax
from fccomodel.library import reductions

#: From the children of a tree and their place to what they stand for.
Rule = Callable[[list, Span], Any]
#: Levels of operators, calls and reductions inside one another.
MAX_DEPTH = 200
#: Operands from which a chain ``a + b - c ...`` or ``a * b / c ...`` becomes a tree of logarithmic depth.
LONG_CHAIN = 100
#: The operator that takes back what the other of its chain puts in.
_INVERSE = {"+": "-", "*": "/"}


class Refusal(Exception):
    """A statement that is none; ``rest`` is the index of the word where the next one begins, where
    that is clear."""

    def __init__(self, diagnostic: Diagnostic, rest: int | None = None):
        self.diagnostic = diagnostic
        self.rest = rest
        super().__init__(diagnostic.message)


def build(tree: Tree, statements: Mapping[str, Rule]) -> Any:
    """The node that a statement's tree stands for; raises ``Refusal``.

    statements  the functions for the grammar's rules of statements
    """
    rules = {**_RULES, **statements}
    stack: list[tuple[Any, bool]] = [(tree, False)]
    values: list[tuple[Any, int]] = []
    while stack:
        item, ready = stack.pop()
        if not isinstance(item, Tree):
            values.append((item, 0))
        elif not ready:
            if item.data == "binary":
                chain = _chain(item)
            else:
                chain = []
            if len(chain) >= 2 * LONG_CHAIN - 1:
                item = Tree("chain", chain, item.meta)
            stack.append((item, True))
            stack.extend((child, False) for child in reversed(item.children))
        else:
            count = len(item.children)
            parts = values[len(values) - count :]
            del values[len(values) - count :]
            if item.meta.empty:
                at = Span(start=0, end=0)
            else:
                at = Span(start=item.meta.start_pos, end=item.meta.end_pos)
            node = rules[item.data]([value for value, _ in parts], at)
            if item.data == "chain":
                levels = count.bit_length()
            else:
                levels = int(isinstance(node, syntax.Expr))
            depth = max((d for _, d in parts), default=0) + levels
            if depth > MAX_DEPTH:
                raise Refusal(errors.statements.deep_operators(MAX_DEPTH, at.start))
            values.append((node, depth))
    return values[0][0]


def _chain(tree: Tree) -> list:
    """Operands and operators in turn of the chain that ends in this operation: ``a + b - c``, or ``a *
    b / c``."""
    family = next((pair for pair in _INVERSE.items() if tree.children[1] in pair), None)
    parts: list = []
    while (
        family is not None and isinstance(tree, Tree) and tree.data == "binary" and tree.children[1] in family
    ):
        tree, op, right = tree.children
        parts += [right, op]
    return [tree, *parts[::-1]]


def _balanced(c: list, at: Span) -> syntax.Expr:
    """A chain as a tree of logarithmic depth: ``a + b - c - d`` is ``(a + b) - (c + d)``."""
    direct = next(op for op, back in _INVERSE.items() if c[1] in (op, back))
    level = list(zip([direct, *map(str, c[1::2])], c[::2], strict=True))
    while len(level) > 1:
        joined = [
            (
                first,
                syntax.Binary(
                    op=direct if first == second else _INVERSE[direct], left=left, right=right, span=span
                ),
            )
            for (first, left), (second, right) in zip(level[::2], level[1::2], strict=False)
            for span in [Span(start=left.span.start, end=right.span.end)]
        ]
        level = joined + level[2 * len(joined) :]
    return dataclasses.replace(level[0][1], span=at)


def _at(token: Token) -> Span:
    return lexer.span(token)


def declared(name: Token) -> str:
    """A name that the user gives to something; the language's own words are refused."""
    words = lexer.grammar().words
    if name.value in words:
        raise Refusal(errors.syntax.reserved(name.value, _at(name)))
    return str(name.value)


# -------------------------------------------------------------------------------------- expressions
def _number(c: list, at: Span) -> syntax.Expr:
    value = float(c[0])
    if math.isinf(value):
        raise Refusal(errors.text.large_number(at))
    return syntax.Number(value=value, text=str(c[0]), span=at)


def _binary(c: list, at: Span) -> syntax.Expr:
    return syntax.Binary(op=str(c[1]), left=c[0], right=c[2], span=at)


def _logical(op: str) -> Callable[[list, Span], syntax.Expr]:
    return lambda c, at: syntax.Binary(op=op, left=c[0], right=c[1], span=at)


def _compare(c: list, at: Span) -> syntax.Expr:
    return syntax.Compare(operands=tuple(c[::2]), ops=tuple(str(op) for op in c[1::2]), span=at)


def _range(c: list, at: Span) -> syntax.Expr:
    return syntax.Range(low=c[0], high=c[1], step=c[2] if len(c) > 2 else None, span=at)


def _args(c: list, at: Span) -> tuple[tuple[syntax.Expr, ...], tuple[syntax.Keyword, ...], int | None]:
    """Arguments in order, named ones, and the number of the former before a ``;``."""
    positional: list[syntax.Expr] = []
    named: dict[str, syntax.Keyword] = {}
    semicolon = None
    for part in c:
        if isinstance(part, Token):
            semicolon = len(positional)
        elif isinstance(part, syntax.Keyword):
            if part.name in named:
                raise Refusal(errors.syntax.argument_twice(part.name, part.span))
            named[part.name] = part
        elif named:
            raise Refusal(errors.syntax.unnamed_after_named(part.span))
        else:
            positional.append(part)
    return tuple(positional), tuple(named.values()), semicolon


def _call(c: list, at: Span) -> syntax.Expr:
    func, (args, keywords, semicolon) = str(c[0]), c[1]
    kind = reductions.get(func)
    if kind is not None and kind.drawn:
        raise Refusal(errors.syntax.draw_in_round_brackets(func, kind.index, _at(c[0])))
    if kind is not None and kind.option is not None:
        raise Refusal(errors.syntax.options_without_index(func, f"{kind.head}[{kind.index}]", _at(c[0])))
    return syntax.Call(func=func, args=args, keywords=keywords, semicolon=semicolon, span=at)


def _name(c: list, at: Span) -> syntax.Expr:
    return syntax.Name(id=str(c[0]), span=at)


def _index_name(c: list, at: Span) -> syntax.Expr:
    return syntax.Index(obj=_name(c[:1], _at(c[0])), items=tuple(c[1:]), span=at)


def _reduce_with(c: list, at: Span) -> syntax.Expr:
    kind, (args, keywords, _), indexing, body = str(c[0]), *c[1:]
    if args:
        option = reductions.all()[kind].option
        raise Refusal(errors.syntax.unnamed_option(kind, option.name if option else "", args[0].span))
    return syntax.Reduce(kind=kind, body=body, indexing=indexing, keywords=keywords, span=at)


def _reduce_subscript(c: list, at: Span) -> syntax.Expr:
    kind, _, subscript = str(c[0]).partition("_")
    return syntax.Reduce(kind=kind, body=c[1], subscript=subscript, span=at)


def _reduce_free(c: list, at: Span) -> syntax.Expr:
    kind = str(c[0])
    if not reductions.all()[kind].drawn:
        raise Refusal(
            errors.syntax.no_index(kind, reductions.named(lambda reduction: reduction.drawn), _at(c[0]))
        )
    return syntax.Reduce(kind=kind, body=c[1], span=at)


def _binder(kind: str) -> Callable[[list, Span], syntax.Binder]:
    return lambda c, at: syntax.Binder(name=declared(c[0]), kind=kind, domain=c[1], span=at)


def _indexing(c: list, at: Span) -> syntax.Indexing:
    binders = tuple(x for x in c if isinstance(x, syntax.Binder))
    if isinstance(c[-1], syntax.Expr):
        condition = c[-1]
    else:
        condition = None
    return syntax.Indexing(binders=binders, condition=condition, span=at)


# ------------------------------------------------------------------------- what statements share
def _option(c: list, at: Span) -> syntax.Keyword:
    return syntax.Keyword(name="".join(str(t) for t in c[:-1]), value=c[-1], span=at)


def distinct(items: list[syntax.Keyword]) -> tuple[syntax.Keyword, ...]:
    """Options, none of which is given twice; raises ``Refusal``."""
    seen: set[str] = set()
    for item in items:
        if item.name in seen:
            raise Refusal(errors.syntax.option_twice(item.name, item.span))
        seen.add(item.name)
    return tuple(items)


_RULES: dict[str, Rule] = {
    "option": _option,
    "bounds": lambda c, at: tuple(c),
    "bound_compare": lambda c, at: syntax.Bound(op=str(c[0]), value=c[1], span=at),
    "bound_in": lambda c, at: syntax.Bound(op="in", value=c[0], span=at),
    "shape": lambda c, at: tuple(c),
    "type_name": lambda c, at: syntax.TypeExpr(name=str(c[0]), shape=c[1] or (), span=at),
    "type_values": lambda c, at: syntax.TypeExpr(values=c[0], shape=c[1] or (), span=at),
    "indexing": _indexing,
    "binder_in": _binder("in"),
    "binder_draw": _binder("~"),
    "or_": _logical("or"),
    "and_": _logical("and"),
    "not_": lambda c, at: syntax.Unary(op="not", arg=c[0], span=at),
    "compare": _compare,
    "range": _range,
    "binary": _binary,
    "chain": _balanced,
    "unary": lambda c, at: syntax.Unary(op=str(c[0]), arg=c[1], span=at),
    "reduce": lambda c, at: syntax.Reduce(kind=str(c[0]), indexing=c[1], body=c[2], span=at),
    "reduce_with": _reduce_with,
    "reduce_subscript": _reduce_subscript,
    "reduce_free": _reduce_free,
    "name": _name,
    "call": _call,
    "index_name": _index_name,
    "index_item": lambda c, at: syntax.Index(obj=c[0], items=tuple(c[1:]), span=at),
    "field": lambda c, at: syntax.Field(obj=c[0], name=str(c[1])[1:], span=at),
    "number": _number,
    "string": lambda c, at: syntax.String(value=str(c[0])[1:-1], span=at),
    "set_literal": lambda c, at: syntax.SetLiteral(items=tuple(c), span=at),
    "set_comprehension": lambda c, at: syntax.SetComprehension(indexing=_indexing(c, at), span=at),
    "args": _args,
    "keyword": lambda c, at: syntax.Keyword(name=str(c[0]), value=c[1], span=at),
}
