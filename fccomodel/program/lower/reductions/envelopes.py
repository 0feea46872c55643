"""Envelopes of non-smooth functions in a step, and their exact arguments in a full pass."""

from __future__ import annotations

import math
from collections.abc import Mapping

from fccomodel.core import ir
from fccomodel.core.rewrite import conjuncts
from fccomodel.evaluation.sets import selections
from fccomodel.evaluation.sets.selections import Selection
from fccomodel.normal_form.reformulations.largest_of_many import TOGETHER
from fccomodel.normal_form.smoothing import Smoothed
from fccomodel.program import errors
from fccomodel.program.lower.binders.binders import Binders
from fccomodel.program.lower.leaves.slots import Slots
from fccomodel.program.lower.records import Slot, Way
from fccomodel.program.lower.reductions.algebra import gathered
from fccomodel.program.lower.reductions.estimates import Estimates
from fccomodel.program.lower.reductions.reductions import pays_in_slices
from fccomodel.program.lower.reductions.sizes import Sizes
from fccomodel.program.lower.state import Env, Lower, State
from fccomodel.program.operations import Axis, Event, Val, in_order
from fccomodel.program.operations.entrywise import masked, spread, stack
from fccomodel.program.operations.estimates import centre, envelope


class Envelopes:
    """Smoothed functions: of one argument entry by entry or as a whole, of several numbers, of the
    elements of a set."""

    def __init__(
        self, state: State, slots: Slots, binders: Binders, sizes: Sizes, estimates: Estimates, lower: Lower
    ):
        self.state, self.slots, self.binders = state, slots, binders
        self.sizes, self.estimates, self.lower = sizes, estimates, lower

    def value(self, node: Smoothed, env: Env) -> Val:
        """The Moreau envelope of the function, moved by its centre; in a full pass the function
        itself, unless told otherwise."""
        if self.state.full and not self.state.enveloped:
            return self.lower(node.original, env, True)
        over: tuple[Axis, ...] = ()
        if node.over is None:
            body = self.stacked(node, [self.estimates.argument(a, env, node.inner) for a in node.args])
            centres = self.centre(
                node, [env[b] for b in dict.fromkeys(self.free(node.args, env))], body.event
            )
        else:
            body, over, slots = self.elements(node, node.over, env)
            centres = self.centre(node, slots, ())
        return self.state.graph.make(
            envelope,
            [body, *centres],
            function=node.function,
            over=over,
            name="inner" if node.inner else node.name,
            scale=node.bound,
            ends=node.ends if self.state.dual else None,
        )

    def elements(
        self, node: Smoothed, inside: ir.Reduce, env: Env
    ) -> tuple[Val, tuple[Axis, ...], list[Slot]]:
        """The argument of a function of the elements of a set, their axes, and the slots that a centre
        has entries for."""
        ranged = self.binders.ranged(
            inside.binders, inside.condition, env, Way(body=inside.body, whole=True, dense=True)
        )
        over, g = ranged.axes, self.state.graph
        if (size := math.prod(a.size for a in over)) > TOGETHER:
            self.state.refuse(errors.smoothed_in_every_step(size, inside.span))
        body = self.estimates.argument(inside.body, ranged.env, node.inner)
        if missing := [a for a in over if a not in body.axes]:
            body = g.make(spread, [body], axes=in_order((*body.axes, *missing)))
        for part in ranged.parts:
            if part.weight is not None:
                body = g.make(masked, [body, part.weight])
        return (
            body,
            over,
            [env[b] for b in self.free([inside], env)] + [ranged.env[b] for b in inside.binders],
        )

    def stacked(self, node: Smoothed, values: list[Val]) -> Val:
        """One argument, or several numbers as a vector."""
        if node.argument is not None or node.over is not None:
            return values[0]
        return self.state.graph.make(stack, values)

    def free(self, nodes: list[ir.Expr] | tuple[ir.Expr, ...], env: Env) -> list[ir.Binder]:
        """The binders around that some nodes depend on."""
        return [b for node in nodes for b in self.state.free(node) if b in env]

    def centre(self, node: Smoothed, slots: list[Slot], event: Event) -> list[Val]:
        """The centre of a block's smoothing, zero until it is moved; none inside an expectation or for
        a draw."""
        positions = [s.pos for s in slots if s.pos is not None]
        if node.inner or len(positions) < len(slots):
            return []
        self.state.centres[node.name] = tuple(s.n for s in slots) + event
        return [self.state.graph.make(centre, positions, name=node.name, event=event)]

    def block(
        self, node: Smoothed, within: Mapping[ir.Binder, Selection]
    ) -> tuple[list[Val], Val, tuple[Axis, ...]]:
        """In a full pass: the ids of all cells of an envelope, its argument there (a list of terms
        along the last axis), and the axes of a maximum. ``within``: the selections that its
        binders' elements are taken by."""
        inside = node.over
        argument = inside.body if inside is not None else node.argument
        if argument is not None:
            exact = [argument]
        else:
            exact = list(node.original.children)
        outer = dict.fromkeys(
            b for e in ([inside] if inside is not None else exact) for b in self.state.free(e)
        )
        binders = (*outer, *(inside.binders if inside is not None else ()))
        cells = {b: self.slots.everything(b, within.get(b)) for b in binders}
        related = [p for slot in cells.values() if slot.selection is not None for p in slot.selection.parents]
        env = {p: self.slots.everything(p, within.get(p)) for p in related} | cells
        around = {b: cells[b].ids.axes[0].size for b in binders}
        size = max(math.prod(around.values()), *(self.sizes.pairs(e, around) for e in exact))
        with self.state.thinning.over(size):
            chunked = next((b for b in binders[:1] if pays_in_slices(size, around[b])), None)
            if chunked is not None:
                env[chunked] = self.slots.all(within.get(chunked) or Selection(binder=chunked), "chunk")
            value = self.stacked(node, [self.lower(e, env, False) for e in exact])
            if inside is None:
                value = value
            else:
                value = self.let_through(inside, value, env)
            if chunked is not None:
                value = gathered(
                    self.state.graph, value, env[chunked].ids.axes[0], cells[chunked].ids.axes[0]
                )
        over = () if inside is None else tuple(cells[b].ids.axes[0] for b in inside.binders)
        return [cells[b].ids for b in binders], value, over

    def let_through(self, inside: ir.Reduce, value: Val, env: Env) -> Val:
        """The elements that the condition of a maximum accepts."""
        chosen = selections.split(inside.binders, inside.condition)
        if inside.condition is not None and any(sel.parents or sel.static for sel in chosen):
            for mask in [self.lower(c, env, False) for c in conjuncts(inside.condition)]:
                value = self.state.graph.make(masked, [value, mask])
        return value
