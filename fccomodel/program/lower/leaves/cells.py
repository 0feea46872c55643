"""Masks and ranges of the elements that a selection accepts, for given outer elements."""

from __future__ import annotations

import numpy as np

from fccomodel.core import ir
from fccomodel.evaluation import interpret
from fccomodel.evaluation.sets import realising
from fccomodel.evaluation.sets.axes import along, new_axis, spread
from fccomodel.evaluation.sets.selections import Selection
from fccomodel.library.reductions.sum import SUM
from fccomodel.program.lower.leaves.empty_ranges import (
    element_counts,
    element_ids,
    empty_combinations,
    with_borrowed_ranges,
)
from fccomodel.program.lower.records import Way
from fccomodel.program.lower.state import Env, Lower, State
from fccomodel.program.operations import Val
from fccomodel.program.operations.entrywise import number


class Cells:
    """Lowers the conditions of selections, for each combination of outer elements (a cell)."""

    def __init__(self, state: State, lower: Lower):
        self.state, self.lower = state, lower

    def mask(self, sel: Selection, env: Env) -> Val:
        """1 if all conditions that involve other binders hold, else 0."""
        g = self.state.graph
        conditions = [self.lower(mask, env, False) for mask in sel.masks]
        for pair in sel.keys:
            conditions.append(self.lower(ir.Apply(op="eq", args=pair), env, False))
        for order in sel.orders:
            conditions.append(self.lower(order.test, env, False))
        for excluded in sel.excludes:
            conditions.append(g.apply("ne", env[sel.binder].ids, env[excluded].ids))
        return self.all_of(conditions)

    def tests(self, sel: Selection, env: Env) -> Val:
        """1 if the conditions hold that are no key, no order and no excluded row, else 0."""
        return self.all_of([self.lower(mask, env, False) for mask in sel.masks])

    def all_of(self, conditions: list[Val]) -> Val:
        """1 if all conditions hold, else 0."""
        result = conditions[0]
        for condition in conditions[1:]:
            result = self.state.graph.apply("and", result, condition)
        return self.state.graph.make(number, [result])

    def complete_mask(self, sel: Selection, env: Env, way: Way) -> Val:
        """``mask``, but 1 for combinations of outer elements that have no elements and do not occur."""
        mask = self.mask(sel, env)
        parents = [env[p] for p in sel.parents]
        if way.total or way.inside(sel):
            return mask
        if sel.masks and all(slot.selection is None for slot in parents):
            return mask
        count = element_counts(realising.realise(self.state.bound, sel, empty="keep"))
        empty = empty_combinations(self.state.bound, sel.binder, sel.parents, count, env)
        if empty is None:
            return mask
        key = self.state.unique(f"{sel.binder.name}_empty")
        is_empty = self.state.cells(key, empty.astype(np.float64), [slot.ids for slot in parents])
        return self.state.graph.apply("max", mask, is_empty)

    def complete_ranges(self, sel: Selection, env: Env) -> realising.SelectionArrays:
        """A selection's ranges. An empty range is replaced by another one; F0705 if it occurs."""
        ranges = realising.realise(self.state.bound, sel, empty="keep")
        if ranges.size is None:
            return ranges
        empty = empty_combinations(self.state.bound, sel.binder, sel.parents, element_counts(ranges), env)
        if empty is None:
            return ranges
        return with_borrowed_ranges(ranges, empty)

    def exists(self, node: ir.Exists, env: Env) -> Val:
        """Whether a range has elements, from a table over the ids of outer binders made of the data."""
        outer = self.state.free(node)
        sizes = [self.state.total(b) for b in outer]
        at = {b: along(np.arange(n), new_axis()) for b, n in zip(outer, sizes, strict=True)}
        accepted = realising.Conditions(self.state.bound).value(node, at)
        axes = tuple(ids.axes[0] for ids in at.values())
        table = spread(accepted, axes).expand(sizes).numpy()
        key = self.state.unique(f"{node.binder.name}_exists")
        number = self.state.cells(key, table, [env[b].ids for b in outer])
        return self.state.graph.apply("gt", number, self.state.graph.const(0.0))

    def combinations(self, node: ir.Reduce, env: Env) -> Val:
        """The number of combinations of a reduction's binders that satisfy its condition, for given
        outer elements."""
        bound = self.state.bound
        count = ir.Reduce(
            kind=SUM.name,
            binders=node.binders,
            body=ir.Const(value=1.0),
            condition=node.condition,
            span=node.span,
        )
        parents = [b for b in self.state.free(count) if b in env]
        lists = [element_ids(bound, b, env) for b in parents]
        counts = interpret.combinations(bound, count, dict(zip(parents, lists, strict=True))).numpy()
        if not parents:
            if not counts > 0:
                realising.no_elements(bound, node.binders[-1])
            return self.state.graph.const(float(counts))
        table = np.ones(tuple(self.state.total(b) for b in parents))
        table[np.ix_(*lists)] = counts
        empty = empty_combinations(bound, node.binders[-1], parents, table, env)
        if empty is not None:
            table = np.where(empty, 1.0, table)
        key = self.state.unique(f"{node.binders[0].name}_combinations")
        return self.state.cells(key, table, [env[b].ids for b in parents])


def keyed(sel: Selection) -> bool:
    """Whether equal keys alone decide the binder's range."""
    return bool(sel.keys) and not (sel.orders or sel.excludes or sel.masks)
