"""Rows of all keys along one flat axis, where every row has the number of its cell.

A cell is a combination of the elements of outer binders (the parents), whose keys its rows have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from fccomodel.core import ir, memory
from fccomodel.evaluation.errors import too_many_to_list
from fccomodel.evaluation.sets import realising
from fccomodel.evaluation.sets.selections import Selection
from fccomodel.program.lower.binders.runs import AT_ONCE, RunSlots
from fccomodel.program.lower.leaves.cells import Cells
from fccomodel.program.lower.leaves.slots import Slots
from fccomodel.program.lower.records import ReducedBinder, Segment, Slot, Way
from fccomodel.program.lower.state import Env, State
from fccomodel.program.operations import Axis, Val
from fccomodel.program.operations.sources import arange
from fccomodel.program.operations.sources import chunk as slices

#: Bytes of a row in each of the arrays for rows laid out flat.
ROW_BYTES = 8
#: Number of these arrays, without one for each outer binder.
ARRAYS = 6
#: A binder's slot and part, and new slots of outer binders along the binder's axis.
Flat = tuple[Slot, ReducedBinder, Mapping[ir.Binder, Slot]]


@dataclass(frozen=True, eq=False, kw_only=True)
class FlatCells:
    """The cells of a selection by equal keys, whose rows may lie flat one after another.

    start, size   for each cell, its first row among the selection's sorted rows, and their number
    lists         the elements along each axis of the parents
    outer         the slots along these axes
    crowded       whether there are more rows than a pass holds at once
    """

    selection: Selection
    start: np.ndarray
    size: np.ndarray
    lists: Mapping[Axis, np.ndarray]
    outer: Mapping[ir.Binder, Slot]
    crowded: bool


class Segments:
    """Makes slots for binders whose rows have the keys of outer elements."""

    def __init__(self, state: State, slots: Slots, cells: Cells, runs: RunSlots):
        self.state, self.slots, self.cells, self.runs = state, slots, cells, runs

    def slot(
        self, sel: Selection, env: Env, way: Way, most: int | None = None, chunk: bool = False
    ) -> Flat | None:
        """The rows of all cells, or None if they cannot be laid out flat.

        most    largest mean number of rows per cell; None for no limit
        chunk   whether a pass goes through the rows in slices

        None if an outer binder lies along several axes, or, with a limit, if there are more than ``most``
        rows per cell or more rows than a pass holds at once.
        """
        cells = self.cells_of(sel, env, way)
        if cells is None:
            return None
        if most is not None and (cells.crowded or cells.size.sum() > cells.size.size * most):
            return None
        return self.laid_out(cells, chunk)

    def cells_of(self, sel: Selection, env: Env, way: Way) -> FlatCells | None:
        """The cells whose rows may be laid out flat, or None if an outer binder lies along several axes."""
        parents = [env[p] for p in sel.parents]
        axes = [s.ids.axes[0] for s in parents if has_complete_axis(s)]
        if len(axes) != len(parents) or len(set(axes)) != len(axes):
            return None
        outer = {b: s for b, s in env.items() if any(a in axes for a in s.ids.axes)}
        if not all(map(has_complete_axis, outer.values())):
            return None
        if way.total or way.inside(sel):
            realised = realising.realise(self.state.bound, sel, empty="keep")
        else:
            realised = self.cells.complete_ranges(sel, env)
        assert realised.start is not None and realised.size is not None
        lists = [self.slots.known_ids(s) for s in parents]
        grid = np.ix_(*lists)
        return FlatCells(
            selection=sel,
            start=realised.start[grid].ravel(),
            size=realised.size[grid].ravel(),
            lists=dict(zip(axes, lists, strict=True)),
            outer=outer,
            crowded=float(realised.size[grid].sum()) > max(AT_ONCE, 2 * len(realised.rows)),
        )

    def laid_out(self, cells: FlatCells, chunk: bool = False) -> Flat:
        """The rows of the cells, one cell after another, in slices (``chunk``) or together."""
        sel, start, size, outer = cells.selection, cells.start, cells.size, cells.outer
        state, g, binder = self.state, self.state.graph, sel.binder
        needed = ROW_BYTES * float(size.sum()) * (ARRAYS + len(outer))
        available = memory.lacking(needed)
        if available is not None:
            state.refuse(too_many_to_list(binder, float(size.sum()), needed, available, binder.span))
        rows, cell, members = self.rows_of(sel, start, size)
        stem = f"{binder.name}_by"
        rows_key = state.ship(f"{stem}_rows", rows)
        axis = g.axis(state.unique(binder.name), len(cell), "chunk" if chunk else "all", elements=rows_key)
        pos = g.make(slices if chunk else arange, axis=axis)

        def per_row(key: str, array: np.ndarray) -> Val:
            """A stored number for each of the rows."""
            return state.take(state.ship(f"{stem}_{key}", array), pos, ())

        ids = state.take(rows_key, pos, ())
        slot = Slot(binder=binder, ids=ids, pos=ids, n=state.total(binder), members=members, selection=sel)
        shape = tuple(map(len, cells.lists.values()))
        per_axis = [cell] if len(shape) == 1 else np.unravel_index(cell, shape)
        places = dict(zip(cells.lists, per_axis, strict=True))
        aliases = {}
        for outer_binder, outer_slot in outer.items():
            known = self.slots.known_ids(outer_slot)
            elements = places[outer_slot.ids.axes[0]]
            if not np.array_equal(known, np.arange(len(known))):
                elements = known[elements]
            alias = per_row(outer_binder.name, elements)
            aliases[outer_binder] = replace(outer_slot, ids=alias, pos=alias)
        segment = Segment(
            cells=state.ship(f"{stem}_cell", cell),
            sizes=state.ship(f"{stem}_size", size),
            parents=tuple(cells.lists),
        )
        part = ReducedBinder(binder=binder, axis=axis, count=g.const(1), segment=segment, parents=sel.parents)
        return slot, part, aliases

    def rows_of(
        self, sel: Selection, start: np.ndarray, size: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The rows of all cells one after another, the cell of each row, and the distinct rows.

        If the cells are the groups of the selection's index, its own arrays are returned.
        """
        index = realising.index(self.state.bound, sel)
        same_starts = np.array_equal(np.append(start, len(index.rows)), index.bounds)
        if same_starts and np.array_equal(size, np.diff(index.bounds)):
            return index.rows, index.cells(), self.slots.members(sel)
        cell = np.repeat(np.arange(len(size)), size)
        offset = np.arange(len(cell)) - np.repeat(np.cumsum(size) - size, size)
        rows = index.rows[np.repeat(start, size) + offset]
        return rows, cell, np.flatnonzero(np.bincount(rows))


def has_complete_axis(slot: Slot) -> bool:
    """Whether a slot goes through known elements along a single axis."""
    return len(slot.ids.axes) == 1 and slot.ids.static and slot.draw is None
