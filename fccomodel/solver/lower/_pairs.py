"""Full passes that form no pairs of rows where reductions separate, and how many pairs are formed where they do not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from fccomodel.core import ir
from fccomodel.core.rewrite import Rewriter
from fccomodel.data.bound import Bound
from fccomodel.evaluation import draws, elements, selections
from fccomodel.evaluation.selections import Ranges, Selection
from fccomodel.library import reductions
from fccomodel.normal import constants
from fccomodel.normal.separation import PiecewiseMean, Separation
from fccomodel.normal.smoothing import Smoothed
from fccomodel.solver.lower._met import counted, filled, vacant
from fccomodel.solver.lower._ranges import Ranging
from fccomodel.solver.lower._records import Slot
from fccomodel.solver.lower._state import Env
from fccomodel.solver.operations import Val
from fccomodel.solver.operations.entrywise import number
from fccomodel.solver.operations.indexing import take_val
from fccomodel.solver.operations.reductions import cumulated, piecewise_mean, piecewise_runs
from fccomodel.solver.operations.sources import arange

#: combinations of outer rows whose places are listed
MOST_CELLS = 1 << 24


@dataclass(frozen=True, eq=False, kw_only=True)
class Run:
    """Runs of rows that all begin, or all end, where their groups do.

    after   the sums are of the rows from each one on, not up to each
    groups  the rows of each group in a line of equal length, their number where there is none; None for one group
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


