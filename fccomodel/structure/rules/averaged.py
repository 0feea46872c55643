"""Kinks under a density: an average over draws of which no value has a probability of its own passes
over them."""

from __future__ import annotations

from collections.abc import Callable

from fccomodel.core import ir
from fccomodel.library import atoms, distributions, reductions
from fccomodel.library.atoms import Interval
from fccomodel.structure.draft import Draft
from fccomodel.structure.facts import Facts, combine

See = Callable[[ir.Expr], Facts]


def averaged(node: ir.Reduce, body: Facts, see: See, facts: Facts) -> Facts:
    """``E[e ~ P] h(w, e)`` is continuously differentiable where h is Lipschitz and, at any w, has a
    kink with probability 0."""
    draws = [b for b in node.binders if _continuous(b.domain, see)]
    if (
        facts.smooth
        or body.smooth
        or node.condition is not None
        or not reductions.of(node).linear
        or not draws
    ):
        return facts
    if (
        not body.is_lipschitz
        or body.domain
        or not all(_passed(part, draws, see) for part in _kinks(node.body, see))
    ):
        return facts
    draft = Draft(expr=node, args=(body,), leaves=facts.leaves, parts=facts.parts, domain=facts.domain)
    reason = f"the draws of {', '.join(b.name for b in draws)} meet a kink with probability 0"
    draft.propose("differentiable", True, "kinks under a density", reason, [body.lipschitz])
    return combine(facts, draft.finish())


def _continuous(domain: ir.Set, see: See) -> bool:
    if not isinstance(domain, ir.Distribution):
        return False
    known = distributions.get(domain.family)
    return known is not None and known.density(*(see(argument).interval.value for argument in domain.args))


def _kinks(body: ir.Expr, see: See) -> list[ir.Expr]:
    """The operations that have a kink of their own, whether or not what they are made of has others."""
    found = []
    for node in ir.walk(body):
        if isinstance(node, ir.LetRef) or see(node).smooth or see(node).constant:
            continue
        if isinstance(node, ir.Apply):
            atom = atoms.of(node)
        else:
            atom = None
        where = [see(child).interval.value for child in node.children]
        varying = tuple(not see(child).constant for child in node.children)
        if atom is None or node.shape or atom.gradient_lipschitz(*where, varying=varying) is None:
            found.append(node)
    return found


def _passed(node: ir.Expr, draws: list[ir.Binder], see: See) -> bool:
    """A kink at finitely many values of one number that moves with a draw, at a rate that is constant
    and not 0."""
    atom = atoms.of(node)
    if atom is None or not isinstance(node, ir.Apply) or node.shape or not atom.bent:
        return False
    moving = [a for a in node.args if ir.variables_of(a) or any(b in draws for b in ir.free_binders(a))]
    if atom.extreme:
        pairs = [(a, b) for k, a in enumerate(node.args) for b in node.args[:k]]
        return all(any(_apart(a, b, draw, see) for draw in draws) for a, b in pairs)
    return len(moving) == 1 and any(_apart(moving[0], None, draw, see) for draw in draws)


def _apart(a: ir.Expr, b: ir.Expr | None, draw: ir.Binder, see: See) -> bool:
    """The difference of two numbers moves with a draw at a rate that is constant and not 0."""
    first, second = _rate(a, draw, see), Interval.point(0.0) if b is None else _rate(b, draw, see)
    if first is None or second is None:
        return False
    low, high = first.lo - second.hi, first.hi - second.lo
    return low > 0 or high < 0


def _rate(node: ir.Expr, draw: ir.Binder, see: See) -> Interval | None:
    """The rate at which an expression moves with a draw, where it is one of the draw alone: of ``a(w)
    + c e``, c."""
    while isinstance(node, ir.LetRef):
        node = node.let.body
    if draw not in ir.free_binders(node):
        return Interval.point(0.0)
    if isinstance(node, ir.Element | ir.Column) and not node.shape:
        return Interval.point(1.0)
    if (terms := atoms.signed(node)) is not None:
        rates = [(sign, _rate(term, draw, see)) for sign, term in terms]
        ends = [(r.lo, r.hi) if sign > 0 else (-r.hi, -r.lo) for sign, r in rates if r is not None]
        if len(ends) == len(rates):
            return Interval(sum(lo for lo, _ in ends), sum(hi for _, hi in ends))
        return None
    if isinstance(node, ir.Apply) and node.op in ("mul", "div") and not node.shape:
        return _scaled(node, draw, see)
    return None


def _scaled(node: ir.Apply, draw: ir.Binder, see: See) -> Interval | None:
    """The rate of a multiple of what moves at a constant rate by a constant."""
    order = (node.args, node.args[::-1]) if node.op == "mul" else (node.args,)
    for base, factor in order:
        rate, by = _rate(base, draw, see), see(factor)
        if rate is None or not by.constant or ir.free_binders(factor):
            continue
        where = by.interval.value
        if node.op == "div":
            return rate if where.positive and rate.lo * rate.hi > 0 else None
        ends = [a * b if a and b else 0.0 for a in rate[:2] for b in where[:2]]
        return Interval(min(ends), max(ends))
    return None
