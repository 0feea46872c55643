"""What the elements of a selection are met with: masks, and whether there are any."""

from __future__ import annotations

import numpy as np

from fccomodel.core import ir
from fccomodel.evaluation import interpret
from fccomodel.evaluation.sets import selections
from fccomodel.evaluation.sets.axes import along, new_axis, spread
from fccomodel.evaluation.sets.selections import Selection
from fccomodel.library.reductions.sum import SUM
from fccomodel.program.lower.leaves.met import counted, filled, taken, vacant
from fccomodel.program.lower.records import Way
from fccomodel.program.lower.state import Env, Lower, State
from fccomodel.program.operations import Val
from fccomodel.program.operations.entrywise import number


class Cells:
    """The cells of a selection: one for each combination of the elements around its binder."""

    def __init__(self, state: State, lower: Lower):
        self.state, self.lower = state, lower

    def mask(self, sel: Selection, env: Env) -> Val:
        """1 where the conditions with other binders hold, else 0."""
        g = self.state.graph
        parts = [self.lower(m, env, False) for m in sel.masks]
        parts += [self.lower(ir.Apply(op="eq", args=pair), env, False) for pair in sel.keys]
        parts += [self.lower(order.test, env, False) for order in sel.orders]
        parts += [g.apply("ne", env[sel.binder].ids, env[b].ids) for b in sel.excludes]
        return self.all_of(parts)

    def tests(self, sel: Selection, env: Env) -> Val:
        """1 where the conditions hold that no key, order or excluded row says, else 0."""
        return self.all_of([self.lower(m, env, False) for m in sel.masks])

    def all_of(self, conditions: list[Val]) -> Val:
        """1 where all conditions hold, else 0."""
        result = conditions[0]
        for condition in conditions[1:]:
            result = self.state.graph.apply("and", result, condition)
        return self.state.graph.make(number, [result])

    def complete_mask(self, sel: Selection, env: Env, way: Way) -> Val:
        """``mask``; where a combination around this reduction that is not met has no elements, all of
        them."""
        mask, parents = self.mask(sel, env), [env[p] for p in sel.parents]
        if way.total or way.inside(sel) or sel.masks and all(slot.selection is None for slot in parents):
            return mask
        count = counted(selections.realise(self.state.bound, sel, empty="keep"))
        empty = vacant(self.state.bound, sel.binder, sel.parents, count, env)
        if empty is None:
            return mask
        key = self.state.unique(f"{sel.binder.name}_empty")
        whole = self.state.cells(key, empty.astype(np.float64), [slot.ids for slot in parents])
        return self.state.graph.apply("max", mask, whole)

    def complete_ranges(self, sel: Selection, env: Env) -> selections.Ranges:
        """A selection's ranges, none of them empty: F0705 where one that is met is, others borrow."""
        ranges = selections.realise(self.state.bound, sel, empty="keep")
        if ranges.size is None:
            return ranges
        empty = vacant(self.state.bound, sel.binder, sel.parents, counted(ranges), env)
        if empty is None:
            return ranges
        return filled(ranges, empty)

    def exists(self, node: ir.Exists, env: Env) -> Val:
        """Where a range has elements: known of the data alone, for every combination of the ids around it."""
        around = self.state.free(node)
        sizes = [self.state.total(b) for b in around]
        at = {b: along(np.arange(n), new_axis()) for b, n in zip(around, sizes, strict=True)}
        accepted = selections.Conditions(self.state.bound).value(node, at)
        table = spread(accepted, tuple(a.axes[0] for a in at.values())).expand(sizes).numpy()
        number = self.state.cells(
            self.state.unique(f"{node.binder.name}_exists"), table, [env[b].ids for b in around]
        )
        return self.state.graph.apply("gt", number, self.state.graph.const(0.0))

    def combinations(self, node: ir.Reduce, env: Env) -> Val:
        """How many combinations of a reduction's binders satisfy its condition, for each cell of the
        binders around it."""
        one = ir.Reduce(
            kind=SUM.name,
            binders=node.binders,
            body=ir.Const(value=1.0),
            condition=node.condition,
            span=node.span,
        )
        parents = [b for b in self.state.free(one) if b in env]
        lists = [taken(self.state.bound, b, env) for b in parents]
        counts = interpret.combinations(self.state.bound, one, dict(zip(parents, lists, strict=True))).numpy()
        if not parents:
            if not counts > 0:
                selections.no_elements(self.state.bound, node.binders[-1])
            return self.state.graph.const(float(counts))
        table = np.ones(tuple(self.state.total(b) for b in parents))
        table[np.ix_(*lists)] = counts
        empty = vacant(self.state.bound, node.binders[-1], parents, table, env)
        if empty is None:
            table = table
        else:
            table = np.where(empty, 1.0, table)
        return self.state.cells(
            self.state.unique(f"{node.binders[0].name}_combinations"), table, [env[b].ids for b in parents]
        )


def keyed(sel: Selection) -> bool:
    """Equal keys alone decide the binder's range."""
    return bool(sel.keys) and not (sel.orders or sel.excludes or sel.masks)
