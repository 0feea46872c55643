"""Binders in a step: minibatches of their elements, given the sampled elements around them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fccomodel.core import ir
from fccomodel.evaluation.sets import selections
from fccomodel.evaluation.sets.selections import Selection
from fccomodel.program.lower.binders.segments import Segments
from fccomodel.program.lower.binders.shared import SharedRows
from fccomodel.program.lower.leaves.cells import Cells, keyed
from fccomodel.program.lower.leaves.slots import Slots
from fccomodel.program.lower.records import Part, Slot, Way
from fccomodel.program.lower.state import Env, State
from fccomodel.program.operations import Axis, Val, in_order, union
from fccomodel.program.operations.draws import draw, draw_range
from fccomodel.program.operations.entrywise import number
from fccomodel.program.operations.sources import cell

#: inner samples of fewer elements are independent: of passes without replacement each is far from
#: the one before, and so from the estimate that the gradient meets, which biases their product by a
#: share of 1 / (n - B2) of the variance
PASSES = 16


class Batches:
    """Slots of minibatches; of all elements where that costs no more."""

    def __init__(self, state: State, slots: Slots, cells: Cells, segments: Segments):
        self.state, self.slots, self.cells, self.segments = state, slots, cells, segments
        self.shared = SharedRows(state, slots)

    def slot(self, sel: Selection, env: Env, way: Way) -> tuple[Slot, Part, Mapping[ir.Binder, Slot]]:
        """A minibatch of the binder's elements."""
        if (shared := self.shared.slot(sel, env)) is not None:
            return shared
        if not sel.parents:
            return (*self.free(sel, env, way), {})
        binder, related = sel.binder, way.inside(sel)
        if related or way.total:
            realised = selections.realise(self.state.bound, replace(sel, masks=()), empty="keep")
        else:
            realised = self.cells.complete_ranges(sel, env)
        if realised.size is not None and (way.whole or self.complete(sel)):
            return (*self.masked(sel, env, way), {})
        if realised.size is None:
            n = len(realised.rows)
        else:
            n = int(realised.size.max())
        most = min(n, self.state.batch(binder, n, way.inner) or n)
        if not related and keyed(sel):
            laid_out = self.segments.slot(sel, env, way, most)
            if laid_out is not None:
                return laid_out
        return (*self.of_cell(sel, realised, env, most or 1, way), {})

    def free(self, sel: Selection, env: Env, way: Way) -> tuple[Slot, Part]:
        """A minibatch of elements that nothing around restricts."""
        state, g, binder, rows = self.state, self.state.graph, sel.binder, self.slots.members(sel)
        n = len(rows)
        if way.whole:
            size = None
        else:
            size = state.batch(binder, n, way.inner)
        if size is None or size >= n:
            slot = self.slots.all(sel)
            return slot, Part(binder=binder, axis=slot.ids.axes[0], count=g.const(n))
        axis = g.axis(state.unique(binder.name), size, "sample")
        around = self.around(binder, env, way.body)
        if around and state.inner_sampling == "per_block":
            pos = g.make(draw_range, [g.const(0), g.const(n)], axes=(*around, axis), axis=axis, most=n)
        else:
            pos = g.make(draw, axis=axis, n=n, how=self.how(binder, n))
        state.draws.append(pos)
        key = self.slots.rows_key(sel, rows)
        if key is None:
            ids = pos
        else:
            ids = state.take(key, pos, ())
        slot = Slot(binder=binder, ids=ids, pos=ids, n=state.total(binder), members=rows)
        return slot, Part(binder=binder, axis=axis, count=g.const(n))

    def of_cell(
        self, sel: Selection, realised: selections.Ranges, env: Env, most: int, way: Way
    ) -> tuple[Slot, Part]:
        """A minibatch of the elements in the cell that the sampled ones around it decide, ``most`` of
        them."""
        state, g, binder = self.state, self.state.graph, sel.binder
        parents = [env[p].ids for p in sel.parents]
        axis = g.axis(state.unique(binder.name), most, "sample")
        stem = state.unique(f"{binder.name}_of")
        if realised.start is None or realised.size is None:
            n = len(realised.rows)
            pos, count = g.make(draw, axis=axis, n=n, how=self.how(binder, n)), g.const(n)
        else:
            if realised.skip is None:
                valid = realised.size
            else:
                valid = realised.size - (realised.skip >= 0)
            start = state.cells(f"{stem}_start", realised.start, parents)
            count = state.cells(f"{stem}_size", valid, parents)
            if realised.skip is None:
                skip = []
            else:
                skip = [state.cells(f"{stem}_skip", realised.skip, parents)]
            axes = union([start, count])
            if state.inner_sampling == "per_block":
                axes = in_order([*axes, *self.around(binder, env, way.body)])
            longest = int(realised.size.max())
            pos = g.make(draw_range, [start, count, *skip], axes=(*axes, axis), axis=axis, most=longest)
        state.draws.append(pos)
        ids = state.take(state.ship(f"{stem}_rows", realised.rows), pos, ())
        slot = Slot(
            binder=binder,
            ids=ids,
            pos=ids,
            n=state.total(binder),
            members=self.slots.members(sel),
            selection=sel,
        )
        if count.op is cell:
            count = g.make(number, [count])
        weight: Val | None = None
        accept: Val | None = None
        if sel.masks:
            weight = self.cells.mask(replace(sel, keys=(), orders=(), excludes=()), {**env, binder: slot})
            if realised.accept is not None and not way.inside(sel):
                accept = state.cells(f"{stem}_accept", realised.accept, parents)
        return slot, Part(
            binder=binder, axis=axis, weight=weight, count=count, accept=accept, parents=sel.parents
        )

    def how(self, binder: ir.Binder, n: int) -> str:
        """The kind of sampling: that of the options, but for a few inner elements."""
        if binder.kind == "~" and n < PASSES:
            return "iid"
        return self.state.sampling

    def complete(self, sel: Selection) -> bool:
        """A small set of values or labels under a condition: all of it, with a mask."""
        return (
            not sel.keys
            and not isinstance(sel.binder.domain, ir.RowSet)
            and self.state.total(sel.binder) <= 64
        )

    def masked(self, sel: Selection, env: Env, way: Way) -> tuple[Slot, Part]:
        """All elements, with a mask for those that the condition accepts."""
        slot = self.slots.all(sel)
        mask = self.cells.complete_mask(sel, {**env, sel.binder: slot}, way)
        axis = slot.ids.axes[0]
        n = self.state.graph.const(axis.size)
        accept = self.state.graph.average(mask, [axis])
        return slot, Part(
            binder=sel.binder, axis=axis, weight=mask, count=n, accept=accept, parents=sel.parents
        )

    def around(self, binder: ir.Binder, env: Env, body: ir.Expr) -> tuple[Axis, ...]:
        """The axes of the binders around a drawn one that its body depends on."""
        if binder.kind == "~":
            return union([env[b].ids for b in self.state.free(body) if b in env])
        return ()
