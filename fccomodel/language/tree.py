"""Parse trees to abstract syntax: one function per rule of the grammar, called from the leaves up.

The functions for statements are in ``language/statements``.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from lark import Token, Tree

from fccomodel.core.diagnostics import Diagnostic
from fccomodel.core.source import Span
from fccomodel.language import errors, lexer, printing, syntax
from fccomodel.library import reductions

#: From the children of a tree and their place to what they stand for.
Rule = Callable[[list, Span], Any]
AnyRule = TypeVar("AnyRule", bound=Rule)
#: Levels of operators, calls and reductions inside one another.
MAX_DEPTH = 200
#: Operands from which a chain ``a + b - c ...`` or ``a * b / c ...`` becomes a tree of logarithmic depth.
LONG_CHAIN = 100
#: The inverse operation of each operation that long chains consist of.
_INVERSE = {"+": "-", "*": "/"}
_RULES: dict[str, Rule] = {}


class Refusal(Exception):
    """Words that make no statement; ``rest`` is the index of the word where the next statement begins."""

    def __init__(self, diagnostic: Diagnostic, rest: int | None = None):
        self.diagnostic = diagnostic
        self.rest = rest
        super().__init__(diagnostic.message)


def build(tree: Tree, statements: Mapping[str, Rule]) -> Any:
    """The node that a statement's tree stands for; raises ``Refusal``. Not recursive.

    statements  the functions for the grammar's rules of statements
    """
    rules = {**_RULES, **statements}
    stack: list[tuple[Any, bool]] = [(tree, False)]
    values: list[Any] = []
    depths: list[int] = []
    while stack:
        item, ready = stack.pop()
        if not isinstance(item, Tree):
            values.append(item)
            depths.append(0)
        elif not ready:
            item = _with_long_chain(item)
            stack.append((item, True))
            stack.extend((child, False) for child in reversed(item.children))
        else:
            first = len(values) - len(item.children)
            at = _place(item)
            node = rules[item.data](values[first:], at)
            depth = max(depths[first:], default=0) + _levels(item, node)
            if depth > MAX_DEPTH:
                raise Refusal(errors.statements.deep_operators(MAX_DEPTH, at.start))
            values[first:] = [node]
            depths[first:] = [depth]
    return values[0]


def _place(tree: Tree) -> Span:
    if tree.meta.empty:
        return Span(start=0, end=0)
    return Span(start=tree.meta.start_pos, end=tree.meta.end_pos)


def _levels(tree: Tree, node: Any) -> int:
    """The levels that a tree adds to those of its children."""
    if tree.data == "chain":
        return len(tree.children).bit_length()
    return int(isinstance(node, syntax.Expr))


# ---------------------------------------------------------------------------------------- long chains
def _with_long_chain(tree: Tree) -> Tree:
    """A long chain of sums or products as one tree ``chain``; any other tree unchanged."""
    if tree.data != "binary":
        return tree
    chain = _chain(tree)
    operands = len(chain) // 2 + 1
    if operands < LONG_CHAIN:
        return tree
    return Tree("chain", chain, tree.meta)


def _chain(tree: Tree) -> list:
    """Operands and operators in turn of the chain ``a + b - c``, or ``a * b / c``, that a tree ends."""
    family = next((pair for pair in _INVERSE.items() if tree.children[1] in pair), None)
    if family is None:
        return [tree]
    parts: list = []
    while isinstance(tree, Tree) and tree.data == "binary" and tree.children[1] in family:
        tree, op, right = tree.children
        parts += [right, op]
    return [tree, *parts[::-1]]


def _balanced(c: list, at: Span) -> syntax.Expr:
    """A chain as a tree of logarithmic depth: ``a + b - c - d`` is ``(a + b) - (c + d)``."""
    direct = next(op for op, inverse in _INVERSE.items() if c[1] in (op, inverse))
    level = list(zip([direct, *map(str, c[1::2])], c[::2], strict=True))
    while len(level) > 1:
        joined = []
        for (op, left), (next_op, right) in zip(level[::2], level[1::2], strict=False):
            if op == next_op:
                inner = direct
            else:
                inner = _INVERSE[direct]
            span = Span(start=left.span.start, end=right.span.end)
            joined.append((op, syntax.Binary(op=inner, left=left, right=right, span=span)))
        level = joined + level[2 * len(joined) :]
    return dataclasses.replace(level[0][1], span=at)


_RULES["chain"] = _balanced


# ------------------------------------------------------------------------------------------ registry
def _rule(name: str) -> Callable[[AnyRule], AnyRule]:
    """A decorator: the function builds the nodes of a rule of the grammar."""

    def register(rule: AnyRule) -> AnyRule:
        """Register the rule under the name."""
        _RULES[name] = rule
        return rule

    return register


def declared(name: Token) -> str:
    """A name that the user gives to something; raises ``Refusal`` for a word of the language."""
    words = lexer.grammar().words
    if name.value in words:
        raise Refusal(errors.syntax.reserved(name.value, lexer.span(name)))
    return str(name.value)


# --------------------------------------------------------------------------------------------- atoms
@_rule("number")
def _number(c: list, at: Span) -> syntax.Expr:
    value = float(c[0])
    if math.isinf(value):
        raise Refusal(errors.text.large_number(at))
    return syntax.Number(value=value, text=str(c[0]), span=at)


@_rule("string")
def _string(c: list, at: Span) -> syntax.Expr:
    return syntax.String(value=str(c[0])[1:-1], span=at)


@_rule("name")
def _name(c: list, at: Span) -> syntax.Expr:
    return syntax.Name(id=str(c[0]), span=at)


@_rule("set_literal")
def _set_literal(c: list, at: Span) -> syntax.Expr:
    return syntax.SetLiteral(items=tuple(c), span=at)


@_rule("set_comprehension")
def _set_comprehension(c: list, at: Span) -> syntax.Expr:
    return syntax.SetComprehension(indexing=_indexing(c, at), span=at)


@_rule("vector")
def _vector(c: list, at: Span) -> syntax.Expr:
    return syntax.Vector(items=tuple(c), span=at)


@_rule("array")
def _array(c: list, at: Span) -> syntax.Expr:
    return syntax.Comprehension(indexing=c[0], body=c[1], span=at)


@_rule("whole")
def _whole(c: list, at: Span) -> syntax.Expr:
    return syntax.Whole(span=at)


@_rule("field")
def _field(c: list, at: Span) -> syntax.Expr:
    return syntax.Field(obj=c[0], name=str(c[1]).removeprefix("."), span=at)


@_rule("index_name")
def _index_name(c: list, at: Span) -> syntax.Expr:
    return syntax.Index(obj=_name(c[:1], lexer.span(c[0])), items=tuple(c[1:]), span=at)


@_rule("index_item")
def _index_item(c: list, at: Span) -> syntax.Expr:
    return syntax.Index(obj=c[0], items=tuple(c[1:]), span=at)


# ----------------------------------------------------------------------------------------- operators
@_rule("binary")
def _binary(c: list, at: Span) -> syntax.Expr:
    return syntax.Binary(op=str(c[1]), left=c[0], right=c[2], span=at)


@_rule("or_")
def _or(c: list, at: Span) -> syntax.Expr:
    return syntax.Binary(op="or", left=c[0], right=c[1], span=at)


@_rule("and_")
def _and(c: list, at: Span) -> syntax.Expr:
    return syntax.Binary(op="and", left=c[0], right=c[1], span=at)


@_rule("not_")
def _not(c: list, at: Span) -> syntax.Expr:
    return syntax.Unary(op="not", arg=c[0], span=at)


@_rule("unary")
def _unary(c: list, at: Span) -> syntax.Expr:
    return syntax.Unary(op=str(c[0]), arg=c[1], span=at)


@_rule("compare")
def _compare(c: list, at: Span) -> syntax.Expr:
    return syntax.Compare(operands=tuple(c[::2]), ops=tuple(str(op) for op in c[1::2]), span=at)


@_rule("choice")
def _choice(c: list, at: Span) -> syntax.Expr:
    return syntax.Choice(condition=c[0], yes=c[1], no=c[2], span=at)


@_rule("member")
def _member(c: list, at: Span) -> syntax.Expr:
    """``z.y in {a, b}`` as ``z.y == a or z.y == b``, and ``z.y in a .. b`` as ``a <= z.y <= b``."""
    place = Span(start=c[0].span.start, end=lexer.span(c[1]).end)
    column = _field(c[:2], place)
    domain = c[2]
    if isinstance(domain, syntax.Range) and domain.step is None:
        operands = (domain.low, column, domain.high)
        return syntax.Compare(operands=operands, ops=("<=", "<="), span=at)
    if not isinstance(domain, syntax.SetLiteral):
        raise Refusal(errors.syntax.member_of_a_named_set(at))
    cases: list[syntax.Expr] = [
        syntax.Compare(operands=(column, item), ops=("==",), span=at) for item in domain.items
    ]
    return functools.reduce(lambda a, b: syntax.Binary(op="or", left=a, right=b, span=at), cases)


@_rule("range")
def _range(c: list, at: Span) -> syntax.Expr:
    if len(c) > 2:
        step = c[2]
    else:
        step = None
    return syntax.Range(low=c[0], high=c[1], step=step, span=at)


# --------------------------------------------------------------------------------------------- calls
@_rule("args")
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


@_rule("keyword")
def _keyword(c: list, at: Span) -> syntax.Keyword:
    return syntax.Keyword(name=str(c[0]), value=c[1], span=at)


@_rule("call")
def _call(c: list, at: Span) -> syntax.Expr:
    func, (args, keywords, semicolon) = str(c[0]), c[1]
    kind, place = reductions.words().get(func), lexer.span(c[0])
    if kind is not None and kind.drawn:
        raise Refusal(errors.syntax.draw_in_round_brackets(func, kind.index, place))
    if kind is not None and kind.option is not None:
        raise Refusal(errors.syntax.options_without_index(func, f"{kind.head}[{kind.index}]", place))
    return syntax.Call(func=func, args=args, keywords=keywords, semicolon=semicolon, span=at)


# ---------------------------------------------------------------------------------------- reductions
@_rule("reduce")
def _reduce(c: list, at: Span) -> syntax.Expr:
    return syntax.Reduce(kind=str(c[0]), indexing=c[1], body=c[2], span=at)


@_rule("reduce_with")
def _reduce_with(c: list, at: Span) -> syntax.Expr:
    kind, (args, keywords, _), indexing, body = str(c[0]), *c[1:]
    if args:
        option = reductions.words()[kind].option
        name = option.name if option is not None else ""
        raise Refusal(errors.syntax.unnamed_option(kind, name, args[0].span))
    return syntax.Reduce(kind=kind, body=body, indexing=indexing, keywords=keywords, span=at)


@_rule("reduce_subscript")
def _reduce_subscript(c: list, at: Span) -> syntax.Expr:
    kind, _, subscript = str(c[0]).partition("_")
    return syntax.Reduce(kind=kind, body=c[1], subscript=subscript, span=at)


@_rule("reduce_free")
def _reduce_free(c: list, at: Span) -> syntax.Expr:
    kind = str(c[0])
    if not reductions.words()[kind].drawn:
        random_reductions = reductions.named(lambda reduction: reduction.drawn)
        raise Refusal(errors.syntax.no_index(kind, random_reductions, lexer.span(c[0])))
    return syntax.Reduce(kind=kind, body=c[1], span=at)


@_rule("binder_in")
def _binder_in(c: list, at: Span) -> syntax.Binder:
    return syntax.Binder(name=declared(c[0]), kind="in", domain=c[1], span=at)


@_rule("binder_draw")
def _binder_draw(c: list, at: Span) -> syntax.Binder:
    weight = c[2] if len(c) > 2 else None
    return syntax.Binder(name=declared(c[0]), kind="~", domain=c[1], weight=weight, span=at)


@_rule("indexing")
def _indexing(c: list, at: Span) -> syntax.Indexing:
    binders = tuple(part for part in c if isinstance(part, syntax.Binder))
    if isinstance(c[-1], syntax.Expr):
        condition = c[-1]
    else:
        condition = None
    return syntax.Indexing(binders=binders, condition=condition, span=at)


# --------------------------------------------------------------------------- what statements share
@_rule("option")
def _option(c: list, at: Span) -> syntax.Keyword:
    """An option; its value may be the name of a reduction, as in ``surrogate = cvar``."""
    value = c[-1]
    if isinstance(value, Token):
        value = syntax.Name(id=str(value), span=Span(start=at.end - len(value), end=at.end))
    return syntax.Keyword(name="".join(str(token) for token in c[:-1]), value=value, span=at)


def bounds_of(name: str, bounds: tuple[syntax.Bound, ...] | None) -> tuple[syntax.Bound, ...]:
    """The bounds of a variable or a param; raises ``Refusal`` for ``in [0, 1]``."""
    for bound in bounds or ():
        if bound.op == "in" and isinstance(bound.value, syntax.Vector):
            ends = [printing.expression(item) for item in bound.value.items]
            if len(ends) != len(("low", "high")):
                ends = ["0", "1"]
            start = bound.value.span.start
            raise Refusal(errors.syntax.interval(name, ends, Span(start=start, end=start + 1)))
    return bounds or ()


def distinct(items: list[syntax.Keyword]) -> tuple[syntax.Keyword, ...]:
    """The options, after a check that none occurs twice. Raises ``Refusal``."""
    seen: set[str] = set()
    for item in items:
        if item.name in seen:
            raise Refusal(errors.syntax.option_twice(item.name, item.span))
        seen.add(item.name)
    return tuple(items)


@_rule("shape")
@_rule("bounds")
def _tuple(c: list, at: Span) -> tuple:
    return tuple(c)


@_rule("bound_compare")
def _bound_compare(c: list, at: Span) -> syntax.Bound:
    return syntax.Bound(op=str(c[0]), value=c[1], span=at)


@_rule("bound_in")
def _bound_in(c: list, at: Span) -> syntax.Bound:
    return syntax.Bound(op="in", value=c[0], span=at)


@_rule("type_name")
def _type_name(c: list, at: Span) -> syntax.TypeExpr:
    return syntax.TypeExpr(name=str(c[0]), shape=c[1] or (), span=at)


@_rule("type_limited")
def _type_limited(c: list, at: Span) -> syntax.TypeExpr:
    return dataclasses.replace(c[0], limit=c[1], span=at)


@_rule("type_values")
def _type_values(c: list, at: Span) -> syntax.TypeExpr:
    return syntax.TypeExpr(values=c[0], shape=c[1] or (), span=at)
