"""Expansion of sums. Factors go to each term, terms without the draw leave the mean, equal draws
are joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fccomodel.core import ir
from fccomodel.library import atoms, reductions
from fccomodel.library.identities._base import Knowledge
from fccomodel.library.identities._equal import same_elements
from fccomodel.library.identities._written import gathered
from fccomodel.library.identities.averages import movable, renamed
from fccomodel.library.linear import LinearTerm, common, joined, terms, without


class Expansion:
    """The expansion of sums and means, of an expression's summands and of those inside its sums over sets.

    k (a + b) = k a + k b
    E[z] (a(z) + b) = E[z] a(z) + b
    E[z] a(z) + E[z] b(z) = E[z] (a(z) + b(z))
    """

    def __init__(self, known: Knowledge):
        self.known = known

    def __call__(self, expr: ir.Expr) -> ir.Expr:
        """The expanded expression; the same object if nothing changes."""
        expanded, changed = self.terms(expr)
        if changed:
            return joined(expanded, expr.span)
        return expr

    def terms(self, expr: ir.Expr) -> tuple[list[LinearTerm], bool]:
        """The terms of the sum, and whether they differ from those written."""
        flat = terms(expr)
        expanded: list[LinearTerm] = []
        changed = len(flat) != _written(expr)
        for term in flat:
            inner = self.inside(term)
            expanded += inner or [term]
            changed = changed or inner is not None
        shortened = gathered(_joined_sums(expanded), self.known)
        return shortened, changed or len(shortened) != len(expanded)

    def inside(self, term: LinearTerm) -> list[LinearTerm] | None:
        """A term that is a sum over a set, split from what does not depend on its elements.

        None if nothing can be split off.
        """
        node = term.core
        if not is_linear(node):
            return None
        assert isinstance(node, ir.Reduce)
        inner, changed = self.terms(node.body)
        apart = [t for t in inner if _leaves_mean(node, t)]
        rest = [t for t in inner if not _leaves_mean(node, t)]
        if not apart and not changed:
            return None
        out = [t.times(term.sign, term.factors) for t in apart]
        if rest:
            out.insert(0, _sum_over(node, rest).times(term.sign, term.factors))
        return out


def is_linear(node: ir.Expr) -> bool:
    """Whether a node is a sum or a mean of numbers over a set."""
    return (
        isinstance(node, ir.Reduce) and reductions.of(node).additive and not node.options and not node.shape
    )


def _written(expr: ir.Expr) -> int:
    """The number of summands as they are written. A part that is used twice counts twice."""
    counts: dict[int, int] = {}
    stack = [expr]
    while stack:
        node = stack[-1]
        parts = [part for _, part in atoms.signed(node) or ()]
        unknown = [part for part in parts if id(part) not in counts]
        if unknown:
            stack.extend(unknown)
            continue
        counts[id(node)] = sum(counts[id(part)] for part in parts) or 1
        stack.pop()
    return counts[id(expr)]


def _leaves_mean(node: ir.Reduce, term: LinearTerm) -> bool:
    """Whether a term leaves the mean because it does not depend on the draw."""
    return reductions.of(node).average and set(node.binders).isdisjoint(ir.free_binders(term.core))


def _sum_over(node: ir.Reduce, body: Sequence[LinearTerm]) -> LinearTerm:
    """The sum over a set of some terms, with their common factors outside."""
    factors = common([t.factors for t in body])
    sign = -1 if all(t.sign < 0 for t in body) else 1
    left = [replace(t, sign=sign * t.sign, factors=without(t.factors, factors)) for t in body]
    core = replace(node, body=joined(left, node.body.span))
    return LinearTerm(core=core, sign=sign, factors=factors, place=node.span)


def _joined_sums(summands: list[LinearTerm]) -> list[LinearTerm]:
    """Sums over the same elements, joined into one."""
    groups: list[list[LinearTerm]] = []
    heads: dict[tuple, list[list[LinearTerm]]] = {}
    for term in summands:
        node = term.core
        known: list[list[LinearTerm]] = []
        if isinstance(node, ir.Reduce) and is_linear(node):
            key = (node.kind, *(_key(b.domain) for b in node.binders))
            known = heads.setdefault(key, [])
        group = next((g for g in known if _same_draw(term, g[0])), None)
        if group is not None:
            group.append(term)
            continue
        groups.append([term])
        known.append(groups[-1])
    return [group[0] if len(group) == 1 else _merged(group) for group in groups]


def _key(domain: ir.Set) -> object:
    """What sets that may have the same elements share: the table of rows, or the name of a set."""
    if isinstance(domain, ir.RowSet):
        return domain.table
    return domain.name


def _same_draw(b: LinearTerm, a: LinearTerm) -> bool:
    """Whether the sum b may go over the elements of the sum a."""
    assert isinstance(a.core, ir.Reduce) and isinstance(b.core, ir.Reduce)
    return same_elements(a.core, b.core) is not None and movable(b.core)


def _merged(group: list[LinearTerm]) -> LinearTerm:
    """The joined sum, over the elements of the first."""
    first = group[0].core
    assert isinstance(first, ir.Reduce)
    body: list[LinearTerm] = []
    for term in group:
        node = term.core
        assert isinstance(node, ir.Reduce)
        if node is first:
            inner = node
        else:
            inner = renamed(node, first.binders, first.kind)
        body += [t.times(term.sign, term.factors) for t in terms(inner.body)]
    return _sum_over(first, body)
