"""What becomes of reductions over pairs of rows in a pass over all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from fccomodel.core import ir
from fccomodel.data.bound import Bound
from fccomodel.evaluation import elements
from fccomodel.normal.separation import Separation


def without_pairs(
    problem: ir.Problem, bound: Bound | None, constant: Callable[[ir.Expr], float | None]
) -> Iterator[tuple[str, str, str]]:
    """The reductions that a full pass takes without their pairs: text, how, and what the pass costs."""
    separation = Separation(constant)
    for node in ir.walk(*problem.roots):
        if not isinstance(node, ir.Reduce):
            continue
        tables = [b for b in (*node.binders, *ir.free_binders(node)) if isinstance(b.domain, ir.RowSet)]
        if len(tables) < 2 or separation.form(node) is None and separation.run(node) is None:
            continue
        if separation.sorts(node):
            yield problem.text(node), "sorted", f"from sums over sorted rows: {cost(node, bound)}"
        else:
            yield problem.text(node), "separated", f"each row enters alone: {cost(node, bound)}"


def cost(node: ir.Reduce, bound: Bound | None) -> str:
    """What an exact pass meets."""
    if bound is None:
        return "an exact pass forms no pairs"
    binders = dict.fromkeys((*node.binders, *ir.free_binders(node)))
    sizes = [len(elements.ids(bound, b.domain)) for b in binders]
    rows = " + ".join(f"{n:,}" for n in sizes)
    return f"an exact pass meets {rows} rows, not {math.prod(sizes):,} pairs"
