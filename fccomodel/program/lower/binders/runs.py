"""Runs of sorted rows in a full pass, along an axis as long as the longest run.

For elements p of outer binders, a binder j with keys and orders takes ``rows[start(p) : start(p) +
size(p)]`` of its sorted rows. Values lie along the axes of p and an axis of places 0 .. longest - 1;
places behind the end of a run have weight 0. Work and memory are (outer elements) x (longest run). A
mask over all rows would take (outer elements) x (rows).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fccomodel.evaluation.sets import elements, members, realising, selections
from fccomodel.evaluation.sets.selections import Selection
from fccomodel.program.lower.leaves.cells import Cells
from fccomodel.program.lower.leaves.empty_ranges import element_counts, empty_combinations
from fccomodel.program.lower.leaves.slots import Slots
from fccomodel.program.lower.records import ReducedBinder, Slot, Way
from fccomodel.program.lower.state import Env, State
from fccomodel.program.operations.entrywise import number
from fccomodel.program.operations.runs import run_places, run_weights
from fccomodel.program.operations.sources import arange

#: Largest number of combinations of outer elements, whose runs are stored.
MOST_CELLS = 1 << 22
#: Smallest ratio (rows / longest run) for which runs are laid out.
LEAST_GAIN = 2
#: The same for passes over at most ``AT_ONCE`` pairs.
LEAST_GAIN_OF_FEW = 8
#: Number of pairs of rows that a full pass forms at once.
AT_ONCE = 1 << 21


@dataclass(frozen=True, eq=False, kw_only=True)
class Lengths:
    """The length of the longest run of a selection, and the number of all rows of its binder."""

    longest: int
    rows: int


class RunSlots:
    """Makes slots for binders that take runs of sorted rows."""

    def __init__(self, state: State, slots: Slots, cells: Cells):
        self.state, self.slots, self.cells = state, slots, cells

    def lengths(self, sel: Selection, crowded: bool = False) -> Lengths | None:
        """The lengths of a selection's runs, or None if an axis of places would not pay.

        crowded   whether rows laid out flat would be too many, so that it pays in any case
        """
        run = members.unmasked(sel)
        if not (run.keys or run.orders) or not run.parents:
            return None
        if not all(map(selections.listed, (run.binder, *run.parents))):
            return None
        around = math.prod(elements.extent(self.state.bound, parent.domain) for parent in run.parents)
        if around > MOST_CELLS:
            return None
        size = realising.realise(self.state.bound, run, empty="keep").size
        assert size is not None
        rows = len(realising.index(self.state.bound, members.alone(sel)).rows)
        longest = max(int(size.max(initial=0)), 1)
        gain = LEAST_GAIN if around * rows > AT_ONCE else LEAST_GAIN_OF_FEW
        if crowded or gain * longest <= rows:
            return Lengths(longest=longest, rows=rows)
        return None

    def slot(
        self, sel: Selection, env: Env, way: Way, averaged: bool, crowded: bool = False
    ) -> tuple[Slot, ReducedBinder] | None:
        """The rows of the runs by their places, with their weights; None where all rows under a mask
        do as well."""
        lengths = self.lengths(sel, crowded)
        if lengths is None:
            return None
        run = members.unmasked(sel)
        ranges = realising.realise(self.state.bound, run, empty="keep")
        assert ranges.start is not None and ranges.size is not None
        state, g, binder = self.state, self.state.graph, sel.binder
        stem = state.unique(f"{binder.name}_run")
        parents = [env[parent].ids for parent in run.parents]
        key = state.ship(f"{stem}_places", np.arange(lengths.longest))
        axis = g.axis(state.unique(binder.name), lengths.longest, "all")
        places = state.take(key, g.make(arange, axis=axis, key=key), ())
        if averaged and state.thinning.nests:
            state.thinning.nests[-1][key] = lengths.longest
        start = state.cells(f"{stem}_start", ranges.start, parents)
        size = state.cells(f"{stem}_size", ranges.size, parents)
        at = g.make(run_places, [places, size])
        # Places behind the end of the last run have a row too, whose weight is 0.
        rows = np.concatenate([ranges.rows, np.repeat(ranges.rows[-1:], lengths.longest)])
        ids = state.take(state.ship(f"{stem}_rows", rows), g.apply("add", start, at), ())
        slot = self.slots.of_ids(sel, ids, self.slots.members(sel))
        weight = g.make(run_weights, [places, size])
        if ranges.skip is not None:
            not_skipped = g.apply("ne", at, state.cells(f"{stem}_skip", ranges.skip, parents))
            weight = g.apply("mul", weight, g.make(number, [not_skipped]))
        if sel.masks:
            weight = g.apply("mul", weight, self.cells.tests(sel, {**env, binder: slot}))
        empty = self.empty(sel, env, way)
        if empty is not None:
            key = state.unique(f"{stem}_empty")
            is_empty = state.cells(key, empty.astype(np.float64), [env[p].ids for p in sel.parents])
            weight = g.apply("max", weight, is_empty)
        count = g.total(weight, [axis])
        return slot, ReducedBinder(binder=binder, axis=axis, weight=weight, count=count, parents=sel.parents)

    def empty(self, sel: Selection, env: Env, way: Way) -> np.ndarray | None:
        """Mask of the combinations of outer elements without rows; None if a sum over no rows is wanted.

        Such a combination does not occur, so that its weights may be anything: they become 1. F0705 if
        one does occur.
        """
        if way.total or way.inside(sel):
            return None
        count = element_counts(realising.realise(self.state.bound, sel, empty="keep"))
        return empty_combinations(self.state.bound, sel.binder, sel.parents, count, env)
