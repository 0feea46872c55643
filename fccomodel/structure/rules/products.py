"""Products and powers whose factors share parts: entropies, perspectives, hidden squares, geometric means."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import prod

from fccomodel.core import ir
from fccomodel.core.rewrite import Rewriter, substitute
from fccomodel.library import atoms, reductions
from fccomodel.library.amounts import ZERO
from fccomodel.library.reductions.sum import SUM
from fccomodel.structure.draft import FactsDraft
from fccomodel.structure.facts import Facts, combine
from fccomodel.structure.rules.arithmetic import add, renamed
from fccomodel.structure.rules.compose import compose
from fccomodel.structure.rules.whole import exponent, number, radial

See = Callable[[ir.Expr], Facts]
Key = Callable[[ir.Expr], int]
#: sums of exponents within this distance of 1 count as 1: a value changes by at most its own rounding
ROUNDING = 1e-15


def opened(node: ir.Expr) -> ir.Expr:
    """The expression behind the names that ``let`` gives it."""
    while isinstance(node, ir.LetRef):
        node = node.let.body
    return node


# ----------------------------------------------------------------------------------- equal in value
def alike(a: ir.Expr, b: ir.Expr, key: Key) -> bool:
    """Whether two expressions have the same value.

    Reductions over one set are alike even if their binders have different names.
    """
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
    """The pairs of parts that must be alike for two expressions to be alike, or None if they are not."""
    if isinstance(a, ir.Reduce) and isinstance(b, ir.Reduce):
        if a.kind == b.kind and _same_sets(a, b):
            return _inside(a, b)
        return None
    if isinstance(a, ir.Apply) and isinstance(b, ir.Apply):
        if a.op == b.op and len(a.args) == len(b.args):
            return list(zip(a.args, b.args, strict=True))
    return None


def _same_sets(a: ir.Reduce, b: ir.Reduce) -> bool:
    """Whether two reductions go over the same sets."""
    if len(a.binders) != len(b.binders):
        return False
    pairs = zip(a.binders, b.binders, strict=True)
    return all(x.kind == y.kind and same_set(x.domain, y.domain) for x, y in pairs)


def same_set(a: ir.Set, b: ir.Set) -> bool:
    """Whether two sets are one object, or both all rows of one table."""
    if a is b:
        return True
    if not isinstance(a, ir.RowSet) or not isinstance(b, ir.RowSet):
        return False
    return a.table == b.table and a.where is None and b.where is None


def _inside(a: ir.Reduce, b: ir.Reduce) -> list[tuple[ir.Expr, ir.Expr]] | None:
    """The pairs of bodies, options and conditions of two reductions over the same sets.

    The binders of b are replaced by those of a. None is returned if only one has a condition or an option.
    """
    if (a.condition is None) != (b.condition is None):
        return None
    if a.options.keys() != b.options.keys():
        return None
    pairs = [(a.body, b.body)]
    for name, option in a.options.items():
        pairs.append((option, b.options[name]))
    if a.condition is not None and b.condition is not None:
        pairs.append((a.condition, b.condition))
    binders_of_a = {}
    for of_a, of_b in zip(a.binders, b.binders, strict=True):
        binders_of_a[of_b] = ir.Element(binder=of_a)
    return [(x, substitute(y, binders_of_a)) for x, y in pairs]


# ----------------------------------------------------------------------------------------- products
def product_of(node: ir.Apply, args: tuple[Facts, Facts], see: See, key: Key, facts: Facts) -> Facts:
    """The facts of a product of two varying numbers, improved by what its factors share."""
    facts = entropy(node, args, see, key, facts)
    for y, g in (args, args[::-1]):
        facts = perspective_of(node, y, g, see, key, facts)
    return shifted_square(node, args, see, key, facts)


def is_logarithm(node: ir.Expr) -> bool:
    """Whether the node is ``log`` of an expression."""
    node = opened(node)
    return isinstance(node, ir.Apply) and node.op == "log"


def entropy(
    node: ir.Apply,
    args: tuple[Facts, Facts],
    see: See,
    key: Key,
    facts: Facts,
    entries: float = 1.0,
) -> Facts:
    """The facts of ``c * log(k c)`` for a constant k > 0; of arrays, entry by entry.

    Up to a multiple of c it is the negative of an entropy, with a kink at 0.
    """
    entr = atoms.get("entr")
    assert entr is not None
    for c, logarithm in (args, args[::-1]):
        log = opened(logarithm.expr)
        if not c.affine or not isinstance(log, ir.Apply) or log.op != "log":
            continue
        core, sign = _multiple(c.expr, see)
        inside, positive = _multiple(log.args[0], see)
        if not sign or positive <= 0 or not alike(core, inside, key):
            continue
        size = c if sign > 0 else c.negated()
        by_entropy = compose(node, entr, (replace(size, expr=c.expr),), (entries,), entries)
        if sign > 0:
            by_entropy = by_entropy.negated()
        by_entropy = renamed(by_entropy, "entropy")
        kinds = ("below", "above", "differentiable", "gradient")
        return facts.with_facts({kind: getattr(by_entropy, kind) for kind in kinds})
    return facts


def _multiple(node: ir.Expr, see: See) -> tuple[ir.Expr, int]:
    """(r, s) if the node is a constant multiple of r; s is the sign of the constant, 0 if it is not known."""
    node = opened(node)
    sign = 1
    while isinstance(node, ir.Apply) and not see(node).constant:
        if node.op == "neg":
            sign = -sign
            node = opened(node.args[0])
            continue
        factors = [arg for arg in node.args if see(arg).constant]
        is_product = node.op == "mul" and bool(factors)
        is_quotient = node.op == "div" and see(node.args[1]).constant
        if not is_product and not is_quotient:
            break
        where = see(factors[0]).interval.value
        if where.hi < 0:
            sign = -sign
        elif not where.positive:
            sign = 0
        node = opened(next(arg for arg in node.args if not see(arg).constant))
    return node, sign


def perspective_of(node: ir.Apply, y: Facts, g: Facts, see: See, key: Key, facts: Facts) -> Facts:
    """The facts of ``y * g(x_1 / y, x_2 / y, ..)`` for an affine y > 0.

    It is jointly convex if g is convex and every x_k is affine, or convex with g non-decreasing in
    it, or concave with g non-increasing in it.
    """
    if not y.affine or y.interval.value.lo < 0:
        return facts
    is_affine = facts.convex and facts.concave
    if is_affine or "div" not in ir.contents(g.expr):
        return facts
    quotients: dict[int, tuple[ir.Hole, Facts]] = {}
    divisor, _ = _multiple(y.expr, see)

    def to_hole(part: ir.Expr) -> ir.Expr | None:
        """The hole that replaces a quotient by a positive multiple of y, or None for anything else."""
        if not isinstance(part, ir.Apply) or part.op != "div":
            return None
        numerator, denominator = part.args
        own_divisor, _ = _multiple(denominator, see)
        lowest = see(denominator).interval.value.lo
        if key(own_divisor) != key(divisor) or lowest < 0:
            return None
        fresh = ir.Hole(name=f"quotient {key(part)}", shape=part.shape, span=part.span)
        hole, _ = quotients.setdefault(key(part), (fresh, see(numerator)))
        return hole

    outer = see(Rewriter(to_hole)(g.expr))
    numerators = {hole.name: x for hole, x in quotients.values()}
    if not quotients or not outer.leaves.keys() <= numerators.keys():
        return facts
    draft = FactsDraft(expr=node, args=(y, g), leaves=facts.leaves, parts=facts.parts, domain=facts.domain)
    for kind, word, f in (("below", "convex", outer), ("above", "concave", outer.negated())):
        if not f.convex:
            continue
        if all(_stays_convex(x, f.leaves.get(name, 0)) for name, x in numerators.items()):
            curvatures = [x.below for x in numerators.values()]
            uses = [getattr(outer, kind), y.interval, *curvatures]
            reason = f"{word} in what is divided by the positive factor"
            draft.propose(kind, ZERO, "perspective", reason, uses)
    if draft.facts:
        return combine(facts, draft.finish())
    return facts


def _stays_convex(x: Facts, sign: int) -> bool:
    """Whether a convex function with this sign of monotonicity in x is convex in the variables of x."""
    return x.affine or sign > 0 and x.convex or sign < 0 and x.concave


def shifted_square(node: ir.Apply, args: tuple[Facts, Facts], see: See, key: Key, facts: Facts) -> Facts:
    """The facts of ``(r + a) (r + b)``: it is ``(r + m)^2 - d^2`` with m = (a + b)/2 and d = (a - b)/2."""
    square = atoms.get("square")
    assert square is not None
    left, right = (_shifted(factor.expr, see) for factor in args)
    if left is None or right is None:
        return facts
    r, left_sign, a = left
    other, right_sign, b = right
    same_shift = (left_sign, a) == (right_sign, b)
    if same_shift or not alike(r, other, key):
        return facts
    shifted = see(r)
    middle = (left_sign * a + right_sign * b) / 2
    if middle:
        shifted = add(node, (shifted, number(node, middle)), (1, 1), 1.0)
    squared = radial(node, square, (shifted,), compose(node, square, (shifted,)))
    if left_sign * right_sign < 0:
        squared = squared.negated()
    squared = renamed(squared, "shifted square")
    of_square = replace(squared, interval=facts.interval, size=facts.size, domain=facts.domain)
    return combine(facts, of_square)


def _shifted(node: ir.Expr, see: See) -> tuple[ir.Expr, int, float] | None:
    """(r, s, a) if the node is ``s r + a`` for a sign s and a number a, through nested sums, or None."""
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
    if len(moving) != 1:
        return None
    sign, core = moving[0]
    return core, sign, total


def _terms(node: ir.Expr) -> Iterator[tuple[int, ir.Expr]]:
    """The terms of nested sums, with their signs."""
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
    """The facts of ``prod g^p`` for concave g >= 0 and p >= 0 with sum at most 1, times a constant >= 0.

    ``count`` gives the number of elements of a set.
    """
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
    draft = FactsDraft(expr=node, args=args, leaves=facts.leaves, parts=facts.parts, domain=facts.domain)
    uses = []
    for base, _ in bases.values():
        uses += [base.above, base.interval]
    draft.propose("above", ZERO, "geometric mean", f"its exponents add up to {sum(weights):.4g}", uses)
    return combine(facts, draft.finish())


def _powers(node: ir.Expr, see: See, count: Callable[[ir.Set], float]) -> Iterator[tuple[Facts, float]]:
    """The bases of a product with their exponents, through powers, roots, quotients and products over sets.

    A part that several factors share (a ``let``) is visited once, with the sum of its exponents.
    """
    waiting: dict[int, tuple[ir.Expr, float]] = {}

    def add(part: ir.Expr, p: float) -> None:
        """Add p to the exponent of a part that waits."""
        part = opened(part)
        _, so_far = waiting.get(id(part), (part, 0.0))
        waiting[id(part)] = (part, p + so_far)

    add(node, 1.0)
    while waiting:
        first = next(iter(waiting))
        part, p = waiting.pop(first)
        args = part.children
        match part:
            case ir.Apply(op="mul"):
                for factor in args:
                    add(factor, p)
            case ir.Apply(op="div") if see(args[1]).constant and see(args[1]).interval.value.positive:
                add(args[0], p)
            case ir.Reduce() if reductions.of(part).through_log is SUM:
                factors = prod(count(binder.domain) for binder in part.binders)
                add(part.body, p * factors)
            case ir.Apply() if atoms.of(part) and (q := exponent(part, tuple(map(see, args)))):
                add(args[0], p * q)
            case _:
                yield see(part), p
