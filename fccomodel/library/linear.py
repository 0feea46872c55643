"""Linear combinations of expressions.

A term is a sign, scalar factors that are known before any draw, and a core.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from fccomodel.core import ir
from fccomodel.core.rewrite import apply as make
from fccomodel.core.rewrite import const, with_children
from fccomodel.core.source import Span
from fccomodel.library import atoms

#: A sum of more terms than this is built as a tree.
TERMS_OF_CHAINS = 100


class Factor(NamedTuple):
    """A multiplication (``mul``) or division (``div``) by an expression."""

    op: str
    by: ir.Expr


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearTerm:
    """``sign * core`` with ``factors``, the innermost first; ``place`` is its place in the model."""

    core: ir.Expr
    sign: int = 1
    factors: tuple[Factor, ...] = ()
    place: Span = ir.NOWHERE

    @property
    def positive(self) -> ir.Expr:
        """The term without its sign."""
        result = self.core
        for op, by in self.factors:
            if isinstance(result, ir.Const) and isinstance(by, ir.Const) and not result.shape and by.value:
                if op == "div":
                    value = result.value / by.value
                else:
                    value = result.value * by.value
                result = replace(result, value=value)
            elif op == "div":
                result = make(op, result, by, span=self.place)
            else:
                result = make(op, by, result, span=self.place)
        return result

    @property
    def expr(self) -> ir.Expr:
        """The term as an expression."""
        if self.sign > 0:
            return self.positive
        return make("neg", self.positive, span=self.place)

    def times(self, sign: int, factors: tuple[Factor, ...]) -> LinearTerm:
        """The term multiplied by an outer factor."""
        return replace(self, sign=sign * self.sign, factors=folded((*self.factors, *factors)))


def is_number(node: ir.Expr) -> bool:
    """Whether a node is a scalar of numbers, parameters and sizes only, which are known before any draw."""
    if node.shape:
        return False
    memo = "_of_numbers"
    if memo not in vars(node):
        vars(node)[memo] = _of_numbers(node)
    return vars(node)[memo]


def _of_numbers(node: ir.Expr) -> bool:
    """Whether an expression has numbers, parameters and sizes alone; it stops at the first other node."""
    seen: set[int] = set()
    stack = [node]
    while stack:
        part = stack.pop()
        if not isinstance(part, ir.Const | ir.Param | ir.Size | ir.Apply | ir.Item):
            return False
        if id(part) not in seen:
            seen.add(id(part))
            stack.extend(part.children)
    return True


def terms(expr: ir.Expr, fixed: Callable[[ir.Expr], bool] = is_number) -> list[LinearTerm]:
    """The terms of an expression, from left to right.

    A factor that is ``fixed`` is distributed over the terms of a sum. Not recursive.
    """
    result: list[LinearTerm] = []
    stack = [LinearTerm(core=expr, place=expr.span)]
    while stack:
        term = stack.pop()
        inner = opened(term, fixed)
        if inner is None:
            result.append(term)
        else:
            stack.extend(reversed(inner))
        if len(result) == TERMS_OF_CHAINS and _repeats(expr, fixed):
            return _collected(expr, fixed)
    return result


def shortened(expr: ir.Expr, fixed: Callable[[ir.Expr], bool] = is_number) -> ir.Expr:
    """The expression with like terms collected, if sums that it uses several times would give it more
    than TERMS_OF_CHAINS terms; else the expression itself."""
    counts: dict[int, int] = {}
    for key, (_, below) in reversed(_inner(expr, fixed).items()):
        counts[key] = sum(counts[id(term.core)] for term in below) or 1
    if counts[id(expr)] > TERMS_OF_CHAINS and _repeats(expr, fixed):
        return joined(_collected(expr, fixed), expr.span)
    return expr


def _inner(expr: ir.Expr, fixed: Callable[[ir.Expr], bool]) -> dict[int, tuple[ir.Expr, list[LinearTerm]]]:
    """Each node that a sum opens, by its id, with its terms: a node before all that are in it."""
    known: dict[int, tuple[ir.Expr, list[LinearTerm]]] = {}
    stack = [expr]
    while stack:
        node = stack[-1]
        if id(node) not in known:
            below = opened(LinearTerm(core=node, place=node.span), fixed) or []
            known[id(node)] = (node, below)
            stack += [t.core for t in below if id(t.core) not in known]
        else:
            stack.pop()
    return _in_order(expr, known)


def _in_order(
    expr: ir.Expr, known: dict[int, tuple[ir.Expr, list[LinearTerm]]]
) -> dict[int, tuple[ir.Expr, list[LinearTerm]]]:
    """The nodes in an order in which each comes before all that are in it."""
    ordered: list[int] = []
    visited: set[int] = set()
    stack = [(id(expr), False)]
    while stack:
        key, left = stack.pop()
        if left:
            ordered.append(key)
        elif key not in visited:
            visited.add(key)
            stack.append((key, True))
            stack += [(id(t.core), False) for t in known[key][1]]
    return {key: known[key] for key in reversed(ordered)}


def _repeats(expr: ir.Expr, fixed: Callable[[ir.Expr], bool]) -> bool:
    """Whether a sum inside the expression is used several times."""
    counts: dict[int, int] = {}
    nodes = _inner(expr, fixed)
    for _, below in nodes.values():
        for term in below:
            counts[id(term.core)] = counts.get(id(term.core), 0) + 1
    return any(count > 1 and nodes[key][1] for key, count in counts.items())


#: The factors of a term that are no numbers, in any order: each operation with a name for what it is by.
_Key = tuple[tuple[str, object], ...]


def _collected(expr: ir.Expr, fixed: Callable[[ir.Expr], bool]) -> list[LinearTerm]:
    """The terms of an expression in which sums are used several times: like terms are collected, so
    that the time is linear in the number of different nodes."""
    nodes = _inner(expr, fixed)
    weights: dict[int, dict[_Key, tuple[float, tuple[Factor, ...]]]] = {id(expr): {(): (1.0, ())}}
    terms_collected: list[LinearTerm] = []
    for key, (node, below) in nodes.items():
        for number, others in weights.pop(key).values():
            if not below:
                factors = others if abs(number) == 1 else (Factor("mul", const(abs(number))), *others)
                terms_collected.append(
                    LinearTerm(core=node, sign=-1 if number < 0 else 1, factors=factors, place=node.span)
                )
                continue
            for term in below:
                value, rest = _number(term)
                whole = (*rest, *others)
                into = weights.setdefault(id(term.core), {})
                named = _key(whole)
                into[named] = (into.get(named, (0.0, ()))[0] + number * value, whole)
    return terms_collected


def _number(term: LinearTerm) -> tuple[float, tuple[Factor, ...]]:
    """The number in a term's sign and factors, and the other factors."""
    value, rest = float(term.sign), list[Factor]()
    for f in term.factors:
        if isinstance(f.by, ir.Const) and f.op == "mul":
            value = value * f.by.value
        elif isinstance(f.by, ir.Const) and f.by.value:
            value = value / f.by.value
        else:
            rest.append(f)
    return value, tuple(rest)


