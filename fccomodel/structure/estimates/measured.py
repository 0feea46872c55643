"""Where a number that only the data decide lies: its values at every element of the sets that it
depends on.

Intervals of its parts forget which belong together: each price is above its own cost, if not above
every cost.
"""

from __future__ import annotations

from math import prod

from fccomodel.core import ir
from fccomodel.core.diagnostics import FccoError
from fccomodel.data.bound import Bound
from fccomodel.evaluation import memory
from fccomodel.evaluation.sets import elements
from fccomodel.library.atoms import Interval
from fccomodel.structure.declarations import interval

#: Values that are looked at; operations of the expression, each of which makes so many.
MOST, DEEP = 1_000_000, 50


def measured(expr: ir.Expr, bound: Bound) -> Interval | None:
    """The least and the largest value of a scalar without variables, or None: of draws, of too many
    elements, or where it is not finite somewhere."""
    if (
        any(isinstance(node, ir.Var | ir.Hole | ir.NetCall | ir.Reduce) for node in ir.walk(expr))
        or expr.shape
    ):
        return None
    return memory.remember(bound, ("measured", expr), lambda: _measured(expr, bound))


def _measured(expr: ir.Expr, bound: Bound) -> Interval | None:
    from fccomodel.evaluation.interpret import evaluate

    binders = ir.free_binders(expr)
    if (
        any(isinstance(binder.domain, ir.Distribution | ir.VectorSet) for binder in binders)
        or len(list(ir.walk(expr))) > DEEP
    ):
        return None
    try:
        ids = {binder: elements.ids(bound, binder.domain) for binder in binders}
        if not 0 < prod(len(one) for one in ids.values()) <= MOST:
            return None
        values = evaluate(bound, expr, {}, ids)
    except FccoError:
        return None
    low, high = float(values.min()), float(values.max())
    if abs(low) < float("inf") and abs(high) < float("inf"):
        return interval(low, high)
    return None
