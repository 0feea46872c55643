"""Rows that several expectations share: one batch of a table in each step, of which each takes its own
(see ``plan.sharing``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

import numpy as np

from fccomodel.core import ir
from fccomodel.evaluation.sets.selections import Selection
from fccomodel.plan.sharing import Strata
from fccomodel.program.lower.binders.segments import Flat, along_one
from fccomodel.program.lower.leaves.slots import Slots
from fccomodel.program.lower.records import Part, Segment, Slot
from fccomodel.program.lower.state import Env, State
from fccomodel.program.operations import Axis, Val
from fccomodel.program.operations.draws import draw_strata
from fccomodel.program.operations.indexing import within
from fccomodel.program.operations.sources import arange

PerRow = Callable[[str, np.ndarray], Val]


class SharedRows:
    """Slots of rows drawn once for several expectations; where two batches are asked for, once for each."""

    def __init__(self, state: State, slots: Slots):
        self.state, self.slots = state, slots
        self.batches: dict[tuple[Strata, bool], Slot] = {}
        self.parts: dict[tuple[Slot, bytes], Slot] = {}

    def slot(self, sel: Selection, env: Env) -> Flat | None:
        """Its rows of a shared batch, those of a family's members laid out flat; None where it has none."""
        strata = next((s for s in self.state.strata if sel.binder in s.cells), None)
        if strata is None or not all(map(along_one, moved(sel, env).values())):
            return None
        slot = self.part(strata, sel.binder)
        per_row = self.arrays(sel.binder, slot.ids.axes[0])
        weights = strata.weights(sel.binder)
        if np.allclose(weights, 1.0):
            weight = None
        else:
            weight = per_row("weight", weights)
        if sel.parents:
            return self.family(strata, sel, env, slot, weight, per_row)
        count = self.state.graph.const(float(strata.sizes[strata.cells[sel.binder] >= 0].sum()))
        return slot, Part(binder=sel.binder, axis=slot.ids.axes[0], weight=weight, count=count), {}

    def batch(self, strata: Strata) -> Slot:
        """The rows of a step."""
        state, key = self.state, (strata, self.state.again)
        if key not in self.batches:
            axis = state.graph.axis(state.unique(f"{strata.table}_rows"), strata.size, "sample")
            sizes, counts = (tuple(map(int, numbers)) for numbers in (strata.sizes, strata.counts))
            pos = state.graph.make(draw_strata, axis=axis, sizes=sizes, counts=counts, how=state.sampling)
            state.draws.append(pos)
            ids = state.take(state.ship(f"{strata.table}_by_stratum", strata.rows), pos, ())
            binder = next(iter(strata.cells))
            self.batches[key] = Slot(
                binder=binder, ids=ids, pos=ids, n=state.total(binder), members=strata.rows
            )
        return self.batches[key]

    def part(self, strata: Strata, binder: ir.Binder) -> Slot:
        """Those that a binder takes: the batch itself, or a part of it that others may take too."""
        batch, taken = self.batch(strata), strata.taken(binder)
        whole, members = batch.ids.axes[0], np.unique(strata.members(binder))
        if len(taken) == strata.size:
            return replace(batch, binder=binder, members=members)
        key = batch, taken.tobytes()
        if key not in self.parts:
            axis = self.state.graph.axis(self.state.unique(binder.name), len(taken), "sample")
            run = bool((np.diff(taken) == 1).all())
            if run:
                places = ""
            else:
                places = self.state.ship(f"{axis.name}_places", taken)
            cut = {"whole": whole, "axis": axis, "start": int(taken[0]), "places": places}
            ids = self.state.graph.make(within, [batch.ids], **cut)
            self.parts[key] = replace(batch, ids=ids, pos=ids, shared=(batch, cut))
        return replace(self.parts[key], binder=binder, members=members)

    def arrays(self, binder: ir.Binder, axis: Axis) -> PerRow:
        """What makes a value of an array with an entry for each row."""
        state, stem = self.state, self.state.unique(f"{binder.name}_share")
        pos = state.graph.make(arange, axis=axis)
        return lambda key, array: state.take(state.ship(f"{stem}_{key}", array), pos, ())

    def family(
        self, strata: Strata, sel: Selection, env: Env, slot: Slot, weight: Val | None, per_row: PerRow
    ) -> Flat | None:
        """The rows of a family's members, each with the cell that it belongs to; None where members
        are others than planned."""
        parents = [env[p] for p in sel.parents]
        axes, lists = [s.ids.axes[0] for s in parents], [self.slots.known_ids(s) for s in parents]
        cells = strata.per_row(strata.cells[sel.binder])[strata.taken(sel.binder)]
        ids = np.unravel_index(cells, tuple(self.state.total(p) for p in sel.parents))
        known = all(np.isin(at, members).all() for at, members in zip(ids, lists, strict=True))
        if not known or len(np.unique(cells)) != prod(map(len, lists)):
            return None
        pairs = zip(ids, lists, strict=True)
        places = [np.argsort(members)[np.searchsorted(np.sort(members), at)] for at, members in pairs]
        aliases: dict[ir.Binder, Slot] = {}
        for b, s in moved(sel, env).items():
            alias = per_row(b.name, self.slots.known_ids(s)[places[axes.index(s.ids.axes[0])]])
            aliases[b] = replace(s, ids=alias, pos=alias)
        axis, count = slot.ids.axes[0], self.state.graph.const(1)
        segment = self.segment(axis, np.ravel_multi_index(tuple(places), tuple(map(len, lists))), tuple(axes))
        part = Part(
            binder=sel.binder, axis=axis, weight=weight, count=count, segment=segment, parents=sel.parents
        )
        return replace(slot, selection=sel), part, aliases

    def segment(self, axis: Axis, cells: np.ndarray, parents: tuple[Axis, ...]) -> Segment:
        """Rows along an axis by the cells that they belong to."""
        sizes = np.bincount(cells, minlength=prod(a.size for a in parents))
        keys = (
            self.state.ship(f"{axis.name}_{name}", array)
            for name, array in (("cell", cells), ("size", sizes))
        )
        return Segment(cells=next(keys), sizes=next(keys), parents=parents)


def moved(sel: Selection, env: Env) -> dict[ir.Binder, Slot]:
    """The slots along the axes of a selection's parents."""
    axes = {axis for p in sel.parents for axis in env[p].ids.axes}
    return {b: s for b, s in env.items() if axes.intersection(s.ids.axes)}
