"""Kinks under a density: an average over draws from a density smooths kinks that have probability 0."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fccomodel.core import ir
from fccomodel.library import atoms, distributions, reductions
from fccomodel.library.atoms import Interval
from fccomodel.structure.draft import FactsDraft
from fccomodel.structure.facts import Facts, combine

See = Callable[[ir.Expr], Facts]


def averaged(node: ir.Reduce, body: Facts, see: See, facts: Facts) -> Facts:
    """The facts of ``E[e ~ P] h(w, e)``, with differentiability if kinks have probability 0.

    The average is continuously differentiable if h is Lipschitz and, at any w, a draw meets a kink
    with probability 0.
    """
    if facts.smooth or body.smooth or node.condition is not None:
        return facts
    if not reductions.of(node).linear or not body.is_lipschitz or body.domain:
        return facts
    draws = [binder for binder in node.binders if _has_density(binder.domain, see)]
    if not draws:
        return facts
    kinks = _kinks(node.body, see)
    if not all(_has_probability_0(kink, draws, see) for kink in kinks):
        return facts
    names = ", ".join(binder.name for binder in draws)
    reason = f"the draws of {names} meet a kink with probability 0"
    draft = FactsDraft(expr=node, args=(body,), leaves=facts.leaves, parts=facts.parts, domain=facts.domain)
    draft.propose("differentiable", True, "kinks under a density", reason, [body.lipschitz])
    return combine(facts, draft.finish())


def _has_density(domain: ir.Set, see: See) -> bool:
    """Whether the set is a distribution with a density."""
    if not isinstance(domain, ir.Distribution):
        return False
    family = distributions.get(domain.family)
    if family is None:
        return False
    ranges = [see(argument).interval.value for argument in domain.args]
    return family.density(*ranges)


def _kinks(body: ir.Expr, see: See) -> list[ir.Expr]:
    """The operations in the body that may have a kink of their own."""
    kinks = []
    for node in ir.walk(body):
        if isinstance(node, ir.LetRef) or see(node).smooth or see(node).constant:
            continue
        atom = atoms.of(node) if isinstance(node, ir.Apply) else None
        if atom is None or node.shape:
            kinks.append(node)
            continue
        ranges = [see(child).interval.value for child in node.children]
        varying = tuple(not see(child).constant for child in node.children)
        if atom.gradient_lipschitz(*ranges, varying=varying) is None:
            kinks.append(node)
    return kinks


def _has_probability_0(node: ir.Expr, draws: list[ir.Binder], see: See) -> bool:
    """Whether the draws meet the node's kink with probability 0.

    This holds if the kink is at finitely many values of one number that changes with a draw at a rate
    that is never 0.
    """
    if not isinstance(node, ir.Apply) or node.shape:
        return False
    atom = atoms.of(node)
    if atom is None or not atom.bent:
        return False
    if atom.extreme:
        pairs = [(a, b) for k, a in enumerate(node.args) for b in node.args[:k]]
        return all(_moves(a, b, draws, see) for a, b in pairs)
    random_binders = set(draws)
    moving = [arg for arg in node.args if ir.variables_of(arg) or random_binders & set(ir.free_binders(arg))]
    return len(moving) == 1 and _moves(moving[0], None, draws, see)


def _moves(a: ir.Expr, b: ir.Expr | None, draws: list[ir.Binder], see: See) -> bool:
    """Whether ``a - b`` (a alone if b is None) changes with a draw at a rate that is never 0."""
    return any(_difference_moves(a, b, draw, see) for draw in draws)


def _difference_moves(a: ir.Expr, b: ir.Expr | None, draw: ir.Binder, see: See) -> bool:
    """Whether ``a - b`` (a alone if b is None) changes with this draw at a rate that is never 0."""
    first = _rate(a, draw, see)
    second: Interval | None = Interval.point(0.0)
    if b is not None:
        second = _rate(b, draw, see)
    if first is None or second is None:
        return False
    low = first.lo - second.hi
    high = first.hi - second.lo
    return low > 0 or high < 0


def _rate(node: ir.Expr, draw: ir.Binder, see: See) -> Interval | None:
    """The rate c if the expression is ``a(w) + c e`` in the draw e, as an interval, or None."""
    while isinstance(node, ir.LetRef):
        node = node.let.body
    if draw not in ir.free_binders(node):
        return Interval.point(0.0)
    if isinstance(node, ir.Element | ir.Column) and not node.shape:
        return Interval.point(1.0)
    terms = atoms.signed(node)
    if terms is not None:
        return _sum_of_rates(terms, draw, see)
    if isinstance(node, ir.Apply) and node.op in ("mul", "div") and not node.shape:
        return _scaled(node, draw, see)
    return None


def _sum_of_rates(terms: Iterable[tuple[float, ir.Expr]], draw: ir.Binder, see: See) -> Interval | None:
    """The rate of a sum of signed terms, or None if a term has none."""
    lows = []
    highs = []
    for sign, term in terms:
        rate = _rate(term, draw, see)
        if rate is None:
            return None
        if sign > 0:
            lows.append(rate.lo)
            highs.append(rate.hi)
        else:
            lows.append(-rate.hi)
            highs.append(-rate.lo)
    return Interval(sum(lows), sum(highs))


def _scaled(node: ir.Apply, draw: ir.Binder, see: See) -> Interval | None:
    """The rate of a product with, or a quotient by, a constant factor, or None."""
    orders = [node.args]
    if node.op == "mul":
        orders.append(node.args[::-1])
    for base, factor in orders:
        rate = _rate(base, draw, see)
        if rate is None or not see(factor).constant or ir.free_binders(factor):
            continue
        where = see(factor).interval.value
        if node.op == "div":
            keeps_sign = where.positive and rate.lo * rate.hi > 0
            return rate if keeps_sign else None
        ends = [a * b if a and b else 0.0 for a in rate[:2] for b in where[:2]]
        return Interval(min(ends), max(ends))
    return None
