"""Binders in a full pass: all of their elements."""

from __future__ import annotations

from collections.abc import Mapping

from fccomodel.core import ir
from fccomodel.evaluation.sets.selections import Selection
from fccomodel.program.lower.binders.runs import RunSlots
from fccomodel.program.lower.binders.segments import Segments
from fccomodel.program.lower.leaves.cells import Cells, keyed
from fccomodel.program.lower.leaves.slots import Slots
from fccomodel.program.lower.records import ReducedBinder, Slot, Way
from fccomodel.program.lower.state import Env, State


class Passes:
    """Slots of all elements.

    Rows with keys of outer binders are laid out flat; rows of short runs lie along an axis of places; in
    all other cases a mask selects the pairs.
    """

    def __init__(self, state: State, slots: Slots, cells: Cells, segments: Segments, runs: RunSlots):
        self.state, self.slots, self.cells, self.segments, self.runs = state, slots, cells, segments, runs

    def slot(
        self, sel: Selection, env: Env, way: Way, chunk: bool, averaged: bool, flat: bool
    ) -> tuple[Slot, ReducedBinder, Mapping[ir.Binder, Slot]]:
        """All elements of a binder.

        chunk      whether the pass goes through them in slices
        averaged   whether the pass averages over them, so that a quick pass may leave some out
        flat       whether they may be laid out flat
        """
        g, binder = self.state.graph, sel.binder
        if not sel.parents:
            slot = self.slots.all(sel, "chunk" if chunk else "all", averaged)
            axis = slot.ids.axes[0]
            return slot, ReducedBinder(binder=binder, axis=axis, count=g.size((axis,))), {}
        crowded = False
        if flat and keyed(sel):
            cells = self.segments.cells_of(sel, env, way)
            if cells is not None:
                crowded = cells.crowded and way.runs and not chunk
                if not crowded or self.runs.lengths(sel, crowded) is None:
                    return self.segments.laid_out(cells, chunk)
        if way.runs:
            along_places = self.runs.slot(sel, env, way, way.inner, crowded)
            if along_places is not None:
                return *along_places, {}
        slot = self.slots.again(sel, env)
        mask = self.cells.complete_mask(sel, {**env, binder: slot}, way)
        axis = slot.ids.axes[0]
        count = g.total(mask, [axis])
        return (
            slot,
            ReducedBinder(binder=binder, axis=axis, weight=mask, count=count, parents=sel.parents),
            {},
        )