def _key(factors: tuple[Factor, ...]) -> _Key:
    """A name for a product of factors in any order."""
    named = [(f.op, f.by.name if isinstance(f.by, ir.Param) else id(f.by)) for f in factors]
    return tuple(sorted(named, key=str))


def opened(term: LinearTerm, fixed: Callable[[ir.Expr], bool] = is_number) -> list[LinearTerm] | None:
    """The terms of a term whose core is a sum, a multiple or a quotient; else None."""
    node = term.core
    if (parts := atoms.signed(node)) is not None:
        return [
            LinearTerm(core=p, sign=s * term.sign, factors=term.factors, place=_place(term, p, parts))
            for s, p in parts
        ]
    match node:
        case ir.Apply(op="mul", args=(a, b)) if fixed(a) != fixed(b):
            by, core = (a, b) if fixed(a) else (b, a)
            sign, factors = factor("mul", by)
        case ir.Apply(op="div", args=(core, b)) if fixed(b) and not fixed(core):
            sign, factors = factor("div", b)
        case _:
            return None
    place = term.place
    if place is ir.NOWHERE:
        place = node.span
    return [
        LinearTerm(core=core, sign=sign * term.sign, factors=folded((*factors, *term.factors)), place=place)
    ]


def single(expr: ir.Expr) -> LinearTerm:
    """The expression as one term, whose core is not a multiple."""
    term = LinearTerm(core=expr, place=expr.span)
    while (inner := opened(term)) is not None and len(inner) == 1:
        term = inner[0]
    return term


def _place(term: LinearTerm, part: ir.Expr, parts: Sequence[tuple[int, ir.Expr]]) -> Span:
    """The place of a summand: the term's place, if its factors belong to this summand alone."""
    if len(parts) == 1 and term.factors:
        return term.place
    return part.span


def factor(op: str, by: ir.Expr) -> tuple[int, tuple[Factor, ...]]:
    """A factor as a sign and factors without sign: ``-2`` gives 2, ``-mu`` gives mu."""
    sign = 1
    while isinstance(by, ir.Apply) and by.op == "neg":
        sign, by = -sign, by.args[0]
    if isinstance(by, ir.Const) and by.value < 0:
        sign, by = -sign, replace(by, value=-by.value)
    if isinstance(by, ir.Const) and by.value == 1:
        return sign, ()
    return sign, (Factor(op, by),)


