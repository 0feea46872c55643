"""Rows shared by several expectations: each step draws one batch of a table, and every expectation
takes its part of the batch (see ``plan.sharing``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

import numpy as np

from fccomodel.core import ir
from fccomodel.evaluation.sets.selections import Selection
from fccomodel.plan.sharing import SharedStrata
from fccomodel.program.lower.binders.segments import Flat, has_complete_axis
from fccomodel.program.lower.leaves.slots import Slots
from fccomodel.program.lower.records import ReducedBinder, Segment, Slot
from fccomodel.program.lower.state import Env, State
from fccomodel.program.operations import Axis, Val
from fccomodel.program.operations.draws import draw_strata
from fccomodel.program.operations.indexing import within
from fccomodel.program.operations.sources import arange

#: Makes a value with a stored number for each row, from a key and the numbers.
PerRow = Callable[[str, np.ndarray], Val]


class SharedRows:
    """Makes slots for rows that are drawn once for several expectations.

    batches   the batch of each table; two of them if an algorithm wants two independent batches
    parts     the parts of batches that binders take
    """

    def __init__(self, state: State, slots: Slots):
        self.state, self.slots = state, slots
        self.batches: dict[tuple[SharedStrata, bool], Slot] = {}
        self.parts: dict[tuple[Slot, bytes], Slot] = {}

    def slot(self, sel: Selection, env: Env) -> Flat | None:
        """The selection's rows in the shared batch, or None if it shares no batch.

        The rows of all members of a family are laid out flat.
        """
        strata = next((s for s in self.state.strata if sel.binder in s.cells), None)
        if strata is None or not all(map(has_complete_axis, slots_of_parents(sel, env).values())):
            return None
        slot = self.part(strata, sel.binder)
        axis = slot.ids.axes[0]
        per_row = self.per_row(sel.binder, axis)
        weights = strata.weights(sel.binder)
        weight = None
        if not np.allclose(weights, 1.0):
            weight = per_row("weight", weights)
        if sel.parents:
            return self.family(strata, sel, env, slot, weight, per_row)
        rows = strata.sizes[strata.cells[sel.binder] >= 0].sum()
        count = self.state.graph.const(float(rows))
        return slot, ReducedBinder(binder=sel.binder, axis=axis, weight=weight, count=count), {}

    def batch(self, strata: SharedStrata) -> Slot:
        """The rows that a step draws."""
        state = self.state
        key = (strata, state.again)
        if key not in self.batches:
            axis = state.graph.axis(state.unique(f"{strata.table}_rows"), strata.size, "sample")
            sizes = tuple(map(int, strata.sizes))
            counts = tuple(map(int, strata.counts))
            pos = state.graph.make(draw_strata, axis=axis, sizes=sizes, counts=counts, how=state.sampling)
            state.draws.append(pos)
            ids = state.take(state.ship(f"{strata.table}_by_stratum", strata.rows), pos, ())
            binder = next(iter(strata.cells))
            n = state.total(binder)
            self.batches[key] = Slot(binder=binder, ids=ids, pos=ids, n=n, members=strata.rows)
        return self.batches[key]

    def part(self, strata: SharedStrata, binder: ir.Binder) -> Slot:
        """The rows of the batch that a binder takes: all of them, or a part that others may take too."""
        batch = self.batch(strata)
        rows_of_part = strata.taken(binder)
        members = np.unique(strata.members(binder))
        if len(rows_of_part) == strata.size:
            return replace(batch, binder=binder, members=members)
        key = batch, rows_of_part.tobytes()
        if key not in self.parts:
            axis = self.state.graph.axis(self.state.unique(binder.name), len(rows_of_part), "sample")
            places = ""
            if not (np.diff(rows_of_part) == 1).all():
                places = self.state.ship(f"{axis.name}_places", rows_of_part)
            cut = {"whole": batch.ids.axes[0], "axis": axis, "start": int(rows_of_part[0]), "places": places}
            ids = self.state.graph.make(within, [batch.ids], **cut)
            self.parts[key] = replace(batch, ids=ids, pos=ids, shared=(batch, cut))
        return replace(self.parts[key], binder=binder, members=members)

    def per_row(self, binder: ir.Binder, axis: Axis) -> PerRow:
        """A function that makes a value with a stored number for each row along an axis."""
        state = self.state
        stem = state.unique(f"{binder.name}_share")
        pos = state.graph.make(arange, axis=axis)

        def value(key: str, array: np.ndarray) -> Val:
            """The stored numbers of an array."""
            return state.take(state.ship(f"{stem}_{key}", array), pos, ())

        return value

    def family(
        self, strata: SharedStrata, sel: Selection, env: Env, slot: Slot, weight: Val | None, per_row: PerRow
    ) -> Flat | None:
        """The rows of a family's members, each with its cell; None if the members are not as planned."""
        parents = [env[p] for p in sel.parents]
        axes = [parent.ids.axes[0] for parent in parents]
        lists = [self.slots.known_ids(parent) for parent in parents]
        shape = tuple(map(len, lists))
        cells = strata.per_row(strata.cells[sel.binder])[strata.taken(sel.binder)]
        ids = np.unravel_index(cells, tuple(self.state.total(p) for p in sel.parents))
        if len(np.unique(cells)) != prod(shape):
            return None
        places = []  # for each parent, the place of every row's element in its list
        for elements, members in zip(ids, lists, strict=True):
            if not np.isin(elements, members).all():
                return None
            order = np.argsort(members)
            places.append(order[np.searchsorted(members[order], elements)])
        aliases: dict[ir.Binder, Slot] = {}
        for outer_binder, outer_slot in slots_of_parents(sel, env).items():
            place = places[axes.index(outer_slot.ids.axes[0])]
            alias = per_row(outer_binder.name, self.slots.known_ids(outer_slot)[place])
            aliases[outer_binder] = replace(outer_slot, ids=alias, pos=alias)
        axis = slot.ids.axes[0]
        count = self.state.graph.const(1)
        segment = self.segment(axis, np.ravel_multi_index(tuple(places), shape), tuple(axes))
        part = ReducedBinder(
            binder=sel.binder, axis=axis, weight=weight, count=count, segment=segment, parents=sel.parents
        )
        return replace(slot, selection=sel), part, aliases

    def segment(self, axis: Axis, cells: np.ndarray, parents: tuple[Axis, ...]) -> Segment:
        """The stored arrays of a flat axis: the cell of each row, and the number of rows in each cell."""
        sizes = np.bincount(cells, minlength=prod(parent.size for parent in parents))
        return Segment(
            cells=self.state.ship(f"{axis.name}_cell", cells),
            sizes=self.state.ship(f"{axis.name}_size", sizes),
            parents=parents,
        )


def slots_of_parents(sel: Selection, env: Env) -> dict[ir.Binder, Slot]:
    """The slots along the axes of a selection's parents."""
    axes = {axis for parent in sel.parents for axis in env[parent].ids.axes}
    return {binder: slot for binder, slot in env.items() if axes.intersection(slot.ids.axes)}
