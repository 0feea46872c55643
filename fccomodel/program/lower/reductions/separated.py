"""Full passes that form no pairs of rows: reductions by their separated forms, and by cumulative sums
over sorted rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from fccomodel.core import ir
from fccomodel.core.rewrite import Rewriter
from fccomodel.data.bound import Bound
from fccomodel.evaluation.sets import elements, selections
from fccomodel.evaluation.sets.selections import Ranges, Selection
from fccomodel.library import reductions
from fccomodel.normal_form import constant_values
from fccomodel.normal_form.separation import PiecewiseMean, Separation
from fccomodel.normal_form.smoothing import Smoothed
from fccomodel.program.lower.binders.binders import Binders
from fccomodel.program.lower.leaves.cells import Cells
from fccomodel.program.lower.leaves.met import counted, filled, vacant
from fccomodel.program.lower.leaves.slots import Slots
from fccomodel.program.lower.records import Way
from fccomodel.program.lower.state import Env, Lower, State
from fccomodel.program.operations import Val
from fccomodel.program.operations.entrywise import number
from fccomodel.program.operations.indexing import take_val
from fccomodel.program.operations.reductions import cumulated, piecewise_mean, piecewise_runs

#: combinations of outer rows whose places are listed
MOST_CELLS = 1 << 24


@dataclass(frozen=True, eq=False, kw_only=True)
class Run:
    """Runs of rows that all begin, or all end, where their groups do.

    after   the sums are of the rows from each one on, not up to each
    groups  the rows of each group in a line of equal length, their number where there is none; None
            for one group
    places  where each run's sum stands in these lines laid end to end; behind the last for a run without rows
    """

    selection: Selection
    ranges: Ranges
    after: bool
    places: np.ndarray
    groups: np.ndarray | None = None

    def filled(self, vacant: np.ndarray) -> Run:
        """The same where vacant places have the run of another."""
        other = np.unravel_index(int(np.argmax(counted(self.ranges) > 0)), vacant.shape)
        places = np.where(vacant, self.places[other], self.places)
        return replace(self, ranges=filled(self.ranges, vacant), places=places)


class Separated:
    """Reductions over pairs of rows that need no pairs (see ``separation``)."""

    def __init__(self, state: State, slots: Slots, cells: Cells, binders: Binders, lower: Lower):
        self.state, self.slots, self.cells, self.binders, self.lower = state, slots, cells, binders, lower
        self.asked = state.full and state.separated
        self.separation = Separation(constant_values(state.bound.problem, state.bound), state.free)
        self.exactly = Rewriter(
            lambda node: node.original if isinstance(node, Smoothed) and node.inner else None
        )
        self.runs: dict[ir.Reduce, Run | None] = {}

    def form(self, node: ir.Reduce) -> ir.Expr | None:
        """The reduction without pairs, in a full pass; of functions without a centre for each pair,
        themselves."""
        if self.asked:
            exact = self.exactly(node)
        else:
            exact = None
        if isinstance(exact, ir.Reduce):
            return self.separation.form(exact)
        return None

    def piecewise_mean(self, node: PiecewiseMean, env: Env) -> Val:
        """The mean or sum of a piecewise quadratic function of sums a_i + b_j over j, from the sorted b."""
        state, inner, g = self.state, node.inner, self.state.graph
        total = reductions.of(inner).total
        (sel,) = selections.split(inner.binders, inner.condition)
        a, pieces = self.lower(node.outer, env), tuple(piece[1:] for piece in node.pieces)
        if not sel.parents:
            ranged = self.binders.ranged(inner.binders, inner.condition, env, Way(body=inner.body))
            b = self.lower(inner.body, ranged.env)
            mean = g.make(piecewise_mean, [a, b], pieces=pieces)
            if total:
                return g.apply("mul", ranged.parts[0].count, mean)
            return mean
        if total:
            ranges = selections.realise(state.bound, sel, empty="keep")
        else:
            ranges = self.cells.complete_ranges(sel, env)
        assert ranges.start is not None and ranges.size is not None
        stem, parents = state.unique(f"{sel.binder.name}_runs"), [env[p].ids for p in sel.parents]
        slot = self.slots.listed(sel, state.ship(f"{stem}_rows", ranges.rows))
        b = self.lower(inner.body, {**env, sel.binder: slot})
        start, size = (
            state.cells(f"{stem}_start", ranges.start, parents),
            state.cells(f"{stem}_size", ranges.size, parents),
        )
        sums = g.make(piecewise_runs, [a, b, start, size], pieces=pieces)
        if total:
            return sums
        return g.apply("div", sums, g.make(number, [size]))

    def by_runs(self, node: ir.Reduce, env: Env) -> Val | None:
        """A reduction of a function of one row over the rows with equal keys, or on one side of an
        order, for every outer row: one cumulative sum over the sorted rows, which the outer rows
        read at their places. None for one of another form."""
        run = self.run(node)
        if run is None:
            return None
        kind = reductions.of(node)
        if not kind.total:
            empty = vacant(
                self.state.bound, run.selection.binder, run.selection.parents, counted(run.ranges), env
            )
            if empty is None:
                run = run
            else:
                run = run.filled(empty)
        sel, ranges = run.selection, run.ranges
        state, g, log, parents = (
            self.state,
            self.state.graph,
            kind.logarithmic,
            [env[p].ids for p in sel.parents],
        )
        stem = state.unique(f"{sel.binder.name}_runs")
        assert ranges.size is not None
        count = g.make(number, [state.cells(f"{stem}_size", ranges.size, parents)])
        if log:
            count = g.apply("log", count)
        if sel.binder not in state.free(node.body):
            return g.apply("add" if log else "mul", self.lower(node.body, env), count)
        slot = self.slots.listed(sel, state.ship(f"{stem}_rows", ranges.rows))
        value = self.lower(node.body, {**env, sel.binder: slot})
        if run.groups is None:
            groups = None
        else:
            groups = state.ship(f"{stem}_groups", run.groups)
        length = run.ranges.rows.size if run.groups is None else run.groups.size
        sums = g.make(cumulated, [value], event=(length + 1,), log=log, after=run.after, groups=groups)
        total = g.make(take_val, [sums, state.cells(f"{stem}_place", run.places, parents)])
        if kind.total:
            return total
        return g.apply("sub" if log else "div", total, count)

    def run(self, node: ir.Reduce) -> Run | None:
        """How cumulative sums give a reduction, in a full pass; None where they do not."""
        if not self.asked:
            return None
        if node not in self.runs:
            sel = self.separation.run(node)
            few = sel is not None and math.prod(self.state.total(p) for p in sel.parents) <= MOST_CELLS
            if sel is not None and few:
                self.runs[node] = _run(self.state.bound, sel)
            else:
                self.runs[node] = None
        return self.runs[node]


def _run(bound: Bound, sel: Selection) -> Run | None:
    """Where the runs of a selection stand; None where some neither begin nor end with their groups."""
    ranges, bounds = selections.realise(bound, sel, empty="keep"), selections.index(bound, sel).bounds
    assert ranges.start is not None and ranges.size is not None
    start, size = ranges.start, ranges.size
    group = (np.searchsorted(bounds, start, "right") - 1).clip(0, len(bounds) - 2)
    met = np.zeros(size.shape, dtype=bool)
    met[np.ix_(*(elements.ids(bound, p.domain) for p in sel.parents))] = True
    met &= size > 0
    after = bool((start + size == bounds[group + 1])[met].all())
    lengths = np.diff(bounds)
    longest = int(lengths.max(initial=1))
    if (
        not after
        and not bool((start == bounds[group])[met].all())
        or longest * len(lengths) > 8 * max(len(ranges.rows), 1)
    ):
        return None
    if after:
        shift = longest - lengths
    else:
        shift = np.zeros_like(lengths)
    if after:
        first = start
    else:
        first = start + size - 1
    places = np.where(met, group * longest + shift[group] + first - bounds[group], longest * len(lengths))
    if len(lengths) == 1:
        return Run(selection=sel, ranges=ranges, after=after, places=places)
    column = np.arange(longest) - shift[:, None]
    groups = np.where(
        (column >= 0) & (column < lengths[:, None]), bounds[:-1, None] + column, len(ranges.rows)
    )
    return Run(selection=sel, ranges=ranges, after=after, places=places, groups=groups)
