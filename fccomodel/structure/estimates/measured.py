"""The measured range of an expression of the data alone, over all elements of the sets that it depends on.

Interval arithmetic forgets which values belong together: each price may be above its own cost
although it is not above every cost.
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

MAX_VALUES = 1_000_000  # values that are computed
MAX_NODES = 50  # nodes of the expression, each of which has that many values


def measured(expr: ir.Expr, bound: Bound) -> Interval | None:
    """The range of a scalar without variables, or None.

    None is returned for draws, for more than ``MAX_VALUES`` values, for more than ``MAX_NODES`` nodes,
    and if some value is not finite or cannot be computed.
    """
    not_plain = ir.Var | ir.Hole | ir.NetCall | ir.Reduce
    if expr.shape or any(isinstance(node, not_plain) for node in ir.walk(expr)):
        return None
    return memory.remember(bound, ("measured", expr), lambda: _measured(expr, bound))


def _measured(expr: ir.Expr, bound: Bound) -> Interval | None:
    from fccomodel.evaluation.interpret import evaluate

    binders = ir.free_binders(expr)
    if any(isinstance(binder.domain, ir.Distribution | ir.VectorSet) for binder in binders):
        return None
    if len(list(ir.walk(expr))) > MAX_NODES:
        return None
    try:
        ids = {binder: elements.ids(bound, binder.domain) for binder in binders}
        if not 0 < prod(len(members) for members in ids.values()) <= MAX_VALUES:
            return None
        values = evaluate(bound, expr, {}, ids)
    except FccoError:
        return None
    low, high = float(values.min()), float(values.max())
    if abs(low) < float("inf") and abs(high) < float("inf"):
        return interval(low, high)
    return None
