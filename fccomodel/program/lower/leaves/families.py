"""Lowers entries of arrays, and members of families of lets."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from fccomodel.core import ir
from fccomodel.evaluation.sets import elements
from fccomodel.program.lower.leaves.empty_ranges import element_ids
from fccomodel.program.lower.leaves.slots import Slots, set_key
from fccomodel.program.lower.records import Slot
from fccomodel.program.lower.state import Env, Linear, Lower, State
from fccomodel.program.operations import Val, in_order
from fccomodel.program.operations.entrywise import spread
from fccomodel.program.operations.indexing import entry, pick

#: Largest number of members of a family of lets that is evaluated whole, once a step.
WHOLE_LET = 4096


class Families:
    """Lowers expressions that are indexed by elements of binders."""

    def __init__(self, state: State, slots: Slots, lower: Lower):
        self.state, self.slots, self.lower = state, slots, lower

    def item(self, node: ir.Item, env: Env, linear: Linear) -> Val:
        """An entry of an array, at constant indices and at indices that depend on binders."""
        base = self.lower(node.base, env, linear)
        constants: list[int | None] = []
        positions: list[Val] = []
        for index, dim in zip(node.indices, node.base.shape, strict=False):
            if isinstance(index, ir.Const):
                constants.append(int(index.value))
            else:
                constants.append(None)
                positions.append(self.position(index, dim, env))
        return self.state.graph.make(entry, [base, *positions], fixed=tuple(constants))

    def position(self, index: ir.Expr, dim: ir.Dim, env: Env) -> Val:
        """The position of a binder's element, or of a row's label, along a dimension of an array."""
        assert isinstance(index, ir.Element | ir.Column)
        state = self.state
        ids = env[index.binder].ids
        if isinstance(index, ir.Column):
            places = elements.row_positions(state.bound, index, dim)
            return state.take(state.ship(f"{index.name}_in_{dim}", places), ids, ())
        place = elements.positions(state.bound, index.binder.domain, dim)
        if place is None:
            return ids
        return state.take(state.ship(f"place_in_{dim}", place), ids, ())

    def let(self, node: ir.LetRef, env: Env, linear: Linear) -> Val:
        """A let, or a member of a family of lets.

        A small family over no rows is evaluated whole, and the member is picked from it.
        """
        let = node.let
        if not let.binders:
            return self.lower(let.body, env, linear)
        sizes = [len(elements.ids(self.state.bound, binder.domain)) for binder in let.binders]
        has_rows = any(isinstance(binder.domain, ir.RowSet) for binder in let.binders)
        if not has_rows and let.condition is None and math.prod(sizes) <= WHOLE_LET:
            return self.picked_member(node, env, linear)
        inner = dict(env)
        for binder, arg in zip(let.binders, node.args, strict=True):
            inner[binder] = self.alias(binder, arg, env)
        return self.lower(let.body, inner, linear)

    def alias(self, binder: ir.Binder, arg: ir.Expr, env: Env) -> Slot:
        """The slot of a let's binder: a known element, or the slot of the binder in its place."""
        total = self.state.total(binder)
        if isinstance(arg, ir.Const):
            ids = self.state.graph.const(int(arg.value))
            return Slot(binder=binder, ids=ids, pos=ids, n=total, members=np.array([int(arg.value)]))
        assert isinstance(arg, ir.Element)
        slot = env[arg.binder]
        place = elements.matching(self.state.bound, arg.binder.domain, binder.domain)
        if place is None:
            return slot
        ids = self.ids_in_family(binder, arg, env)
        members = place[element_ids(self.state.bound, arg.binder, env)]
        return replace(slot, ids=ids, pos=ids, n=total, members=members)

    def ids_in_family(self, binder: ir.Binder, arg: ir.Element, env: Env) -> Val:
        """The ids of another binder's elements in the set of a family's binder."""
        ids = env[arg.binder].ids
        place = elements.matching(self.state.bound, arg.binder.domain, binder.domain)
        if place is None:
            return ids
        return self.state.take(self.state.ship(f"same_in_{set_key(binder.domain)}", place), ids, ())

    def picked_member(self, node: ir.LetRef, env: Env, linear: Linear) -> Val:
        """A member of a small family, picked from the values of all its members."""
        binders = node.let.binders
        inner = dict(env)
        for binder in binders:
            inner[binder] = self.slots.everything(binder)
        family = self.lower(node.let.body, inner, linear)
        axes = tuple(inner[binder].ids.axes[0] for binder in binders)
        constants: list[int | None] = []
        ids: list[Val] = []
        for binder, arg in zip(binders, node.args, strict=True):
            if isinstance(arg, ir.Const):
                constants.append(int(arg.value))
            else:
                constants.append(None)
            if isinstance(arg, ir.Element):
                ids.append(self.ids_in_family(binder, arg, env))
        missing = [axis for axis in axes if axis not in family.axes]
        if missing:
            family = self.state.graph.make(spread, [family], axes=in_order((*family.axes, *missing)))
        return self.state.graph.make(pick, [family, *ids], over=axes, fixed=tuple(constants))
