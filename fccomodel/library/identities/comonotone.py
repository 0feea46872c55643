"""A mean of tail means whose elements all have the same order is a tail mean of means.

A tail mean weighs its elements by their order. If the order is the same for every i, so are the
weights (comonotonic additivity: Dellacherie, Quelques commentaires sur les prolongements de
capacités, 1971). An example are losses ``l(s(p) - s(n))`` of pairs: for every positive row the
worst negative rows are those with the largest scores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fccomodel.core import ir
from fccomodel.library import atoms, reductions
from fccomodel.library.atoms import ScalarAtom
from fccomodel.library.identities._base import Identity, Knowledge
from fccomodel.library.identities.averages import movable, renamed
from fccomodel.library.identities.nesting import independent
from fccomodel.library.linear import is_number as fixed
from fccomodel.library.linear import sides, single

#: what a monotone atom does to a direction
TURNS = {"increasing": 1, "decreasing": -1, "constant": 0}


def _apply(node: ir.Expr, known: Knowledge) -> ir.Expr | None:
    if not isinstance(node, ir.Reduce) or node.shape or not reductions.of(node).linear or not movable(node):
        return None
    inner = node.body  # without factors: those are outside already (``homogeneity``)
    if (
        not isinstance(inner, ir.Reduce)
        or not reductions.of(inner).comonotone
        or not independent(node, inner)
    ):
        return None
    if not movable(inner) or not all(fixed(option) for option in inner.options.values()):
        return None
    if any(isinstance(b.domain, ir.Distribution) for b in inner.binders):  # drawn, never listed
        return None
    if not _Order(known, frozenset(inner.binders), frozenset(node.binders)).shared(inner.body):
        return None
    listed = tuple(replace(b, kind="in") for b in inner.binders)
    mean = replace(node, body=inner.body, span=inner.body.span)
    tail = renamed(replace(inner, body=mean), listed, inner.kind)
    return replace(tail, span=node.span)


@dataclass(eq=False)
class _Order:
    """The search for a common order of a reduction's elements.

    All elements (by the binders ``own``) must be monotone, in one direction for all elements
    ``around``, in one number that the own binders alone decide.
    """

    known: Knowledge
    own: frozenset[ir.Binder]
    around: frozenset[ir.Binder]
    by: ir.Expr | None = None

    def shared(self, body: ir.Expr) -> bool:
        """Whether there is a common order, and the elements are not the same anyway."""
        free = frozenset(ir.free_binders(body))
        return (
            not free.isdisjoint(self.own)
            and not free.isdisjoint(self.around)
            and self.direction(body) is not None
        )

    def direction(self, node: ir.Expr) -> int | None:
        """1 if never decreasing in the number, -1 if never increasing, 0 if independent, None if
        unknown."""
        free = frozenset(ir.free_binders(node))
        if free.isdisjoint(self.own):
            return 0
        if free <= self.own:
            return self.number(node)
        if (parts := atoms.signed(node)) is not None:
            return _together([(self.direction(part), sign) for sign, part in parts])
        if (split := sides(node, self.own, ir.free_binders)) is not None:
            if split[1] is None:
                return None
            return self.number(split[1])
        turns = self.turns(node)
        if turns is None:
            return None
        return _together([(self.direction(arg), turn) for arg, turn in turns])

    def turns(self, node: ir.Expr) -> list[tuple[ir.Expr, int | None]] | None:
        """The arguments of a scalar function with its direction (1, -1, 0 or None) in each; None
        for another node."""
        atom = atoms.of(node)
        if not isinstance(atom, ScalarAtom) or not isinstance(node, ir.Apply):
            return None
        intervals = [self.known.where(arg) for arg in node.args]
        return [(arg, TURNS.get(atom.monotone(*intervals, argument=k))) for k, arg in enumerate(node.args)]

    def number(self, node: ir.Expr) -> int | None:
        """The direction of a monotone function of the number; the first such function decides the
        number."""
        direction = 1
        while True:
            term = single(node)
            if node.shape or not all(self.known.where(by).positive for _, by in term.factors):
                return None
            direction *= term.sign
            inside = [(arg, turn) for arg, turn in self.turns(term.core) or () if ir.free_binders(arg)]
            if len(inside) != 1 or not inside[0][1]:
                break
            node, direction = inside[0][0], direction * inside[0][1]
        if self.by is None:
            self.by = term.core
        if ir.same(self.by, term.core):
            return direction
        return None


def _together(parts: list[tuple[int | None, int | None]]) -> int | None:
    """The direction of a function of several arguments, from theirs and from its direction in
    each."""
    ways = {None if way is None or turn is None else way * turn for way, turn in parts if way != 0} - {0}
    if not ways:
        return 0
    if len(ways) == 1:
        return ways.pop()
    return None


comonotone_tails = Identity(
    name="comonotone_tails",
    formula="mean[i in I] R[j in J] h_i(t_j) = R[j in J] mean[i in I] h_i(t_j) for R = cvar, topk, max, "
    "min, where all h_i "
    "increase (or all decrease); sum and E alike",
    apply=_apply,
)
