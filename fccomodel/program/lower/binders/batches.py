"""Binders in a step: minibatches of their elements, given the sampled elements of outer binders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fccomodel.core import ir
from fccomodel.evaluation.sets import realising
from fccomodel.evaluation.sets.selections import Selection
from fccomodel.program.lower.binders.segments import Segments
from fccomodel.program.lower.binders.shared import SharedRows
from fccomodel.program.lower.leaves.cells import Cells, keyed
from fccomodel.program.lower.leaves.slots import Slots
from fccomodel.program.lower.records import ReducedBinder, Slot, Way
from fccomodel.program.lower.state import Env, State
from fccomodel.program.operations import Axis, Val, in_order, union
from fccomodel.program.operations.draws import draw, draw_range
from fccomodel.program.operations.entrywise import number
from fccomodel.program.operations.sources import cell

#: Inner sets of fewer elements are sampled independently. In a pass without replacement a small batch
#: is far from the batch before, and so from the estimate in the gradient. This biases their product by
#: 1 / (n - B2) of the variance.
INDEPENDENT_BELOW = 16
#: Sets of values with a condition and at most this many elements are taken whole, with a mask.
WHOLE_SET = 64


class BatchSlots:
    """Slots of minibatches, or of all elements if that costs no more."""

    def __init__(self, state: State, slots: Slots, cells: Cells, segments: Segments):
        self.state, self.slots, self.cells, self.segments = state, slots, cells, segments
        self.shared = SharedRows(state, slots)

    def slot(
        self, sel: Selection, env: Env, way: Way
    ) -> tuple[Slot, ReducedBinder, Mapping[ir.Binder, Slot]]:
        """A minibatch of the binder's elements.

        The last of the three results has new slots of outer binders, if rows are laid out flat.
        """
        shared = self.shared.slot(sel, env)
        if shared is not None:
            return shared
        if not sel.parents:
            slot, part = self.unrestricted(sel, env, way)
            return slot, part, {}
        related = way.inside(sel)
        if related or way.total:
            realised = realising.realise(self.state.bound, replace(sel, masks=()), empty="keep")
        else:
            realised = self.cells.complete_ranges(sel, env)
        if realised.size is not None and (way.whole or self.small_set(sel)):
            slot, part = self.masked(sel, env, way)
            return slot, part, {}
        if realised.size is None:
            n = len(realised.rows)
        else:
            n = int(realised.size.max())
        size = min(n, self.state.batch(sel.binder, n, way.inner) or n)
        if not related and keyed(sel):
            laid_out = self.segments.slot(sel, env, way, size)
            if laid_out is not None:
                return laid_out
        slot, part = self.of_cell(sel, realised, env, size or 1, way)
        return slot, part, {}

    def unrestricted(self, sel: Selection, env: Env, way: Way) -> tuple[Slot, ReducedBinder]:
        """A minibatch of elements that no outer binder restricts."""
        state, g, binder = self.state, self.state.graph, sel.binder
        rows = self.slots.members(sel)
        n = len(rows)
        size = None if way.whole else state.batch(binder, n, way.inner)
        if size is None or size >= n:
            slot = self.slots.all(sel)
            return slot, ReducedBinder(binder=binder, axis=slot.ids.axes[0], count=g.const(n))
        axis = g.axis(state.unique(binder.name), size, "sample")
        around = self.around(binder, env, way.body)
        if around and state.inner_sampling == "per_block":
            pos = g.make(draw_range, [g.const(0), g.const(n)], axes=(*around, axis), axis=axis, most=n)
        else:
            pos = g.make(draw, axis=axis, n=n, how=self.sampling(binder, n))
        state.draws.append(pos)
        key = self.slots.rows_key(sel, rows)
        ids = pos if key is None else state.take(key, pos, ())
        slot = Slot(binder=binder, ids=ids, pos=ids, n=state.total(binder), members=rows)
        return slot, ReducedBinder(binder=binder, axis=axis, count=g.const(n))

    def of_cell(
        self, sel: Selection, realised: realising.SelectionArrays, env: Env, size: int, way: Way
    ) -> tuple[Slot, ReducedBinder]:
        """A minibatch of ``size`` elements of the cell that the sampled elements of outer binders choose."""
        state, g, binder = self.state, self.state.graph, sel.binder
        parents = [env[p].ids for p in sel.parents]
        axis = g.axis(state.unique(binder.name), size, "sample")
        stem = state.unique(f"{binder.name}_of")
        if realised.start is None or realised.size is None:
            n = len(realised.rows)
            pos = g.make(draw, axis=axis, n=n, how=self.sampling(binder, n))
            count = g.const(n)
        else:
            valid = realised.size
            if realised.skip is not None:
                valid = realised.size - (realised.skip >= 0)
            start = state.cells(f"{stem}_start", realised.start, parents)
            count = state.cells(f"{stem}_size", valid, parents)
            range_args = [start, count]
            if realised.skip is not None:
                range_args.append(state.cells(f"{stem}_skip", realised.skip, parents))
            axes = union([start, count])
            if state.inner_sampling == "per_block":
                axes = in_order([*axes, *self.around(binder, env, way.body)])
            longest = int(realised.size.max())
            pos = g.make(draw_range, range_args, axes=(*axes, axis), axis=axis, most=longest)
        state.draws.append(pos)
        ids = state.take(state.ship(f"{stem}_rows", realised.rows), pos, ())
        slot = self.slots.of_ids(sel, ids, self.slots.members(sel))
        if count.op is cell:
            count = g.make(number, [count])
        weight: Val | None = None
        accept: Val | None = None
        if sel.masks:
            weight = self.cells.mask(replace(sel, keys=(), orders=(), excludes=()), {**env, binder: slot})
            if realised.accept is not None and not way.inside(sel):
                accept = state.cells(f"{stem}_accept", realised.accept, parents)
        return slot, ReducedBinder(
            binder=binder, axis=axis, weight=weight, count=count, accept=accept, parents=sel.parents
        )

    def sampling(self, binder: ir.Binder, n: int) -> str:
        """The kind of sampling: the kind in the options, or ``iid`` for a small inner set."""
        if binder.kind == "~" and n < INDEPENDENT_BELOW:
            return "iid"
        return self.state.sampling

    def small_set(self, sel: Selection) -> bool:
        """Whether a selection is a small set of values or labels under a condition."""
        if sel.keys or isinstance(sel.binder.domain, ir.RowSet):
            return False
        return self.state.total(sel.binder) <= WHOLE_SET

    def masked(self, sel: Selection, env: Env, way: Way) -> tuple[Slot, ReducedBinder]:
        """All elements, with a mask for those that the condition accepts."""
        slot = self.slots.all(sel)
        mask = self.cells.complete_mask(sel, {**env, sel.binder: slot}, way)
        axis = slot.ids.axes[0]
        n = self.state.graph.size((axis,))
        accept = self.state.graph.average(mask, [axis])
        return slot, ReducedBinder(
            binder=sel.binder, axis=axis, weight=mask, count=n, accept=accept, parents=sel.parents
        )

    def around(self, binder: ir.Binder, env: Env, body: ir.Expr) -> tuple[Axis, ...]:
        """The axes of the outer binders that the body of a drawn binder depends on."""
        if binder.kind == "~":
            return union([env[b].ids for b in self.state.free(body) if b in env])
        return ()
