"""Kinks under a density: an average over draws from a density smooths kinks that have probability 0."""

from __future__ import annotations

from collections.abc import Callable

from fccomodel.core import ir
from fccomodel.library import atoms, distributions, reductions
from fccomodel.library.atoms import Interval
from fccomodel.structure.draft import Draft
from fccomodel.structure.facts import Facts, combine

See = Callable[[ir.Expr], Facts]


def averaged(node: ir.Reduce, body: Facts, see: See, facts: Facts) -> Facts:
    """The facts of ``E[e ~ P] h(w, e)``, with differentiability if kinks have probability 0.

    The average is continuously differentiable if h is Lipschitz and, at any w, a draw meets a kink
    with probability 0.
    """
    draws = [b for b in node.binders if _has_density(b.domain, see)]
    if facts.smooth or body.smooth or node.condition is not None:
        return facts
    if not draws or not reductions.of(node).linear or not body.is_lipschitz or body.domain:
        return facts
    if not all(_has_probability_0(part, draws, see) for part in _kinks(node.body, see)):
        return facts
    draft = Draft(expr=node, args=(body,), leaves=facts.leaves, parts=facts.parts, domain=facts.domain)
    reason = f"the draws of {', '.join(b.name for b in draws)} meet a kink with probability 0"
    draft.propose("differentiable", True, "kinks under a density", reason, [body.lipschitz])
    return combine(facts, draft.finish())


def _has_density(domain: ir.Set, see: See) -> bool:
    """Whether the set is a distribution with a density."""
    if not isinstance(domain, ir.Distribution):
        return False
    known = distributions.get(domain.family)
    return known is not None and known.density(*(see(argument).interval.value for argument in domain.args))


def _kinks(body: ir.Expr, see: See) -> list[ir.Expr]:
    """The operations in the body that may have a kink of their own."""
    kinks = []
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
            kinks.append(node)
    return kinks


def _has_probability_0(node: ir.Expr, draws: list[ir.Binder], see: See) -> bool:
    """Whether the draws meet the node's kink with probability 0.

    This holds if the kink is at finitely many values of one number that changes with a draw at a rate
    that is never 0.
    """
    atom = atoms.of(node)
    if atom is None or not isinstance(node, ir.Apply) or node.shape or not atom.bent:
        return False
    moving = [a for a in node.args if ir.variables_of(a) or any(b in draws for b in ir.free_binders(a))]
    if atom.extreme:
        pairs = [(a, b) for k, a in enumerate(node.args) for b in node.args[:k]]
        return all(any(_difference_moves(a, b, draw, see) for draw in draws) for a, b in pairs)
    return len(moving) == 1 and any(_difference_moves(moving[0], None, draw, see) for draw in draws)


def _difference_moves(a: ir.Expr, b: ir.Expr | None, draw: ir.Binder, see: See) -> bool:
    """Whether ``a - b`` (a alone if b is None) changes with the draw at a rate that is never 0."""
    first = _rate(a, draw, see)
    second = Interval.point(0.0) if b is None else _rate(b, draw, see)
    if first is None or second is None:
        return False
    low, high = first.lo - second.hi, first.hi - second.lo
    return low > 0 or high < 0


def _rate(node: ir.Expr, draw: ir.Binder, see: See) -> Interval | None:
    """The rate c if the expression is ``a(w) + c e`` in the draw e, as an interval, or None."""
    while isinstance(node, ir.LetRef):
        node = node.let.body
    if draw not in ir.free_binders(node):
        return Interval.point(0.0)
    if isinstance(node, ir.Element | ir.Column) and not node.shape:
        return Interval.point(1.0)
    if (terms := atoms.signed(node)) is not None:
        ends = []
        for sign, term in terms:
            rate = _rate(term, draw, see)
            if rate is None:
                return None
            ends.append((rate.lo, rate.hi) if sign > 0 else (-rate.hi, -rate.lo))
        return Interval(sum(lo for lo, _ in ends), sum(hi for _, hi in ends))
    if isinstance(node, ir.Apply) and node.op in ("mul", "div") and not node.shape:
        return _scaled(node, draw, see)
    return None


def _scaled(node: ir.Apply, draw: ir.Binder, see: See) -> Interval | None:
    """The rate of a product with, or a quotient by, a constant factor, or None."""
    order = (node.args, node.args[::-1]) if node.op == "mul" else (node.args,)
    for base, factor in order:
        rate = _rate(base, draw, see)
        if rate is None or not see(factor).constant or ir.free_binders(factor):
            continue
        where = see(factor).interval.value
        if node.op == "div":
            if where.positive and rate.lo * rate.hi > 0:
                return rate
            return None
        ends = [a * b if a and b else 0.0 for a in rate[:2] for b in where[:2]]
        return Interval(min(ends), max(ends))
    return None
