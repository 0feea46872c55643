"""Envelopes of non-smooth functions in a step, and their exact arguments in a full pass."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from fccomodel.core import ir
from fccomodel.core.rewrite import conjuncts
from fccomodel.evaluation import selections
from fccomodel.normal.smoothing import Smoothed
from fccomodel.solver import errors
from fccomodel.solver.lower._records import Slot
from fccomodel.solver.lower._reduce import DENSE, Reducing
from fccomodel.solver.lower._state import Env
from fccomodel.solver.operations import Axis, Val, in_order
from fccomodel.solver.operations.entrywise import masked, spread, stack
from fccomodel.solver.operations.estimates import centre, envelope


@dataclass(eq=False)
class Smoothing(Reducing):
    """Smoothed functions: of one argument entry by entry or as a whole, of several numbers, of the elements of a set."""

    def smoothed(self, node: Smoothed, env: Env) -> Val:
        """An envelope at its argument; in a full pass the function itself."""
        return self.expr(node.original, env, True) if self.full else self.envelope(node, env)

    def envelope(self, node: Smoothed, env: Env) -> Val:
        """The Moreau envelope of the function, moved by its centre."""
        g = self.graph
        inside = node.over
        over: tuple[Axis, ...] = ()
        if inside is None:
            values = [self.argument(a, env, node.inner) for a in node.args]
            body = values[0] if node.argument is not None else g.make(stack, values)
            centres = self.centre_of(node, env, body.event)
        else:
            ranged = self.ranges(inside.binders, inside.condition, env, body=inside.body, whole=True, dense=True)
            size = math.prod(a.size for a in ranged.axes)
            if size > 4096:
                self.refuse(errors.smoothed_in_every_step(size, inside.span))
            body, over = self.argument(inside.body, ranged.env, node.inner), ranged.axes
            if missing := [a for a in over if a not in body.axes]:
                body = g.make(spread, [body], axes=in_order((*body.axes, *missing)))
            masks = [p.weight for p in ranged.parts if p.weight is not None]
            for mask in masks:
                body = g.make(masked, [body, mask])
            own = [ranged.env[b] for b in inside.binders]
            centres = self.centre_of(node, {**env, **ranged.env}, (), [*(env[b] for b in self.free(inside) if b in env), *own])
        return g.make(
            envelope, [body, *centres], function=node.function, over=over, name="inner" if node.inner else node.name,
            scale=node.bound, ends=node.ends if self.dual else None,
        )  # fmt: skip

    def centre_of(self, node: Smoothed, env: Env, event: tuple[int, ...], slots: list[Slot] | None = None) -> list[Val]:
        """The centre of a block's smoothing, zero until it is moved; none inside an expectation or for a draw."""
        if slots is None:
            binders = dict.fromkeys(b for a in node.args for b in self.free(a) if b in env)
            slots = [env[b] for b in binders]
        if node.inner or any(s.pos is None for s in slots):
            return []
        self.centres[node.name] = tuple(s.n for s in slots) + event
        positions = [s.pos for s in slots if s.pos is not None]
        return [self.graph.make(centre, positions, name=node.name, event=event)]

    def block(self, node: Smoothed, within: Mapping[ir.Binder, selections.Selection]) -> tuple[list[Val], Val, tuple[Axis, ...]]:
        """In a full pass: the ids of all cells of an envelope, its argument there (a list of terms along the last axis), and
        the axes of a maximum. ``within``: the selections that its binders' elements are taken by."""
        inside = node.over
        argument = inside.body if inside is not None else node.argument
        exact = [argument] if argument is not None else list(node.original.children)
        outer = dict.fromkeys(b for e in ([inside] if inside is not None else exact) for b in self.free(e))
        binders = (*outer, *(inside.binders if inside is not None else ()))
        cells = {b: self.everything(b, within.get(b)) for b in binders}
        related = [p for slot in cells.values() if slot.selection is not None for p in slot.selection.parents]
        env = {p: self.everything(p, within.get(p)) for p in related} | cells
        around = {b: cells[b].ids.axes[0].size for b in binders}
        size = max(math.prod(around.values()), *(self.pairs(e, around) for e in exact))
        self.nests.append({})
        chunked = binders[0] if binders and size > DENSE else None
        if chunked is not None:
            env[chunked] = self.all_slot(within.get(chunked) or selections.Selection(binder=chunked), "chunk")
        values = [self.expr(e, env, False) for e in exact]
        value = values[0] if argument is not None else self.graph.make(stack, values)
        if inside is not None and inside.condition is not None:
            for sel in selections.split(inside.binders, inside.condition):
                if sel.parents or sel.static:
                    own = [self.expr(c, env, False) for c in conjuncts(inside.condition)]
                    for mask in own:
                        value = self.graph.make(masked, [value, mask])
                    break
        if chunked is not None:
            value = self.gather(value, env[chunked].ids.axes[0], cells[chunked].ids.axes[0])
        self.thinned(self.nests.pop(), size)
        over = () if inside is None else tuple(cells[b].ids.axes[0] for b in inside.binders)
        return [cells[b].ids for b in binders], value, over
