"""Predicts how many numbers a full pass forms, before it is lowered.

A pass that forms too many goes through its rows in slices, or takes another form of its reductions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fccomodel.core import ir
from fccomodel.evaluation import distributed
from fccomodel.evaluation.sets import elements, realising, selections
from fccomodel.library import reductions
from fccomodel.normal_form.separation import PiecewiseMean
from fccomodel.program.lower.binders.runs import AT_ONCE, RunSlots
from fccomodel.program.lower.leaves.cells import keyed
from fccomodel.program.lower.reductions.separated import Separated
from fccomodel.program.lower.state import State

#: Smallest ratio (product of axes / rows laid out flat) for which rows are laid out flat cell after cell.
LEAST_GAIN_OF_FLAT = 8


@dataclass(frozen=True, kw_only=True)
class Extent:
    """The axis of a binder in a full pass.

    length   its length
    needs    outer binders along whose axes values of this binder lie too
    covers   outer binders that lie along this axis, because its rows are laid out flat for all their elements
    beside   those of them that are earlier binders of the same reduction
    """

    length: int
    needs: tuple[ir.Binder, ...] = ()
    covers: tuple[ir.Binder, ...] = ()
    beside: tuple[ir.Binder, ...] = ()


def _axes(free: Iterable[ir.Binder], extents: Mapping[ir.Binder, Extent]) -> set[ir.Binder]:
    """The binders along whose axes a value lies, if it depends on ``free``."""
    axes: set[ir.Binder] = set()
    fresh = [b for b in free if b in extents]
    while fresh:
        binder = fresh.pop()
        if binder not in axes:
            axes.add(binder)
            fresh += [b for b in extents[binder].needs if b in extents]
    covered = {outer for binder in axes for outer in extents[binder].covers}
    return axes - covered


def _is_flat(axes: set[ir.Binder], extents: Mapping[ir.Binder, Extent]) -> bool:
    """Whether the axes are a single axis of rows laid out flat, and so no product."""
    return len(axes) == 1 and all(extents[binder].covers for binder in axes)


class PairCounts:
    """Counts the pairs of rows that expressions are evaluated on."""

    def __init__(self, state: State, separated: Separated, runs: RunSlots):
        self.state, self.separated, self.runs = state, separated, runs
        self.distributed = distributed.of(state.bound)
        self.largest: dict[tuple, float] = {}

    def pairs(
        self, node: ir.Expr, around: Mapping[ir.Binder, int] | None = None, through: ir.Binder | None = None
    ) -> float:
        """The size of the largest product of axes in a full pass over a node.

        around    outer binders with the lengths of their axes
        through   only products that this binder takes part in; None for all products
        """
        key = (node, tuple((around or {}).items()), through)
        if key not in self.largest:
            parts = list(self.parts(node))
            extents = {b: Extent(length=size) for b, size in (around or {}).items()}
            for part in parts:
                extents |= self.extents(part, extents)
            products = []
            for part in parts:
                axes = _axes(self.state.free(part), extents)
                along = {earlier for b in axes for earlier in extents[b].beside}
                takes_part = through is None or through in axes or through in along
                if takes_part and not _is_flat(axes, extents):
                    products.append(math.prod(extents[b].length for b in axes) * self.width(part))
            self.largest[key] = float(max(products, default=1.0))
        return self.largest[key]

    def entries_along_runs(self, node: ir.Expr) -> float:
        """The entries of all values of a full pass over a node that lie along runs of rows."""
        parts = list(self.parts(node))
        extents: dict[ir.Binder, Extent] = {}
        for part in parts:
            extents |= self.extents(part, extents)
        count = 0.0
        for part in parts:
            axes = _axes(self.state.free(part), extents)
            if any(extents[b].needs for b in axes):
                count += float(math.prod(extents[b].length for b in axes)) * self.width(part)
        return count

    def parts(self, node: ir.Expr) -> Iterator[ir.Expr]:
        """The expressions that a full pass over a node evaluates."""
        by_key: dict[int, ir.Expr] = {}
        stack = [node]
        while stack:
            part = stack.pop()
            if id(part) not in by_key:
                by_key[id(part)] = part
                stack.extend(self.below(part))
                yield part

    def below(self, node: ir.Expr) -> tuple[ir.Expr, ...]:
        """The expressions that a full pass evaluates for the value of a node."""
        form = self.distributed.form(node)
        if form is not None:
            return (form,)
        sides = self.distributed.sides(node)
        if sides is not None:
            return sides
        if isinstance(node, ir.LetRef):
            return (*node.args, node.let.body)
        if isinstance(node, PiecewiseMean):
            return (node.outer, node.inner.body)
        if not isinstance(node, ir.Reduce):
            return node.children
        separated = self.separated.form(node)
        if separated is not None:
            return (separated,)
        if self.separated.run(node) or not self.dense(node):
            return (node.body, *node.options.values())
        return node.children

    def dense(self, node: ir.Reduce) -> bool:
        """Whether a reduction's condition is evaluated for every pair."""
        parts = selections.split(node.binders, node.condition)
        return any(part.orders or part.excludes or part.masks for part in parts)

    def spread_out(self, sels: Sequence[selections.Selection]) -> bool:
        """Whether a product of axes is too large for selections that keys of the same outer elements
        decide, and much larger than their rows laid out flat."""
        if not all(map(keyed, sels)) or len({sel.parents for sel in sels}) > 1:
            return False
        if not all(selections.listed(parent) for parent in sels[0].parents):
            return False
        product = math.prod(elements.extent(self.state.bound, parent.domain) for parent in sels[0].parents)
        for sel in sels:
            runs = self.runs.lengths(sel, crowded=True)
            if runs is None:
                return False
            product *= runs.longest
        return product > max(AT_ONCE, LEAST_GAIN_OF_FLAT * self.listed(*sels))

    def extents(self, node: ir.Expr, around: Mapping[ir.Binder, Extent]) -> dict[ir.Binder, Extent]:
        """The axes that a node adds, by binder; ``around`` are those of outer binders."""
        extents: dict[ir.Binder, Extent] = {}
        if isinstance(node, ir.LetRef | PiecewiseMean):
            if isinstance(node, ir.LetRef):
                binders = node.let.binders
            else:
                binders = node.inner.binders
            for binder in binders:
                if isinstance(binder.domain, ir.RowSet):
                    rows = elements.ids(self.state.bound, binder.domain)
                    extents[binder] = Extent(length=len(rows))
            return extents
        if not isinstance(node, ir.Reduce) or self.separated.form(node) is not None:
            return extents
        flat: dict[ir.Binder, selections.Selection] = {}
        sels = selections.split(node.binders, node.condition)
        by_places = reductions.of(node).program is not None and not self.spread_out(sels)
        for sel in sels:
            if isinstance(sel.binder.domain, ir.Distribution):
                extents[sel.binder] = Extent(length=8 if extents else self.state.bound.draws)
            elif not isinstance(sel.binder.domain, ir.VectorSet):
                if by_places or any(around[p].needs for p in sel.parents if p in around):
                    extent: Extent | None = self.by_places(sel)
                else:
                    extent = self.extent(node, sel, flat)
                if extent is not None:
                    extents[sel.binder] = extent
        return extents

    def extent(
        self, node: ir.Reduce, sel: selections.Selection, flat: dict[ir.Binder, selections.Selection]
    ) -> Extent | None:
        """The axis of one binder of a reduction; None for few rows that are laid out flat.

        flat   the earlier binders whose rows are laid out flat, with their selections; a binder that
               joins them is added
        """
        rows = len(elements.ids(self.state.bound, sel.binder.domain))
        if not keyed(sel) or self.separated.run(node):
            return self.by_places(sel)
        few = max(AT_ONCE, 2 * rows)
        if sel.binder is node.binders[0]:
            crowded = self.listed(sel) > few
            if not crowded or self.runs.lengths(sel, crowded) is None:
                flat[sel.binder] = sel
                return Extent(length=self.listed(sel), covers=sel.parents)
        beside = [other for other in flat.values() if other.parents == sel.parents]
        listed = self.listed(sel, *beside)
        crowded = listed > few
        runs = self.runs.lengths(sel, crowded)
        if runs is None or not crowded:
            if not beside:
                return None
            flat[sel.binder] = sel
            earlier = tuple(other.binder for other in beside)
            return Extent(length=listed, covers=(*sel.parents, *earlier), beside=earlier)
        return Extent(length=runs.longest, needs=sel.parents)

    def by_places(self, sel: selections.Selection) -> Extent:
        """The axis of one binder whose rows lie by their places in runs, or all under a mask."""
        runs = self.runs.lengths(sel)
        if runs is None:
            return Extent(length=len(elements.ids(self.state.bound, sel.binder.domain)))
        return Extent(length=runs.longest, needs=sel.parents)

    def listed(self, *sels: selections.Selection) -> int:
        """The number of combinations of rows that selections with the same parents have in all cells."""
        count: np.ndarray | float = 1.0
        for sel in sels:
            size = realising.realise(self.state.bound, sel, empty="keep").size
            assert size is not None
            count = count * size.astype(np.float64)
        return int(np.sum(count))

    def width(self, node: ir.Expr) -> float:
        """The number of entries of a vector that exists for every pair of rows; 1 for other expressions."""
        if not node.shape or isinstance(node, ir.Column | ir.Var):
            return 1.0
        if len(self.state.free(node)) > 1:
            return float(math.prod(self.state.shape(node.shape)))
        return 1.0
