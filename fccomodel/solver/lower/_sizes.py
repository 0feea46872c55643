"""How many numbers a full pass forms."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from fccomodel.core import ir
from fccomodel.evaluation import distributed, draws, elements, selections
from fccomodel.normal.separation import PiecewiseMean
from fccomodel.solver.lower._cells import keyed
from fccomodel.solver.lower._separated import Separated
from fccomodel.solver.lower._state import State


class Sizes:
    """The pairs of rows that expressions are evaluated on."""

    def __init__(self, state: State, separated: Separated):
        self.state, self.separated = state, separated
        self.distributed = distributed.of(state.bound)
        self.largest: dict[tuple, float] = {}

    def pairs(self, node: ir.Expr, around: Mapping[ir.Binder, int] | None = None, through: ir.Binder | None = None) -> float:
        """Numbers in the largest product of axes of a full pass over a node, those of ``around`` included; ``through``: among
        the products that this binder takes part in."""
        key = (node, tuple((around or {}).items()), through)
        if key not in self.largest:
            sizes, parts = dict(around or {}), list(self.parts(node))
            for part in parts:
                sizes |= self.lengths(part)
            products = [
                math.prod(sizes.get(b, 1) for b in self.state.free(part)) * self.width(part)
                for part in parts
                if through is None or through in self.state.free(part)
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
        return (node.body, *node.options.values()) if self.separated.run(node) or not self.dense(node) else node.children

    def dense(self, node: ir.Reduce) -> bool:
        """Its condition is evaluated for every pair."""
        return any(s.orders or s.excludes or s.masks for s in selections.split(node.binders, node.condition))

    def lengths(self, node: ir.Expr) -> dict[ir.Binder, int]:
        """The lengths of the axes that a node adds."""
        lengths: dict[ir.Binder, int] = {}
        if isinstance(node, ir.LetRef | PiecewiseMean):
            binders = node.let.binders if isinstance(node, ir.LetRef) else node.inner.binders
            return {b: len(elements.ids(self.state.bound, b.domain)) for b in binders if isinstance(b.domain, ir.RowSet)}
        if not isinstance(node, ir.Reduce) or self.separated.form(node) is not None:
            return lengths
        for sel in selections.split(node.binders, node.condition):
            if isinstance(sel.binder.domain, ir.Distribution):
                lengths[sel.binder] = 8 if lengths else draws.DRAWS
            elif isinstance(sel.binder.domain, ir.VectorSet):
                continue
            elif not keyed(sel) or self.separated.run(node):
                lengths[sel.binder] = len(elements.ids(self.state.bound, sel.binder.domain))
        return lengths

    def width(self, node: ir.Expr) -> float:
        """The entries of a vector that exists once per pair of rows."""
        if not node.shape or isinstance(node, ir.Column | ir.Var):
            return 1.0
        return float(math.prod(self.state.shape(node.shape))) if len(self.state.free(node)) > 1 else 1.0
