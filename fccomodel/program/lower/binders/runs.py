"""Binders whose rows are a run of an order, in a full pass: an axis as long as the longest run, in
place of all rows.

For elements p around it, a binder j with keys and orders takes ``rows[start(p) : start(p) +
size(p)]`` of its sorted rows. The value of a pass lies on the axes of p and one of places 0 ..
longest - 1; a weight of 0 stands behind the end of a run. Work and memory are (elements around) x
(longest run), where a mask over all rows takes (elements around) x (rows).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fccomodel.evaluation.sets import elements, members, selections
from fccomodel.evaluation.sets.selections import Selection
from fccomodel.program.lower.leaves.cells import Cells
from fccomodel.program.lower.leaves.met import counted, vacant
from fccomodel.program.lower.leaves.slots import Slots
from fccomodel.program.lower.records import Part, Slot, Way
from fccomodel.program.lower.state import Env, State
from fccomodel.program.operations.entrywise import number
from fccomodel.program.operations.runs import run_places, run_weights
from fccomodel.program.operations.sources import arange

#: Combinations of elements around a binder for which the place of a run is kept.
MOST_CELLS = 1 << 22
#: Runs are laid out where the longest has at most this part of the rows, ...
LEAST_GAIN = 2
#: ... and, in passes over no more pairs than a pass forms at once, at most this part.
LEAST_GAIN_OF_FEW = 8
#: Pairs of rows that a full pass forms at once.
AT_ONCE = 1 << 21


@dataclass(frozen=True, eq=False, kw_only=True)
class Lengths:
    """How long the runs of a selection are: the ``longest``, and the number of all rows of the binder."""

    longest: int
    rows: int


class Runs:
    """Binders that take runs of sorted rows."""

    def __init__(self, state: State, slots: Slots, cells: Cells):
        self.state, self.slots, self.cells = state, slots, cells

    def lengths(self, sel: Selection, crowded: bool = False) -> Lengths | None:
        """The lengths of a selection's runs, where they are so much shorter than all rows that an axis
        of places pays, or where rows that lie flat would be too many (``crowded``)."""
        run = members.unmasked(sel)
        if (
            not (run.keys or run.orders)
            or not run.parents
            or not all(map(selections.listed, (run.binder, *run.parents)))
        ):
            return None
        around = math.prod(elements.extent(self.state.bound, parent.domain) for parent in run.parents)
        if around > MOST_CELLS:
            return None
        size = selections.realise(self.state.bound, run, empty="keep").size
        assert size is not None
        rows = len(selections.index(self.state.bound, members.alone(sel)).rows)
        longest = max(int(size.max(initial=0)), 1)
        gain = LEAST_GAIN if around * rows > AT_ONCE else LEAST_GAIN_OF_FEW
        if crowded or gain * longest <= rows:
            return Lengths(longest=longest, rows=rows)
        return None

    def slot(
        self, sel: Selection, env: Env, way: Way, averaged: bool, crowded: bool = False
    ) -> tuple[Slot, Part] | None:
        """The rows of the runs by their places, with their weights; None where all rows under a mask
        do as well."""
        lengths = self.lengths(sel, crowded)
        if lengths is None:
            return None
        run = members.unmasked(sel)
        ranges = selections.realise(self.state.bound, run, empty="keep")
        assert ranges.start is not None and ranges.size is not None
        state, g, binder = self.state, self.state.graph, sel.binder
        stem, parents = state.unique(f"{binder.name}_run"), [env[parent].ids for parent in run.parents]
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
        slot = Slot(
            binder=binder,
            ids=ids,
            pos=ids,
            n=state.total(binder),
            members=self.slots.members(sel),
            selection=sel,
        )
        weight = g.make(run_weights, [places, size])
        if ranges.skip is not None:
            kept = g.apply("ne", at, state.cells(f"{stem}_skip", ranges.skip, parents))
            weight = g.apply("mul", weight, g.make(number, [kept]))
        if sel.masks:
            weight = g.apply("mul", weight, self.cells.tests(sel, {**env, binder: slot}))
        if (empty := self.empty(sel, env, way)) is not None:
            borrowed = state.cells(
                state.unique(f"{stem}_empty"), empty.astype(np.float64), [env[p].ids for p in sel.parents]
            )
            weight = g.apply("max", weight, borrowed)
        part = Part(
            binder=binder, axis=axis, weight=weight, count=g.total(weight, [axis]), parents=sel.parents
        )
        return slot, part

    def empty(self, sel: Selection, env: Env, way: Way) -> np.ndarray | None:
        """Which combinations of elements around this reduction have no rows: they are not met, and
        take any in their place. F0705 where one of them is met."""
        if way.total or way.inside(sel):
            return None
        count = counted(selections.realise(self.state.bound, sel, empty="keep"))
        return vacant(self.state.bound, sel.binder, sel.parents, count, env)
