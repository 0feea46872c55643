"""Entries of arrays and members of families."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from fccomodel.core import ir
from fccomodel.evaluation.sets import elements
from fccomodel.program.lower.leaves.met import taken
from fccomodel.program.lower.leaves.slots import Slots, set_key
from fccomodel.program.lower.records import Slot
from fccomodel.program.lower.state import Env, Linear, Lower, State
from fccomodel.program.operations import Val, in_order
from fccomodel.program.operations.entrywise import spread
from fccomodel.program.operations.indexing import entry, pick

#: a let family with at most so many members is evaluated whole, once a step
WHOLE_LET = 4096


class Families:
    """What is indexed by the elements of binders."""

    def __init__(self, state: State, slots: Slots, lower: Lower):
        self.state, self.slots, self.lower = state, slots, lower

    def item(self, node: ir.Item, env: Env, linear: Linear) -> Val:
        """An entry of an array."""
        base = self.lower(node.base, env, linear)
        fixed = tuple(int(index.value) if isinstance(index, ir.Const) else None for index in node.indices)
        pairs = zip(node.indices, node.base.shape, strict=False)
        moving = [self.position(index, dim, env) for index, dim in pairs if not isinstance(index, ir.Const)]
        return self.state.graph.make(entry, [base, *moving], fixed=fixed)

    def position(self, index: ir.Expr, dim: ir.Dim, env: Env) -> Val:
        """Where a binder's element, or the label of a row, stands along a dimension of an array."""
        assert isinstance(index, ir.Element | ir.Column)
        state, ids = self.state, env[index.binder].ids
        if isinstance(index, ir.Column):
            return state.take(
                state.ship(f"{index.name}_in_{dim}", elements.row_positions(state.bound, index, dim)), ids, ()
            )
        place = elements.positions(state.bound, index.binder.domain, dim)
        if place is None:
            return ids
        return state.take(state.ship(f"place_in_{dim}", place), ids, ())

    def let(self, node: ir.LetRef, env: Env, linear: Linear) -> Val:
        """A named quantity, or a member of a family: of a small one over no rows, picked from all of them."""
        let = node.let
        if not let.binders:
            return self.lower(let.body, env, linear)
        sizes = [len(elements.ids(self.state.bound, b.domain)) for b in let.binders]
        rows = any(isinstance(b.domain, ir.RowSet) for b in let.binders)
        if not rows and let.condition is None and math.prod(sizes) <= WHOLE_LET:
            return self.member(node, env, linear)
        members = {
            binder: self.alias(binder, arg, env) for binder, arg in zip(let.binders, node.args, strict=True)
        }
        return self.lower(let.body, {**env, **members}, linear)

    def alias(self, binder: ir.Binder, arg: ir.Expr, env: Env) -> Slot:
        """A family's binder at a known element, or at that of another binder."""
        total = self.state.total(binder)
        if isinstance(arg, ir.Const):
            ids = self.state.graph.const(int(arg.value))
            return Slot(binder=binder, ids=ids, pos=ids, n=total, members=np.array([int(arg.value)]))
        assert isinstance(arg, ir.Element)
        slot, place = env[arg.binder], elements.matching(self.state.bound, arg.binder.domain, binder.domain)
        if place is None:
            return slot
        ids = self.matched(binder, arg, env)
        return replace(
            slot, ids=ids, pos=ids, n=total, members=place[taken(self.state.bound, arg.binder, env)]
        )

    def matched(self, binder: ir.Binder, arg: ir.Element, env: Env) -> Val:
        """The ids of another binder's elements in a family's set."""
        ids = env[arg.binder].ids
        place = elements.matching(self.state.bound, arg.binder.domain, binder.domain)
        if place is None:
            return ids
        return self.state.take(self.state.ship(f"same_in_{set_key(binder.domain)}", place), ids, ())

    def member(self, node: ir.LetRef, env: Env, linear: Linear) -> Val:
        """Members of a small family, picked from all of them."""
        binders, g = node.let.binders, self.state.graph
        inner = {**env, **{binder: self.slots.everything(binder) for binder in binders}}
        whole = self.lower(node.let.body, inner, linear)
        axes = tuple(inner[b].ids.axes[0] for b in binders)
        fixed = tuple(int(arg.value) if isinstance(arg, ir.Const) else None for arg in node.args)
        moving = [
            self.matched(b, arg, env)
            for b, arg in zip(binders, node.args, strict=True)
            if isinstance(arg, ir.Element)
        ]
        if missing := [a for a in axes if a not in whole.axes]:
            whole = g.make(spread, [whole], axes=in_order((*whole.axes, *missing)))
        return g.make(pick, [whole, *moving], over=axes, fixed=fixed)