@dataclass(eq=False)
class Pairing(Ranging):
    """``separated``: reductions over pairs of rows are taken by their separated forms (see ``separation``)."""

    separated: bool = True
    sized: dict[tuple, tuple[ir.Expr, float]] = field(default_factory=dict)
    known_runs: dict[int, tuple[ir.Expr, Run | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.separation = Separation(constants(self.bound.problem, self.bound), self.free)
        self.exactly = Rewriter(lambda node: node.original if isinstance(node, Smoothed) and node.inner else None)

    def form(self, node: ir.Reduce) -> ir.Expr | None:
        """The reduction without pairs, in a full pass; of functions without a centre for each pair, themselves."""
        if not self.full or not self.separated:
            return None
        exact = self.exactly(node)
        return self.separation.form(exact) if isinstance(exact, ir.Reduce) else None

    def piecewise_mean(self, node: PiecewiseMean, env: Env) -> Val:
        """The mean or sum of a piecewise quadratic function of sums a_i + b_j over j, from the sorted b."""
        own, g = node.own, self.graph
        total = reductions.of(own).total
        (sel,) = selections.split(own.binders, own.condition)
        a, pieces = self.expr(node.outer, env), tuple(piece[1:] for piece in node.pieces)
        if not sel.parents:
            ranged = self.ranges(own.binders, own.condition, env, body=own.body)
            b = self.expr(own.body, ranged.env)
            mean = g.make(piecewise_mean, [a, b], pieces=pieces)
            return g.apply("mul", ranged.parts[0].count, mean) if total else mean
        found = selections.realise(self.bound, sel, empty="keep") if total else self.complete_ranges(sel, env)
        assert found.start is not None and found.size is not None
        stem, parents = self.unique(f"{sel.binder.name}_runs"), [env[p].ids for p in sel.parents]
        slot = self.listed(sel, self.ship(f"{stem}_rows", found.rows))
        b = self.expr(own.body, {**env, sel.binder: slot})
        start, size = self.cells(f"{stem}_start", found.start, parents), self.cells(f"{stem}_size", found.size, parents)
        sums = g.make(piecewise_runs, [a, b, start, size], pieces=pieces)
        return sums if total else g.apply("div", sums, g.make(number, [size]))

    # ----------------------------------------------------------------------------------------------------------------- runs
    def runs(self, node: ir.Reduce, env: Env) -> Val | None:
        """A reduction of a function of one row over the rows with equal keys, or on one side of an order, for every outer row:
        one cumulative sum over the sorted rows, which the outer rows read at their places. None for one of another form."""
        run = self.run(node)
        if run is None:
            return None
        kind = reductions.of(node)
        if not kind.total:
            empty = vacant(self.bound, run.selection.binder, run.selection.parents, counted(run.ranges), env)
            run = run if empty is None else run.filled(empty)
        sel, found = run.selection, run.ranges
        g, log, parents = self.graph, kind.logarithmic, [env[p].ids for p in sel.parents]
        stem = self.unique(f"{sel.binder.name}_runs")
        assert found.size is not None
        count = g.make(number, [self.cells(f"{stem}_size", found.size, parents)])
        count = g.apply("log", count) if log else count
        if sel.binder not in self.free(node.body):
            return g.apply("add" if log else "mul", self.expr(node.body, env), count)
        slot = self.listed(sel, self.ship(f"{stem}_rows", found.rows))
        value = self.expr(node.body, {**env, sel.binder: slot})
        groups = None if run.groups is None else self.ship(f"{stem}_groups", run.groups)
        length = run.ranges.rows.size if run.groups is None else run.groups.size
        sums = g.make(cumulated, [value], event=(length + 1,), log=log, after=run.after, groups=groups)
        place = self.cells(f"{stem}_place", run.places, parents)
        total = g.make(take_val, [sums, place])
        return total if kind.total else g.apply("sub" if log else "div", total, count)

    def run(self, node: ir.Reduce) -> Run | None:
        """How cumulative sums give a reduction, in a full pass; None where they do not."""
        if not self.full or not self.separated:
            return None
        if id(node) not in self.known_runs:
            sel = self.separation.run(node)
            few = sel is not None and math.prod(self.total(p) for p in sel.parents) <= MOST_CELLS
            self.known_runs[id(node)] = (node, _run(self.bound, sel) if sel is not None and few else None)
        return self.known_runs[id(node)][1]

    def listed(self, sel: Selection, key: str) -> Slot:
        """The binder at the rows of an array, in their order."""
        axis = self.graph.axis(self.unique(sel.binder.name), len(self.data[key]), "all")
        pos = self.graph.make(arange, axis=axis)
        ids = self.take(key, pos, ())
        rows = self.data[key]
        return Slot(binder=sel.binder, ids=ids, pos=ids, n=self.total(sel.binder), members=rows, selection=sel)

    # ---------------------------------------------------------------------------------------------------------------- sizes
    def pairs(self, node: ir.Expr, around: Mapping[ir.Binder, int] | None = None, through: ir.Binder | None = None) -> float:
        """Numbers in the largest product of axes of a full pass over a node, those of ``around`` included; ``through``: among
        the products that this binder takes part in."""
        key = (id(node), tuple((around or {}).items()), through)
        if key not in self.sized:
            sizes, parts = dict(around or {}), list(self.parts(node))
            for part in parts:
                sizes |= self.lengths(part)
            products = [
                math.prod(sizes.get(b, 1) for b in self.free(part)) * self.width(part)
                for part in parts
                if through is None or through in self.free(part)
            ]
            self.sized[key] = (node, float(max(products, default=1.0)))
        return self.sized[key][1]

    def parts(self, node: ir.Expr) -> Iterator[ir.Expr]:
        """The expressions that a full pass evaluates."""
        seen: dict[int, ir.Expr] = {}
        stack = [node]
        while stack:
            part = stack.pop()
            if id(part) not in seen:
                seen[id(part)] = part
                stack.extend(self.below(part))
                yield part

    def below(self, node: ir.Expr) -> tuple[ir.Expr, ...]:
        """What a full pass evaluates of a node."""
        if isinstance(node, ir.LetRef):
            return (*node.args, node.let.body)
        if isinstance(node, PiecewiseMean):
            return (node.outer, node.own.body)
        if not isinstance(node, ir.Reduce):
            return node.children
        if (form := self.form(node)) is not None:
            return (form,)
        return (node.body, *node.options.values()) if self.run(node) or not self.dense(node) else node.children

    def dense(self, node: ir.Reduce) -> bool:
        """Its condition is evaluated for every pair."""
        return any(s.orders or s.excludes or s.masks for s in selections.split(node.binders, node.condition))

    def lengths(self, node: ir.Expr) -> dict[ir.Binder, int]:
        """The lengths of the axes that a node adds."""
        found: dict[ir.Binder, int] = {}
        if isinstance(node, ir.LetRef | PiecewiseMean):
            binders = node.let.binders if isinstance(node, ir.LetRef) else node.own.binders
            return {b: len(elements.ids(self.bound, b.domain)) for b in binders if isinstance(b.domain, ir.RowSet)}
        if not isinstance(node, ir.Reduce) or self.form(node) is not None:
            return found
        for sel in selections.split(node.binders, node.condition):
            if isinstance(sel.binder.domain, ir.Distribution):
                found[sel.binder] = 8 if found else draws.DRAWS
            elif isinstance(sel.binder.domain, ir.VectorSet):
                continue
            elif not self.keyed(sel) or self.run(node):
                found[sel.binder] = len(elements.ids(self.bound, sel.binder.domain))
        return found

    def width(self, node: ir.Expr) -> float:
        """The entries of a vector that exists once per pair of rows."""
        if not node.shape or isinstance(node, ir.Column | ir.Var):
            return 1.0
        return float(math.prod(self.shape(node.shape))) if len(self.free(node)) > 1 else 1.0


def _run(bound: Bound, sel: Selection) -> Run | None:
    """Where the runs of a selection stand; None where some neither begin nor end with their groups."""
    found, bounds = selections.realise(bound, sel, empty="keep"), selections.index(bound, sel).bounds
    assert found.start is not None and found.size is not None
    start, size = found.start, found.size
    group = (np.searchsorted(bounds, start, "right") - 1).clip(0, len(bounds) - 2)
    met = np.zeros(size.shape, dtype=bool)
    met[np.ix_(*(elements.ids(bound, p.domain) for p in sel.parents))] = True
    met &= size > 0
    after = bool((start + size == bounds[group + 1])[met].all())
    lengths = np.diff(bounds)
    longest = int(lengths.max(initial=1))
    if not after and not bool((start == bounds[group])[met].all()) or longest * len(lengths) > 8 * max(len(found.rows), 1):
        return None
    shift = longest - lengths if after else np.zeros_like(lengths)
    first = start if after else start + size - 1
    places = np.where(met, group * longest + shift[group] + first - bounds[group], longest * len(lengths))
    if len(lengths) == 1:
        return Run(selection=sel, ranges=found, after=after, places=places)
    column = np.arange(longest) - shift[:, None]
    groups = np.where((column >= 0) & (column < lengths[:, None]), bounds[:-1, None] + column, len(found.rows))
    return Run(selection=sel, ranges=found, after=after, places=places, groups=groups)
