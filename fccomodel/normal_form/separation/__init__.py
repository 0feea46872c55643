"""Means over pairs of rows as exact functions of means over single rows.

A pass over n and m rows then costs O(n + m) instead of O(n m). Let E be the mean over an element q,
let a not depend on q, and let b depend on q alone:

    E (a + b)        = a + E b                       E a b            = a E b
    E exp(a + b)     = exp(a + L)                    logmeanexp (a + b) = a + L          with L = logmeanexp b
    E c exp(a + b)   = exp(a + L) E c exp(b - L)     if c depends on q alone
    E (a + b)^2      = (a + m)^2 + E (b - m)^2       with m = E b
    E f(a + b)       for f piecewise quadratic: from the sums of 1, b and b^2 over the sorted b
                     between the kinks of f

The same holds for sums instead of means, and for sums of such bodies. If keys or an order tie the
elements to an outer row, means of b are cumulative sums over the rows in that order, and means of
f(a + b) come from sorted blocks of 2^l rows: O(n log^2 n).

Only a + L is exponentiated, so that nothing overflows unless the mean itself does. Squares are
centred, so that nothing cancels. Other products of sums of a and b are not expanded, because their
terms would cancel.
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
from fccomodel.normal_form.separation._row import PiecewiseMean, RowReduction

__all__ = ["PiecewiseMean", "Separation"]


class Separation:
    """The separated forms of one problem's reductions; a node's form is computed once.

    constant  gives the value of a subexpression without variables and rows
    free      gives the binders that an expression depends on
    """

    def __init__(
        self,
        constant: Callable[[ir.Expr], float | None],
        free: Callable[[ir.Expr], tuple[ir.Binder, ...]] = ir.free_binders,
    ):
        self.constant, self.free = constant, free
        self.forms: dict[int, tuple[ir.Reduce, ir.Expr | None]] = {}

    def form(self, node: ir.Reduce) -> ir.Expr | None:
        """An expression of the same value without pairs of rows, or None.

        None is also returned if the node has no pairs.
        """
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
        return RowReduction(node, self.constant, self.free, conditional=bool(part.parents)).mean(node.body)

    def run(self, node: ir.Reduce) -> Selection | None:
        """The selection of a reduction that cumulative sums over sorted rows compute, or None.

        Its body is a function of one row. It goes over the rows with the keys of outer rows, or on one
        side of them in an order.
        """
        if not _separable(node) or len(node.binders) > 1:
            return None
        (part,) = selections.split(node.binders, node.condition)
        rows = bool(part.parents) and all(isinstance(p.domain, ir.RowSet) for p in part.parents)
        alone = set(self.free(node.body)) <= {part.binder}
        if rows and alone and not part.excludes and not part.masks:
            return part
        return None

    def sorts(self, node: ir.Reduce) -> bool:
        """Whether the node's separated form needs the rows in order."""
        parts = ir.walk(self.form(node) or node)
        return any(
            isinstance(part, PiecewiseMean) or isinstance(part, ir.Reduce) and self.run(part)
            for part in parts
        )

    def _one_by_one(self, node: ir.Reduce) -> ir.Expr | None:
        """Separate a reduction over several binders, the last possible binder first."""
        binders = node.binders
        if node.options:
            return None
        related = any(
            p in binders for part in selections.split(binders, node.condition) for p in part.parents
        )
        kind = reductions.of(node)
        if related and not kind.total:
            log = kind.logarithmic
            sum_node = (LOGSUMEXP if log else SUM).over(node)
            total = self.form(sum_node)
            count = self.form(dataclasses.replace(sum_node, body=const(0.0 if log else 1.0)))
            if total is None or count is None:
                return None
            return make("sub" if log else "div", total, count)
        conditions = conjuncts(node.condition)
        for last in reversed(binders):
            within = [c for c in conditions if last in self.free(c)]
            inner = dataclasses.replace(node, binders=(last,), condition=conjunction(within))
            separated = self.form(inner)
            if separated is None and self.run(inner):
                separated = inner
            if separated is not None:
                rest = tuple(b for b in binders if b is not last)
                around = conjunction(c for c in conditions if c not in within)
                outer = dataclasses.replace(node, binders=rest, body=separated, condition=around)
                return self.form(outer) or outer
        return None


def _separable(node: ir.Reduce) -> bool:
    """Whether the node is a mean or sum, or its logarithm over exponentials, over listed elements."""
    kind = reductions.of(node)
    if not kind.additive and not kind.logarithmic:
        return False
    if node.shape or "theta" in node.options:
        return False
    return all(map(selections.listed, node.binders))
