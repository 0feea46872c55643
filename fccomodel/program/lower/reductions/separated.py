"""Full passes without pairs of rows: by separated forms, and by cumulative sums over sorted rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from fccomodel.core import ir
from fccomodel.core.rewrite import Rewriter
from fccomodel.data.bound import Bound
from fccomodel.evaluation.sets import elements, realising, selections
from fccomodel.evaluation.sets.realising import SelectionArrays
from fccomodel.evaluation.sets.selections import Selection
from fccomodel.library import reductions
from fccomodel.normal_form import constant_values
from fccomodel.normal_form.separation import PiecewiseMean, Separation
from fccomodel.normal_form.smoothing import Smoothed
from fccomodel.program.lower.binders.binders import Binders
from fccomodel.program.lower.leaves.cells import Cells
from fccomodel.program.lower.leaves.empty_ranges import (
    element_counts,
    empty_combinations,
    with_borrowed_ranges,
)
from fccomodel.program.lower.leaves.slots import Slots
from fccomodel.program.lower.records import Way
from fccomodel.program.lower.state import Env, Lower, State
from fccomodel.program.operations import Val
from fccomodel.program.operations.entrywise import number
from fccomodel.program.operations.indexing import take_val
from fccomodel.program.operations.reductions import cumulated, piecewise_mean, piecewise_runs

#: Largest number of combinations of outer rows, whose places are stored.
MOST_CELLS = 1 << 24
#: Largest number of places in the lines of all groups, for each row.
MOST_PLACES_PER_ROW = 8


@dataclass(frozen=True, eq=False, kw_only=True)
class SortedRun:
    """Runs of sorted rows that all begin, or all end, together with the groups that they are in.

    A sum over a run is then a cumulative sum, read at the other end of the run.

    selection   the selection
    ranges      its ranges
    after       whether runs end with their groups, so that sums go from a row to the end
    groups      the row numbers of each group, in lines of equal length; the number of all rows stands for
                no row. None for a single group
    places      for each run, the place of its sum when all lines are laid end to end; a run without
                rows has the place after the last
    """

    selection: Selection
    ranges: SelectionArrays
    after: bool
    places: np.ndarray
    groups: np.ndarray | None = None

    def with_borrowed_runs(self, empty: np.ndarray) -> SortedRun:
        """The runs, with each empty one replaced by a run that has rows."""
        lender = np.unravel_index(int(np.argmax(element_counts(self.ranges) > 0)), empty.shape)
        places = np.where(empty, self.places[lender], self.places)
        return replace(self, ranges=with_borrowed_ranges(self.ranges, empty), places=places)


class Separated:
    """Lowers reductions over pairs of rows without forming pairs (see ``separation``)."""

    def __init__(self, state: State, slots: Slots, cells: Cells, binders: Binders, lower: Lower):
        self.state, self.slots, self.cells, self.binders, self.lower = state, slots, cells, binders, lower
        self.enabled = state.full and state.separated
        self.separation = Separation(constant_values(state.bound.problem, state.bound), state.free)
        self.without_inner_envelopes = Rewriter(
            lambda node: node.original if isinstance(node, Smoothed) and node.inner else None
        )
        self.runs: dict[ir.Reduce, SortedRun | None] = {}

    def form(self, node: ir.Reduce) -> ir.Expr | None:
        """The form of a reduction without pairs, in a full pass; None if it has none.

        Envelopes without a centre for each pair are replaced by the functions themselves.
        """
        if not self.enabled:
            return None
        exact = self.without_inner_envelopes(node)
        if isinstance(exact, ir.Reduce):
            return self.separation.form(exact)
        return None

    def piecewise_mean(self, node: PiecewiseMean, env: Env) -> Val:
        """The mean or sum of a piecewise quadratic function of sums a_i + b_j over j, from the sorted b."""
        state, inner, g = self.state, node.inner, self.state.graph
        total = reductions.of(inner).total
        (sel,) = selections.split(inner.binders, inner.condition)
        a = self.lower(node.outer, env)
        pieces = tuple(piece[1:] for piece in node.pieces)
        if not sel.parents:
            ranged = self.binders.ranged(inner.binders, inner.condition, env, Way(body=inner.body))
            b = self.lower(inner.body, ranged.env)
            mean = g.make(piecewise_mean, [a, b], pieces=pieces)
            if total:
                return g.apply("mul", ranged.parts[0].count, mean)
            return mean
        if total:
            ranges = realising.realise(state.bound, sel, empty="keep")
        else:
            ranges = self.cells.complete_ranges(sel, env)
        assert ranges.start is not None and ranges.size is not None
        stem = state.unique(f"{sel.binder.name}_runs")
        parents = [env[p].ids for p in sel.parents]
        slot = self.slots.listed(sel, state.ship(f"{stem}_rows", ranges.rows))
        b = self.lower(inner.body, {**env, sel.binder: slot})
        start = state.cells(f"{stem}_start", ranges.start, parents)
        size = state.cells(f"{stem}_size", ranges.size, parents)
        sums = g.make(piecewise_runs, [a, b, start, size], pieces=pieces)
        if total:
            return sums
        return g.apply("div", sums, g.make(number, [size]))

    def by_runs(self, node: ir.Reduce, env: Env) -> Val | None:
        """A reduction by a cumulative sum, which every outer row reads at its place; None otherwise.

        The body depends on one row, and the rows are those with equal keys, or on one side of an order.
        """
        run = self.run(node)
        if run is None:
            return None
        state, g = self.state, self.state.graph
        kind = reductions.of(node)
        log = kind.logarithmic
        sel = run.selection
        if not kind.total:
            count_of = element_counts(run.ranges)
            empty = empty_combinations(state.bound, sel.binder, sel.parents, count_of, env)
            if empty is not None:
                run = run.with_borrowed_runs(empty)
        ranges = run.ranges
        parents = [env[p].ids for p in sel.parents]
        stem = state.unique(f"{sel.binder.name}_runs")
        assert ranges.size is not None
        count = g.make(number, [state.cells(f"{stem}_size", ranges.size, parents)])
        if log:
            count = g.apply("log", count)
        if sel.binder not in state.free(node.body):
            return g.apply("add" if log else "mul", self.lower(node.body, env), count)
        slot = self.slots.listed(sel, state.ship(f"{stem}_rows", ranges.rows))
        value = self.lower(node.body, {**env, sel.binder: slot})
        groups = None
        length = ranges.rows.size
        if run.groups is not None:
            groups = state.ship(f"{stem}_groups", run.groups)
            length = run.groups.size
        sums = g.make(cumulated, [value], event=(length + 1,), log=log, after=run.after, groups=groups)
        total = g.make(take_val, [sums, state.cells(f"{stem}_place", run.places, parents)])
        if kind.total:
            return total
        return g.apply("sub" if log else "div", total, count)

    def run(self, node: ir.Reduce) -> SortedRun | None:
        """The runs by which cumulative sums give a reduction in a full pass; None if they do not."""
        if not self.enabled:
            return None
        if node not in self.runs:
            self.runs[node] = None
            sel = self.separation.run(node)
            if sel is not None and math.prod(self.state.total(p) for p in sel.parents) <= MOST_CELLS:
                self.runs[node] = _run(self.state.bound, sel)
        return self.runs[node]


def _run(bound: Bound, sel: Selection) -> SortedRun | None:
    """The runs of a selection; None if some neither begin nor end together with their groups.

    None too if lines of the length of the longest group would waste most of their places.
    """
    ranges = realising.realise(bound, sel, empty="keep")
    bounds = realising.index(bound, sel).bounds  # first row of each group, and the number of rows
    assert ranges.start is not None and ranges.size is not None
    start, size = ranges.start, ranges.size
    group = (np.searchsorted(bounds, start, "right") - 1).clip(0, len(bounds) - 2)
    has_rows = np.zeros(size.shape, dtype=bool)
    has_rows[np.ix_(*(elements.ids(bound, p.domain) for p in sel.parents))] = True
    has_rows &= size > 0
    ends_with_group = bool((start + size == bounds[group + 1])[has_rows].all())
    begins_with_group = bool((start == bounds[group])[has_rows].all())
    if not ends_with_group and not begins_with_group:
        return None
    lengths = np.diff(bounds)
    longest = int(lengths.max(initial=1))
    if longest * len(lengths) > MOST_PLACES_PER_ROW * max(len(ranges.rows), 1):
        return None
    if ends_with_group:
        shift = longest - lengths  # groups are aligned at the ends of their lines
        read_at = start
    else:
        shift = np.zeros_like(lengths)
        read_at = start + size - 1
    in_line = group * longest + shift[group] + read_at - bounds[group]
    places = np.where(has_rows, in_line, longest * len(lengths))
    if len(lengths) == 1:
        return SortedRun(selection=sel, ranges=ranges, after=ends_with_group, places=places)
    column = np.arange(longest) - shift[:, None]
    is_row = (column >= 0) & (column < lengths[:, None])
    groups = np.where(is_row, bounds[:-1, None] + column, len(ranges.rows))
    return SortedRun(selection=sel, ranges=ranges, after=ends_with_group, places=places, groups=groups)
