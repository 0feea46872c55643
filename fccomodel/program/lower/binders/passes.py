"""Binders in a full pass: all of their elements."""

from __future__ import annotations

from collections.abc import Mapping

from fccomodel.core import ir
from fccomodel.evaluation.sets.selections import Selection
from fccomodel.program.lower.binders.runs import Runs
from fccomodel.program.lower.binders.segments import Segments
from fccomodel.program.lower.leaves.cells import Cells, keyed
from fccomodel.program.lower.leaves.slots import Slots
from fccomodel.program.lower.records import Part, Slot, Way
from fccomodel.program.lower.state import Env, State


class Passes:
    """Slots of all elements; keyed to complete axes they lie flat, those of short runs along an axis
    of places, otherwise a mask says which pairs count."""

    def __init__(self, state: State, slots: Slots, cells: Cells, segments: Segments, runs: Runs):
        self.state, self.slots, self.cells, self.segments, self.runs = state, slots, cells, segments, runs

    def slot(
        self, sel: Selection, env: Env, way: Way, chunk: bool, averaged: bool, flat: bool
    ) -> tuple[Slot, Part, Mapping[ir.Binder, Slot]]:
        """All elements, in slices (``chunk``), or ``flat`` where they can be."""
        g, binder = self.state.graph, sel.binder
        if not sel.parents:
            slot = self.slots.all(sel, "chunk" if chunk else "all", averaged)
            axis = slot.ids.axes[0]
            return slot, Part(binder=binder, axis=axis, count=g.const(axis.size)), {}
        cells = self.segments.cells_of(sel, env, way) if flat and keyed(sel) else None
        crowded = cells is not None and cells.crowded and way.runs and not chunk
        if cells is not None and not (crowded and self.runs.lengths(sel, crowded)):
            return self.segments.laid_out(cells, chunk)
        if way.runs and (by_places := self.runs.slot(sel, env, way, way.inner, crowded)) is not None:
            return *by_places, {}
        slot = self.slots.again(sel, env)
        mask = self.cells.complete_mask(sel, {**env, binder: slot}, way)
        axis = slot.ids.axes[0]
        return (
            slot,
            Part(binder=binder, axis=axis, weight=mask, count=g.total(mask, [axis]), parents=sel.parents),
            {},
        )
