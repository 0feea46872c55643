"""Means over pairs as functions of means over single rows: exact, and a pass over n and m rows costs
O(n + m), not O(n m).

With a of anything but the reduced element q, b of q alone, and E over q:

    E (a + b)        = a + E b                       E a b            = a E b
    E exp(a + b)     = exp(a + L)                    logmeanexp (a + b) = a + L          with L = logmeanexp b
    E c exp(a + b)   = exp(a + L) E c exp(b - L)     with c of q alone
    E (a + b)^2      = (a + m)^2 + E (b - m)^2       with m = E b
    E f(a + b)       for f piecewise quadratic: from the sums of 1, b and b^2 over the sorted b
                     between the kinks of f

and sums, and sums of such bodies, likewise. Where keys or an order tie the elements to an outer
row, means of b are cumulative sums over the rows in that order, and those of f(a + b) come from
blocks of 2^l of them, sorted: O(n log^2 n).

Exponentials are taken of a + L alone, so that nothing overflows that the mean itself does not;
squares are centred, so that nothing cancels. Other products of sums of a and b are left alone:
expanded, they would.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from fccomodel.core import ir
from fccomodel.core.rewrite import apply as make
from fccomodel.core.rewrite import conjunction, conjuncts, const
from fccomodel.evaluation.sets import selections
from fccomodel.evaluation.sets.selections import Selection
from fccomodel.library import reductions
from fccomodel.library.reductions.logsumexp import LOGSUMEXP
from fccomodel.library.reductions.sum import SUM
from fccomodel.normal_form.separation._row import PiecewiseMean, Row

__all__ = ["PiecewiseMean", "Separation"]


class Separation:
    """The separated forms of one problem's reductions. Asking twice for a node gives the same form.

    constant  the value of a subexpression that no variable and no row enters
    free      the binders that an expression depends on
    """

    def __init__(
        self,
        constant: Callable[[ir.Expr], float | None],
        free: Callable[[ir.Expr], tuple[ir.Binder, ...]] = ir.free_binders,
    ):
        self.constant, self.free = constant, free
        self.forms: dict[int, tuple[ir.Reduce, ir.Expr | None]] = {}

    def form(self, node: ir.Reduce) -> ir.Expr | None:
        """An expression of the same value without pairs of its rows, or None where there is none (or
        there are no pairs)."""
        if id(node) not in self.forms:
            self.forms[id(node)] = (node, self._form(node))
        return self.forms[id(node)][1]

    def _form(self, node: ir.Reduce) -> ir.Expr | None:
        if not _separable(node):
            return None
        if len(node.binders) > 1:
            return self._one_by_one(node)
        (part,) = selections.split(node.binders, node.condition)
        rows = all(isinstance(p.domain, ir.RowSet) for p in part.parents)
        if part.masks or part.excludes or not rows:
            return None
        return Row(node, self.constant, self.free, conditional=bool(part.parents)).mean(node.body)

    def run(self, node: ir.Reduce) -> Selection | None:
        """The selection of a reduction of a function of one row, over the rows with the keys of outer
        rows or on one side of them in an order: cumulative sums over the sorted rows are all that
        it takes. None for one of another form."""
        if not _separable(node) or len(node.binders) > 1:
            return None
        (part,) = selections.split(node.binders, node.condition)
        rows = bool(part.parents) and all(isinstance(p.domain, ir.RowSet) for p in part.parents)
        alone = set(self.free(node.body)) <= {part.binder}
        return part if rows and alone and not part.excludes and not part.masks else None

    def sorts(self, node: ir.Reduce) -> bool:
        """Its form needs the rows in order."""
        parts = ir.walk(self.form(node) or node)
        return any(
            isinstance(part, PiecewiseMean) or isinstance(part, ir.Reduce) and self.run(part)
            for part in parts
        )

    def _one_by_one(self, node: ir.Reduce) -> ir.Expr | None:
        """Binders one after another, the innermost separated; where their elements depend on one
        another, a sum over the number of its terms."""
        binders = node.binders
        if node.options:
            return None
        related = any(
            p in binders for part in selections.split(binders, node.condition) for p in part.parents
        )
        kind = reductions.of(node)
        if related and not kind.total:
            log = kind.logarithmic
            total = (LOGSUMEXP if log else SUM).over(node)
            whole, count = (
                self.form(total),
                self.form(dataclasses.replace(total, body=const(0.0 if log else 1.0))),
            )
            if whole is None or count is None:
                return None
            return make("sub" if log else "div", whole, count)
        conditions = conjuncts(node.condition)
        for last in reversed(binders):
            within = [c for c in conditions if last in self.free(c)]
            inner = dataclasses.replace(node, binders=(last,), condition=conjunction(within))
            separated = self.form(inner) or (inner if self.run(inner) else None)
            if separated is not None:
                rest, around = (
                    tuple(b for b in binders if b is not last),
                    conjunction(c for c in conditions if c not in within),
                )
                outer = dataclasses.replace(node, binders=rest, body=separated, condition=around)
                return self.form(outer) or outer
        return None


def _separable(node: ir.Reduce) -> bool:
    """A mean or a sum of numbers, or the logarithm of one of exponentials, over elements that are listed."""
    kind = reductions.of(node)
    of_sums = kind.additive or kind.logarithmic
    return (
        of_sums
        and not node.shape
        and "theta" not in node.options
        and all(map(selections.listed, node.binders))
    )
