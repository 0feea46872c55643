"""Slots of binders that need no sampling: all elements of a set, or the rows of an array."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from fccomodel.core import ir
from fccomodel.evaluation.sets import members, realising
from fccomodel.evaluation.sets.selections import Selection
from fccomodel.program.lower.records import Slot
from fccomodel.program.lower.state import Env, State
from fccomodel.program.operations import Val
from fccomodel.program.operations.sources import arange, chunk, kept_share, take


class Slots:
    """Makes slots without samples, and the parts of all other slots.

    complete   the slots of ``everything``
    alike      the slots of ``again``, by set and elements
    thinned    for some binders, the key and length of an array of rows of which a quick pass takes a part
    """

    def __init__(self, state: State):
        self.state = state
        self.complete: dict[tuple[ir.Binder, Selection | None], Slot] = {}
        self.alike: dict[tuple[str, bytes], list[Slot]] = {}
        self.thinned: dict[ir.Binder, tuple[str, int]] = {}

    def shares(self, binders: Iterable[ir.Binder]) -> list[Val]:
        """The share of its rows that a pass takes, for each binder whose rows may be thinned."""
        shares = []
        for binder in binders:
            if binder in self.thinned:
                key, size = self.thinned[binder]
                shares.append(self.state.graph.make(kept_share, key=key, size=size))
        return shares

    def everything(self, binder: ir.Binder, sel: Selection | None = None) -> Slot:
        """A binder at all elements of its set, or at the elements accepted by a condition on it alone."""
        key = binder, sel
        if key not in self.complete:
            self.complete[key] = self.all(sel or Selection(binder=binder))
        return self.complete[key]

    def again(self, sel: Selection, env: Env) -> Slot:
        """All elements, along the axis of an earlier reduction over these elements if there is one.

        Values along the axis are then computed once for both. The axis of an outer binder is not used.
        """
        outer_axes = {axis for slot in env.values() for axis in slot.ids.axes}
        digest = hashlib.blake2b(np.ascontiguousarray(self.members(sel)).data).digest()
        known = self.alike.setdefault((set_key(sel.binder.domain), digest), [])
        slot = next((slot for slot in known if outer_axes.isdisjoint(slot.ids.axes)), None)
        if slot is None:
            slot = self.all(sel)
            known.append(slot)
        return replace(slot, binder=sel.binder, selection=sel if sel.parents else None)

    def all(self, sel: Selection, kind: str = "all", averaged: bool = False) -> Slot:
        """All elements.

        In a full pass over many pairs, the numbers of rows that are averaged over are an array, so that
        a quick pass can take a part of it.

        kind       the kind of the axis: ``all``, or ``chunk`` for slices
        averaged   whether the rows are averaged over
        """
        rows = self.members(sel)
        nests = self.state.thinning.nests
        may_be_thinned = self.state.full and averaged and bool(nests)
        key = self.rows_key(sel, rows, may_be_thinned)
        axis = self.state.axis(sel.binder, len(rows), kind, key or whole_set(sel))
        pos = self.state.graph.make(arange if kind == "all" else chunk, axis=axis, key=key)
        ids = pos if key is None else self.state.take(key, pos, ())
        if may_be_thinned and key is not None:
            nests[-1][key] = len(rows)
            self.thinned[sel.binder] = (key, len(rows))
        return Slot(
            binder=sel.binder,
            ids=ids,
            pos=ids,
            n=self.state.total(sel.binder),
            members=rows,
            selection=sel if sel.parents else None,
        )

    def listed(self, sel: Selection, key: str) -> Slot:
        """A binder at the rows in a stored array, in their order."""
        rows = self.state.data[key]
        axis = self.state.axis(sel.binder, len(rows), "all")
        ids = self.state.take(key, self.state.graph.make(arange, axis=axis), ())
        return self.of_ids(sel, ids, rows)

    def of_ids(self, sel: Selection, ids: Val, members: np.ndarray) -> Slot:
        """The slot of a selection's binder that takes the elements with these ids among ``members``."""
        total = self.state.total(sel.binder)
        return Slot(binder=sel.binder, ids=ids, pos=ids, n=total, members=members, selection=sel)

    def members(self, sel: Selection) -> np.ndarray:
        """The ids of the elements that the conditions on the binder alone accept."""
        return realising.realise(self.state.bound, members.alone(sel)).rows

    def rows_key(self, sel: Selection, rows: np.ndarray, force: bool = False) -> str | None:
        """The key of a stored array of row numbers; None if all rows are taken in order.

        force   whether to store the array in that case too
        """
        if not force and len(rows) == self.state.total(sel.binder) and bool((rows[1:] > rows[:-1]).all()):
            return None
        key = set_key(sel.binder.domain)
        if sel.static:
            key = f"{key}_{sel.binder.name}"
        return self.state.ship(key, rows)

    def known_ids(self, slot: Slot) -> np.ndarray:
        """The ids along a complete axis."""
        if slot.ids.op is take:
            return self.state.data[slot.ids.attrs["key"]]
        return np.arange(slot.ids.axes[0].size)


def whole_set(sel: Selection) -> str:
    """The name of a set, all of whose elements a selection takes; empty for rows and sets without a name."""
    domain = sel.binder.domain
    if isinstance(domain, ir.RowSet) or not domain.name.isidentifier():
        return ""
    return domain.name


def set_key(domain: ir.Set) -> str:
    """The key of the array with a set's rows."""
    if domain.name.isidentifier():
        return domain.name
    return "set"
