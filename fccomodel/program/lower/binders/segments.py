"""Rows partitioned by key: one flat axis, each row knowing the cell of parents that it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from fccomodel.core import ir, memory
from fccomodel.evaluation.errors import too_many_to_list
from fccomodel.evaluation.sets import selections
from fccomodel.evaluation.sets.selections import Selection
from fccomodel.program.lower.binders.runs import AT_ONCE, Runs
from fccomodel.program.lower.leaves.cells import Cells
from fccomodel.program.lower.leaves.slots import Slots
from fccomodel.program.lower.records import Part, Segment, Slot, Way
from fccomodel.program.lower.state import Env, State
from fccomodel.program.operations import Axis, Val
from fccomodel.program.operations.sources import arange
from fccomodel.program.operations.sources import chunk as slices

#: Bytes of a row in each of the arrays that rows which lie flat are made of, and how many arrays
#: there are besides those of the binders around.
ROW_BYTES = 8
ARRAYS = 6
#: a binder's slot and part, and the slots of binders around it along its axis
Flat = tuple[Slot, Part, Mapping[ir.Binder, Slot]]


@dataclass(frozen=True, eq=False, kw_only=True)
class FlatCells:
    """The cells of a selection by equal keys, whose rows may lie flat one after another.

    start, size   the run of each cell
    lists         by axis of the parents, the ids along it
    moved         the slots of binders around that lie along these axes
    crowded       there are more rows than a pass holds at once
    """

    selection: Selection
    start: np.ndarray
    size: np.ndarray
    lists: Mapping[Axis, np.ndarray]
    moved: Mapping[ir.Binder, Slot]
    crowded: bool


class Segments:
    """Binders whose range equal keys decide."""

    def __init__(self, state: State, slots: Slots, cells: Cells, runs: Runs):
        self.state, self.slots, self.cells, self.runs = state, slots, cells, runs

    def slot(
        self, sel: Selection, env: Env, way: Way, most: int | None = None, chunk: bool = False
    ) -> Flat | None:
        """The rows of all cells, in slices (``chunk``); None where binders around them do not lie
        along the parents' axes alone, or where there are more than ``most`` rows for each cell."""
        found = self.cells_of(sel, env, way)
        if found is None or most is not None and found.size.sum() > found.size.size * most:
            return None
        return self.laid_out(found, chunk)

    def cells_of(self, sel: Selection, env: Env, way: Way) -> FlatCells | None:
        """The cells whose rows may lie flat; None where binders around them do not lie along the
        parents' axes alone."""
        parents = [env[p] for p in sel.parents]
        axes = [s.ids.axes[0] for s in parents if along_one(s)]
        if len(axes) != len(parents) or len(set(axes)) != len(axes):
            return None
        moved = {b: s for b, s in env.items() if any(a in axes for a in s.ids.axes)}
        if not all(map(along_one, moved.values())):
            return None
        if way.total or way.inside(sel):
            realised = selections.realise(self.state.bound, sel, empty="keep")
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
            moved=moved,
            crowded=float(realised.size[grid].sum()) > max(AT_ONCE, 2 * len(realised.rows)),
        )

    def laid_out(self, cells: FlatCells, chunk: bool = False) -> Flat:
        """Cell by cell, ``start .. start + size`` of the selection's rows, in slices (``chunk``)."""
        sel, start, size, moved = cells.selection, cells.start, cells.size, cells.moved
        state, g, binder = self.state, self.state.graph, sel.binder
        needed = ROW_BYTES * float(size.sum()) * (ARRAYS + len(moved))
        if (left := memory.lacking(needed)) is not None:
            error = too_many_to_list(binder, float(size.sum()), needed, left, binder.span)
            state.refuse(error)
        here, cell, members = self.rows_of(sel, start, size)
        stem = state.unique(f"{binder.name}_by")
        axis = g.axis(state.unique(binder.name), len(cell), "chunk" if chunk else "all")
        pos = g.make(slices if chunk else arange, axis=axis)

        def per_row(key: str, array: np.ndarray) -> Val:
            """A stored number for each of the rows."""
            return state.take(state.ship(f"{stem}_{key}", array), pos, ())

        ids = per_row("rows", here)
        slot = Slot(binder=binder, ids=ids, pos=ids, n=state.total(binder), members=members, selection=sel)
        shape = tuple(map(len, cells.lists.values()))
        at = [cell] if len(shape) == 1 else np.unravel_index(cell, shape)
        places = dict(zip(cells.lists, at, strict=True))
        aliases = {}
        for b, s in moved.items():
            known, place = self.slots.known_ids(s), places[s.ids.axes[0]]
            if np.array_equal(known, np.arange(len(known))):
                alias = per_row(b.name, place)
            else:
                alias = per_row(b.name, known[place])
            aliases[b] = replace(s, ids=alias, pos=alias)
        segment = Segment(
            cells=state.ship(f"{stem}_cell", cell),
            sizes=state.ship(f"{stem}_size", size),
            parents=tuple(cells.lists),
        )
        part = Part(binder=binder, axis=axis, count=g.const(1), segment=segment, parents=sel.parents)
        return slot, part, aliases

    def rows_of(
        self, sel: Selection, start: np.ndarray, size: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The rows of cells one after another, the cell of each, and the rows that there are; the
        selection's own arrays where its groups are the cells."""
        index = selections.index(self.state.bound, sel)
        if np.array_equal(np.append(start, len(index.rows)), index.bounds) and np.array_equal(
            size, np.diff(index.bounds)
        ):
            return index.rows, index.cells(), self.slots.members(sel)
        cell = np.repeat(np.arange(len(size)), size)
        offset = np.arange(len(cell)) - np.repeat(np.cumsum(size) - size, size)
        here = index.rows[np.repeat(start, size) + offset]
        return here, cell, np.flatnonzero(np.bincount(here))


def along_one(slot: Slot) -> bool:
    """It goes along one complete axis."""
    return len(slot.ids.axes) == 1 and slot.ids.static and slot.draw is None
