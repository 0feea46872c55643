"""How many numbers a full pass forms."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from fccomodel.core import ir
from fccomodel.evaluation import distributed
from fccomodel.evaluation.sets import elements, selections
from fccomodel.normal_form.separation import PiecewiseMean
from fccomodel.program.lower.binders.runs import AT_ONCE, Runs
from fccomodel.program.lower.leaves.cells import keyed
from fccomodel.program.lower.reductions.separated import Separated
from fccomodel.program.lower.state import State


@dataclass(frozen=True, kw_only=True)
class Extent:
    """The axis of a binder: its length, the binders around whose axes its rows ``need`` too, and those
    that lie along it, as it ``covers`` all of theirs."""

    length: int
    needs: tuple[ir.Binder, ...] = ()
    covers: tuple[ir.Binder, ...] = ()


def _axes(free: Iterable[ir.Binder], extents: Mapping[ir.Binder, Extent]) -> set[ir.Binder]:
    """The binders along whose axes a value lies that depends on some."""
    axes: set[ir.Binder] = set()
    fresh = [b for b in free if b in extents]
    while fresh:
        binder = fresh.pop()
        if binder not in axes:
            axes.add(binder)
            fresh += [b for b in extents[binder].needs if b in extents]
    return axes - {covered for b in axes for covered in extents[b].covers}


def _alone(axes: set[ir.Binder], extents: Mapping[ir.Binder, Extent]) -> bool:
    """Whether they are one axis of rows that lie flat: no product."""
    return len(axes) == 1 and all(extents[b].covers for b in axes)


class Sizes:
    """The pairs of rows that expressions are evaluated on."""

    def __init__(self, state: State, separated: Separated, runs: Runs):
        self.state, self.separated, self.runs = state, separated, runs
        self.distributed = distributed.of(state.bound)
        self.largest: dict[tuple, float] = {}

    def pairs(
        self, node: ir.Expr, around: Mapping[ir.Binder, int] | None = None, through: ir.Binder | None = None
    ) -> float:
        """Numbers in the largest product of axes of a full pass over a node, those of ``around``
        included; ``through``: among the products that this binder takes part in."""
        key = (node, tuple((around or {}).items()), through)
        if key not in self.largest:
            parts = list(self.parts(node))
            extents = {b: Extent(length=size) for b, size in (around or {}).items()}
            for part in parts:
                extents |= self.extents(part)
            products = [
                math.prod(extents[b].length for b in axes) * self.width(part)
                for part in parts
                if (through in (axes := _axes(self.state.free(part), extents)) or through is None)
                and not _alone(axes, extents)
            ]
            self.largest[key] = float(max(products, default=1.0))
        return self.largest[key]

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
        if (form := self.distributed.form(node)) is not None:
            return (form,)
        if (sides := self.distributed.sides(node)) is not None:
            return sides
        if isinstance(node, ir.LetRef):
            return (*node.args, node.let.body)
        if isinstance(node, PiecewiseMean):
            return (node.outer, node.inner.body)
        if not isinstance(node, ir.Reduce):
            return node.children
        if (form := self.separated.form(node)) is not None:
            return (form,)
        if self.separated.run(node) or not self.dense(node):
            return (node.body, *node.options.values())
        return node.children

    def dense(self, node: ir.Reduce) -> bool:
        """Its condition is evaluated for every pair."""
        return any(s.orders or s.excludes or s.masks for s in selections.split(node.binders, node.condition))

    def extents(self, node: ir.Expr) -> dict[ir.Binder, Extent]:
        """The axes that a node adds."""
        extents: dict[ir.Binder, Extent] = {}
        if isinstance(node, ir.LetRef | PiecewiseMean):
            if isinstance(node, ir.LetRef):
                binders = node.let.binders
            else:
                binders = node.inner.binders
            rows = [b for b in binders if isinstance(b.domain, ir.RowSet)]
            return {b: Extent(length=len(elements.ids(self.state.bound, b.domain))) for b in rows}
        if not isinstance(node, ir.Reduce) or self.separated.form(node) is not None:
            return extents
        flat: dict[ir.Binder, selections.Selection] = {}
        for sel in selections.split(node.binders, node.condition):
            if isinstance(sel.binder.domain, ir.Distribution):
                extents[sel.binder] = Extent(length=8 if extents else self.state.bound.draws)
            elif not isinstance(sel.binder.domain, ir.VectorSet):
                extent = self.extent(node, sel, flat)
                if extent is None:
                    extents |= {}
                else:
                    extents |= {sel.binder: extent}
        return extents

    def extent(
        self, node: ir.Reduce, sel: selections.Selection, flat: dict[ir.Binder, selections.Selection]
    ) -> Extent | None:
        """The axis of one binder of a reduction; None of rows that lie flat, and are few. ``flat``:
        the binders before it that lie flat, with theirs."""
        rows = len(elements.ids(self.state.bound, sel.binder.domain))
        if not keyed(sel) or self.separated.run(node):
            found = self.runs.lengths(sel)
            if found is None:
                return Extent(length=rows)
            return Extent(length=found.longest, needs=sel.parents)
        beside = next((other for other in flat.values() if other.parents == sel.parents), None)
        many = max(AT_ONCE, 2 * rows)
        if sel.binder is node.binders[0]:
            crowded = self.listed(sel, None) > many
            if not crowded or self.runs.lengths(sel, crowded) is None:
                flat[sel.binder] = sel
                return Extent(length=self.listed(sel, None), covers=sel.parents)
        crowded = self.listed(sel, beside) > many
        found = self.runs.lengths(sel, crowded)
        if found is None or not crowded:
            return None
        return Extent(length=found.longest, needs=sel.parents)

    def listed(self, sel: selections.Selection, beside: selections.Selection | None) -> int:
        """The rows of all runs of a selection, one after another; of those ``beside`` it each."""
        size = selections.realise(self.state.bound, sel, empty="keep").size
        assert size is not None
        if beside is None:
            return int(size.sum())
        times = selections.realise(self.state.bound, beside, empty="keep").size
        assert times is not None
        return int((size.astype(np.float64) * times).sum())

    def width(self, node: ir.Expr) -> float:
        """The entries of a vector that exists once per pair of rows."""
        if not node.shape or isinstance(node, ir.Column | ir.Var):
            return 1.0
        if len(self.state.free(node)) > 1:
            return float(math.prod(self.state.shape(node.shape)))
        return 1.0
