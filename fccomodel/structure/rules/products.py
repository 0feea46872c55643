"""Products and powers whose factors share what they are made of: entropies, perspectives, hidden
squares, geometric means."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import prod

from fccomodel.core import ir
from fccomodel.core.rewrite import Rewriter, substitute
from fccomodel.library import atoms, reductions
from fccomodel.library.amounts import ZERO
from fccomodel.library.reductions.sum import SUM
from fccomodel.structure.draft import Draft
from fccomodel.structure.facts import Facts, combine
from fccomodel.structure.rules.arithmetic import add, renamed
from fccomodel.structure.rules.compose import compose
from fccomodel.structure.rules.whole import exponent, number, radial

See = Callable[[ir.Expr], Facts]
Key = Callable[[ir.Expr], int]
#: sums of exponents this near to 1 are 1: a value changes by no more than its own rounding
ROUNDING = 1e-15


def opened(node: ir.Expr) -> ir.Expr:
    """What a name stands for."""
    while isinstance(node, ir.LetRef):
        node = node.let.body
    return node


# ----------------------------------------------------------------------------------- equal in value
def alike(a: ir.Expr, b: ir.Expr, key: Key) -> bool:
    """Two expressions have the same value: averages over one set too, whatever their draws are called."""
    stack = [(a, b)]
    while stack:
        a, b = map(opened, stack.pop())
        if key(a) == key(b):
            continue
        parts = _parts(a, b)
        if parts is None:
            return False
        stack += parts
    return True


def _parts(a: ir.Expr, b: ir.Expr) -> list[tuple[ir.Expr, ir.Expr]] | None:
    """The pairs that must be alike for two expressions to be so; None where they are not."""
    if isinstance(a, ir.Reduce) and isinstance(b, ir.Reduce):
        if a.kind == b.kind and _same_sets(a, b):
            return _inside(a, b)
        return None
    if isinstance(a, ir.Apply) and isinstance(b, ir.Apply) and a.op == b.op and len(a.args) == len(b.args):
        return list(zip(a.args, b.args, strict=True))
    return None


def _same_sets(a: ir.Reduce, b: ir.Reduce) -> bool:
    return len(a.binders) == len(b.binders) and all(
        x.kind == y.kind and same_set(x.domain, y.domain) for x, y in zip(a.binders, b.binders, strict=True)
    )


def same_set(a: ir.Set, b: ir.Set) -> bool:
    """One set, or all rows of one table."""
    rows = (
        isinstance(a, ir.RowSet)
        and isinstance(b, ir.RowSet)
        and a.table == b.table
        and a.where is None
        and b.where is None
    )
    return a is b or rows


def _inside(a: ir.Reduce, b: ir.Reduce) -> list[tuple[ir.Expr, ir.Expr]] | None:
    ours = {y: ir.Element(binder=x) for x, y in zip(a.binders, b.binders, strict=True)}
    if (a.condition is None) != (b.condition is None) or a.options.keys() != b.options.keys():
        return None
    pairs = [(a.body, b.body), *((a.options[name], b.options[name]) for name in a.options)]
    if a.condition is not None and b.condition is not None:
        pairs.append((a.condition, b.condition))
    return [(x, substitute(y, ours)) for x, y in pairs]


# ----------------------------------------------------------------------------------------- products
def product_of(node: ir.Apply, args: tuple[Facts, Facts], see: See, key: Key, facts: Facts) -> Facts:
    """What more is known of a product of two numbers that both vary, from what its factors share."""
    facts = entropy(node, args, see, key, facts)
    for y, g in (args, args[::-1]):
        facts = perspective_of(node, y, g, see, key, facts)
    return shifted_square(node, args, see, key, facts)


def entropy(node: ir.Apply, args: tuple[Facts, Facts], see: See, key: Key, facts: Facts) -> Facts:
    """``c * log(k c)`` for a constant k > 0: but for a multiple of c the negative of an entropy, with
    a kink at 0."""
    entr = atoms.get("entr")
    assert entr is not None
    for c, logarithm in (args, args[::-1]):
        log = opened(logarithm.expr)
        if not c.affine or not isinstance(log, ir.Apply) or log.op != "log":
            continue
        (core, sign), (inside, positive) = (_multiple(e, see) for e in (c.expr, log.args[0]))
        if sign and positive > 0 and alike(core, inside, key):
            if sign > 0:
                size = c
            else:
                size = c.negated()
            found = compose(node, entr, (replace(size, expr=c.expr),))
            found = renamed(found.negated() if sign > 0 else found, "entropy")
            kinds = ("below", "above", "differentiable", "gradient")
            return facts.with_facts({kind: getattr(found, kind) for kind in kinds})
    return facts


def _multiple(node: ir.Expr, see: See) -> tuple[ir.Expr, int]:
    """(r, s) of a constant multiple of r, s the sign of the constant: 0 where it is not known."""
    node, sign = opened(node), 1
    while isinstance(node, ir.Apply) and not see(node).constant:
        factors = [a for a in node.args if see(a).constant]
        if node.op == "neg":
            node, sign = opened(node.args[0]), -sign
        elif node.op == "mul" and factors or node.op == "div" and see(node.args[1]).constant:
            where = see(factors[0]).interval.value
            if where.positive:
                sign *= 1
            elif where.hi < 0:
                sign *= -1
            else:
                sign *= 0
            node = opened(next(a for a in node.args if not see(a).constant))
        else:
            break
    return node, sign


def perspective_of(node: ir.Apply, y: Facts, g: Facts, see: See, key: Key, facts: Facts) -> Facts:
    """``y * g(x_1 / y, x_2 / y, ..)`` for an affine y > 0: jointly convex where g is convex, and
    non-decreasing in what is of a convex x that is not affine."""
    if not y.affine or y.interval.value.lo < 0 or facts.convex and facts.concave:
        return facts
    made: dict[int, tuple[ir.Hole, Facts]] = {}
    whole = _multiple(y.expr, see)[0]

    def cut(part: ir.Expr) -> ir.Expr | None:
        if not (
            isinstance(part, ir.Apply)
            and part.op == "div"
            and key(_multiple(part.args[1], see)[0]) == key(whole)
        ):
            return None
        if see(part.args[1]).interval.value.lo < 0:
            return None
        name = f"quotient {key(part)}"
        return made.setdefault(
            key(part), (ir.Hole(name=name, shape=part.shape, span=part.span), see(part.args[0]))
        )[0]

    outer = see(Rewriter(cut)(g.expr))
    parts = {hole.name: x for hole, x in made.values()}
    if not made or not outer.leaves.keys() <= parts.keys():
        return facts
    draft = Draft(expr=node, args=(y, g), leaves=facts.leaves, parts=facts.parts, domain=facts.domain)
    for kind, turned in (("below", outer), ("above", outer.negated())):
        if turned.convex and all(_carried(x, turned.leaves.get(name, 0)) for name, x in parts.items()):
            uses = [getattr(outer, kind), y.interval, *(x.below for x in parts.values())]
            said = f"{kind == 'below' and 'convex' or 'concave'} in what is divided by the positive factor"
            draft.propose(kind, ZERO, "perspective", said, uses)
    if draft.facts:
        return combine(facts, draft.finish())
    return facts


def _carried(x: Facts, sign: int) -> bool:
    """A convex function that is monotone in a numerator, by this sign, stays convex in its variables."""
    return x.affine or sign > 0 and x.convex or sign < 0 and x.concave


def shifted_square(node: ir.Apply, args: tuple[Facts, Facts], see: See, key: Key, facts: Facts) -> Facts:
    """``(r + a) (r + b)`` is ``(r + m)^2 - d^2`` with m = (a + b)/2 and d = (a - b)/2."""
    square = atoms.get("square")
    assert square is not None
    left, right = (_shifted(a.expr, see) for a in args)
    if (
        left is None
        or right is None
        or left[1] == right[1]
        and left[2] == right[2]
        or not alike(left[0], right[0], key)
    ):
        return facts
    core, sign = see(left[0]), left[1] * right[1]
    middle = (left[1] * left[2] + right[1] * right[2]) / 2
    if middle:
        moved = add(node, (core, number(node, middle)), (1, 1), 1.0)
    else:
        moved = core
    squared = radial(node, square, (moved,), compose(node, square, (moved,)))
    found = renamed(squared if sign > 0 else squared.negated(), "shifted square")
    return combine(facts, replace(found, interval=facts.interval, size=facts.size, domain=facts.domain))


def _shifted(node: ir.Expr, see: See) -> tuple[ir.Expr, int, float] | None:
    """(r, s, a) of ``s r + a`` for a sign s and a number a, all nested sums taken apart."""
    moving: list[tuple[int, ir.Expr]] = []
    total = 0.0
    for sign, term in _terms(node):
        facts = see(term)
        if not facts.constant:
            moving.append((sign, term))
        elif facts.interval.value.is_point:
            total += sign * facts.interval.value.lo
        else:
            return None
    if len(moving) == 1:
        return (moving[0][1], moving[0][0], total)
    return None


def _terms(node: ir.Expr) -> Iterator[tuple[int, ir.Expr]]:
    """The terms of a sum of sums, with their signs."""
    stack = [(1, node)]
    while stack:
        sign, part = stack.pop()
        part = opened(part)
        terms = atoms.signed(part)
        if terms is None:
            yield sign, part
        else:
            stack += [(sign * s, term) for s, term in terms]


# ---------------------------------------------------------------------------------- geometric means
def geometric_mean(
    node: ir.Apply, facts: Facts, see: See, key: Key, count: Callable[[ir.Set], float]
) -> Facts:
    """``prod g^p`` for concave g >= 0 and p >= 0 with sum at most 1, times a constant >= 0; sets have
    ``count`` elements."""
    if facts.concave or facts.constant:
        return facts
    bases: dict[int, tuple[Facts, float]] = {}
    for base, p in _powers(node, see, count):
        if base.constant and base.interval.value.lo >= 0:
            continue
        before = bases.get(key(base.expr), (base, 0.0))[1]
        bases[key(base.expr)] = base, before + p
    weights = [p for _, p in bases.values()]
    if not bases or min(weights) < 0 or sum(weights) > 1 + ROUNDING:
        return facts
    if not all(base.concave and base.interval.value.lo >= 0 for base, _ in bases.values()):
        return facts
    args = tuple(base for base, _ in bases.values())
    draft = Draft(expr=node, args=args, leaves=facts.leaves, parts=facts.parts, domain=facts.domain)
    uses = [fact for base, _ in bases.values() for fact in (base.above, base.interval)]
    draft.propose("above", ZERO, "geometric mean", f"its exponents add up to {sum(weights):.4g}", uses)
    return combine(facts, draft.finish())


def _powers(node: ir.Expr, see: See, count: Callable[[ir.Set], float]) -> Iterator[tuple[Facts, float]]:
    """The bases of a product, of powers, roots and products, over sets too, with their exponents; a
    part that several factors share (a ``let``) is taken apart once, with the sum of its exponents."""
    waiting: dict[int, tuple[ir.Expr, float]] = {}

    def add(part: ir.Expr, p: float) -> None:
        part = opened(part)
        waiting[id(part)] = part, p + waiting.get(id(part), (part, 0.0))[1]

    add(node, 1.0)
    while waiting:
        part, p = waiting.pop(next(iter(waiting)))
        atom, args = atoms.of(part), part.children
        if isinstance(part, ir.Apply) and part.op == "mul":
            for factor in args:
                add(factor, p)
        elif (
            isinstance(part, ir.Apply)
            and part.op == "div"
            and see(args[1]).constant
            and see(args[1]).interval.value.positive
        ):
            add(args[0], p)
        elif isinstance(part, ir.Reduce) and reductions.of(part).through_log is SUM:
            add(part.body, p * prod(count(binder.domain) for binder in part.binders))
        elif isinstance(part, ir.Apply) and atom is not None and (q := exponent(part, tuple(map(see, args)))):
            add(args[0], p * q)
        else:
            yield see(part), p
