"""Where a binder stands: at all elements of its set, or at the rows of an array."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from fccomodel.core import ir
from fccomodel.evaluation.sets import members, selections
from fccomodel.evaluation.sets.selections import Selection
from fccomodel.program.lower.records import Slot
from fccomodel.program.lower.state import Env, State
from fccomodel.program.operations import Val
from fccomodel.program.operations.sources import arange, chunk, kept_share, take


class Slots:
    """The slots that need no choice of samples, and what all slots are made of."""

    def __init__(self, state: State):
        self.state = state
        self.complete: dict[tuple[ir.Binder, Selection | None], Slot] = {}
        self.alike: dict[tuple[str, bytes], list[Slot]] = {}
        #: by binder the array of its rows that may be thinned, and its length
        self.thinned: dict[ir.Binder, tuple[str, int]] = {}

    def shares(self, binders: Iterable[ir.Binder]) -> list[Val]:
        """For each binder whose rows may be thinned, the share of them that a pass takes."""
        found = (self.thinned[b] for b in binders if b in self.thinned)
        return [self.state.graph.make(kept_share, key=key, size=size) for key, size in found]

    def everything(self, binder: ir.Binder, sel: Selection | None = None) -> Slot:
        """The binder at every element of its set, or of those that a condition on it alone accepts."""
        key = binder, sel
        if key not in self.complete:
            self.complete[key] = self.all(sel or Selection(binder=binder))
        return self.complete[key]

    def again(self, sel: Selection, env: Env) -> Slot:
        """Every element, along the axis that another reduction has for the same ones already, unless
        it is around this one: what both are made of is computed once."""
        around = {axis for slot in env.values() for axis in slot.ids.axes}
        said = hashlib.blake2b(np.ascontiguousarray(self.members(sel)).data).digest()
        known = self.alike.setdefault((set_key(sel.binder.domain), said), [])
        slot = next((slot for slot in known if around.isdisjoint(slot.ids.axes)), None)
        if slot is None:
            known.append(slot := self.all(sel))
        return replace(slot, binder=sel.binder, selection=sel if sel.parents else None)

    def all(self, sel: Selection, kind: str = "all", averaged: bool = False) -> Slot:
        """Every element; in a full pass over many pairs, rows that are averaged over are kept as an
        array that can be thinned."""
        rows, nests = self.members(sel), self.state.thinning.nests
        axis = self.state.graph.axis(self.state.unique(sel.binder.name), len(rows), kind)
        heavy = self.state.full and averaged and bool(nests)
        key = self.rows_key(sel, rows, heavy)
        pos = self.state.graph.make(arange if kind == "all" else chunk, axis=axis, key=key)
        if key is None:
            ids = pos
        else:
            ids = self.state.take(key, pos, ())
        if heavy and key is not None:
            nests[-1][key] = len(rows)
            self.thinned[sel.binder] = (key, len(rows))
        related = sel if sel.parents else None
        return Slot(
            binder=sel.binder,
            ids=ids,
            pos=ids,
            n=self.state.total(sel.binder),
            members=rows,
            selection=related,
        )

    def listed(self, sel: Selection, key: str) -> Slot:
        """The binder at the rows of an array, in their order."""
        rows = self.state.data[key]
        axis = self.state.graph.axis(self.state.unique(sel.binder.name), len(rows), "all")
        ids = self.state.take(key, self.state.graph.make(arange, axis=axis), ())
        return Slot(
            binder=sel.binder, ids=ids, pos=ids, n=self.state.total(sel.binder), members=rows, selection=sel
        )

    def members(self, sel: Selection) -> np.ndarray:
        """The ids of a binder's elements by itself."""
        return selections.realise(self.state.bound, members.alone(sel)).rows

    def rows_key(self, sel: Selection, rows: np.ndarray, force: bool = False) -> str | None:
        """The key of an array of row numbers; None where all elements are there in order."""
        if not force and len(rows) == self.state.total(sel.binder) and bool((rows[1:] > rows[:-1]).all()):
            return None
        domain = set_key(sel.binder.domain)
        return self.state.ship(domain if not sel.static else f"{domain}_{sel.binder.name}", rows)

    def known_ids(self, slot: Slot) -> np.ndarray:
        """The ids that a complete axis goes through."""
        if slot.ids.op is take:
            return self.state.data[slot.ids.attrs["key"]]
        return np.arange(slot.ids.axes[0].size)


def set_key(domain: ir.Set) -> str:
    """What the array of a set's rows is called."""
    if domain.name.isidentifier():
        return domain.name
    return "set"