def folded(factors: tuple[Factor, ...]) -> tuple[Factor, ...]:
    """The factors with their numbers multiplied into one, which comes first.

    A single number stays where it is written.
    """
    numbers = [f for f in factors if isinstance(f.by, ir.Const)]
    if len(numbers) < 2:
        return factors
    value = 1.0
    for f in numbers:
        assert isinstance(f.by, ir.Const)
        if f.op == "div" and f.by.value == 0:
            return factors
        if f.op == "div":
            value = value / f.by.value
        else:
            value = value * f.by.value
    others = tuple(f for f in factors if not isinstance(f.by, ir.Const))
    if value == 1:
        return others
    return (Factor("mul", const(value)), *others)


def same_factors(a: Sequence[Factor], b: Sequence[Factor]) -> bool:
    """Whether two products are the same, in any order."""
    rest = list(b)
    for f in a:
        place = next((k for k, g in enumerate(rest) if f.op == g.op and ir.same(f.by, g.by)), None)
        if place is None:
            return False
        rest.pop(place)
    return not rest


def joined(parts: Iterable[LinearTerm], span: Span) -> ir.Expr:
    """The sum of terms, from left to right; many terms form a tree of logarithmic depth."""
    listed = list(parts)
    if len(listed) > TERMS_OF_CHAINS:
        half = len(listed) // 2
        return make("add", joined(listed[:half], span), joined(listed[half:], span), span=span)
    if not listed:
        return const(0)
    result = listed[0].expr
    for term in listed[1:]:
        if term.sign > 0:
            result = make("add", result, term.positive, span=span)
        else:
            result = make("sub", result, term.positive, span=span)
    return result


def common(lists: Sequence[Sequence[Factor]]) -> tuple[Factor, ...]:
    """The factors that all lists share."""
    if lists:
        return tuple(f for f in lists[0] if all(_has(f, other) for other in lists[1:]))
    return ()


def _has(wanted: Factor, factors: Sequence[Factor]) -> bool:
    return any(wanted.op == f.op and ir.same(wanted.by, f.by) for f in factors)


def without(factors: tuple[Factor, ...], divisor: Sequence[Factor]) -> tuple[Factor, ...]:
    """The quotient of two products: common factors cancel, the others are inverted."""
    rest = list(factors)
    inverted: list[Factor] = []
    for d in divisor:
        k = next((k for k, f in enumerate(rest) if f.op == d.op and ir.same(f.by, d.by)), None)
        if k is not None:
            rest.pop(k)
        elif d.op == "div":
            inverted.append(Factor("mul", d.by))
        else:
            inverted.append(Factor("div", d.by))
    return folded((*rest, *inverted))


# ---------------------------------------------------------------------------------- sides of a pair
Sides = tuple[ir.Expr | None, ir.Expr | None]


def sides(
    node: ir.Expr, own: Collection[ir.Binder], free: Callable[[ir.Expr], Collection[ir.Binder]]
) -> Sides | None:
    """The parts (a, b) with node = a + b, or None.

    a does not depend on the ``own`` binders, and b depends on no others. Either part may be None.
    ``free`` gives the binders on which an expression depends.
    """
    inside = [b in own for b in free(node)]
    if not any(inside):
        return node, None
    if all(inside):
        return None, node
    if not isinstance(node, ir.Apply):
        return None
    if atoms.signed(node) is not None:
        parts = [sides(arg, own, free) for arg in node.args]
        pairs = [part for part in parts if part is not None]
        if len(pairs) < len(parts):
            return None
        return _added(node, [a for a, _ in pairs]), _added(node, [b for _, b in pairs])
    mixed = [len({b in own for b in free(arg)}) == 2 for arg in node.args]
    atom = atoms.of(node)
    if atom is None or atom.variadic or len(mixed) != 2 or sum(mixed) != 1 or not atom.linear(mixed):
        return None
    place = mixed.index(True)
    inner = sides(node.args[place], own, free)
    if inner is None or any(free(arg) for k, arg in enumerate(node.args) if k != place):
        return None
    a, b = (
        part and with_children(node, (*node.args[:place], part, *node.args[place + 1 :])) for part in inner
    )
    return a, b


def _added(node: ir.Apply, parts: list[ir.Expr | None]) -> ir.Expr | None:
    """The sum, difference or negative of those arguments that exist."""
    if None not in parts:
        return with_children(node, tuple(part for part in parts if part is not None))
    first, last = parts[0], parts[-1]
    if last is None:
        return first
    if node.op == "sub":
        return make("neg", last)
    return last
