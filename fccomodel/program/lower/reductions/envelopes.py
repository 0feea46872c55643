"""Lowers Moreau envelopes of non-smooth functions: in a step, and their arguments in a full pass."""

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
from fccomodel.program.lower.reductions.sizes import PairCounts
from fccomodel.program.lower.state import Env, Lower, State
from fccomodel.program.operations import Axis, Event, Val, in_order
from fccomodel.program.operations.entrywise import masked, spread, stack
from fccomodel.program.operations.estimates import centre, envelope

#: Largest number of centres of a function of pairs of elements: 16 MiB of them in a step.
MOST_CENTRES = 1 << 22


class Envelopes:
    """Lowers smoothed functions.

    Their argument is an array (entry by entry, or as a whole), several numbers, or the elements of a set.
    """

    def __init__(
        self,
        state: State,
        slots: Slots,
        binders: Binders,
        sizes: PairCounts,
        estimates: Estimates,
        lower: Lower,
    ):
        self.state, self.slots, self.binders = state, slots, binders
        self.sizes, self.estimates, self.lower = sizes, estimates, lower

    def value(self, node: Smoothed, env: Env) -> Val:
        """The Moreau envelope of the function around its centre; in a full pass the function itself.

        ``state.enveloped`` asks for envelopes in a full pass too.
        """
        if self.state.full and not self.state.enveloped:
            return self.lower(node.original, env, True)
        over: tuple[Axis, ...] = ()
        if node.over is None:
            body = self.stacked(node, [self.estimates.argument(a, env, node.inner) for a in node.args])
            slots = [env[b] for b in dict.fromkeys(self.free(node.args, env))]
            centres = self.centre(node, slots, body.event)
        else:
            body, over, slots = self.elements(node, node.over, env)
            centres = self.centre(node, slots, ())
        unnamed = node.inner or self.too_many(node, slots)
        return self.state.graph.make(
            envelope,
            [body, *centres],
            function=node.function,
            over=over,
            name="inner" if unnamed else node.name,
            scale=node.bound,
            ends=node.ends if self.state.dual else None,
        )

    def elements(
        self, node: Smoothed, inside: ir.Reduce, env: Env
    ) -> tuple[Val, tuple[Axis, ...], list[Slot]]:
        """The argument of a function of a set's elements, the elements' axes, and the centre's slots."""
        way = Way(body=inside.body, whole=True, dense=True)
        ranged = self.binders.ranged(inside.binders, inside.condition, env, way)
        over, g = ranged.axes, self.state.graph
        size = math.prod(axis.size for axis in over)
        if size > TOGETHER:
            self.state.refuse(errors.smoothed_in_every_step(size, inside.span))
        body = self.estimates.argument(inside.body, ranged.env, node.inner)
        missing = [axis for axis in over if axis not in body.axes]
        if missing:
            body = g.make(spread, [body], axes=in_order((*body.axes, *missing)))
        for part in ranged.parts:
            if part.weight is not None:
                body = g.make(masked, [body, part.weight])
        slots = [env[b] for b in self.free([inside], env)]
        slots += [ranged.env[b] for b in inside.binders]
        return body, over, slots

    def stacked(self, node: Smoothed, values: list[Val]) -> Val:
        """The only argument, or several numbers as a vector."""
        if node.argument is not None or node.over is not None:
            return values[0]
        return self.state.graph.make(stack, values)

    def free(self, nodes: list[ir.Expr] | tuple[ir.Expr, ...], env: Env) -> list[ir.Binder]:
        """The outer binders that some nodes depend on."""
        return [b for node in nodes for b in self.state.free(node) if b in env]

    def centre(self, node: Smoothed, slots: list[Slot], event: Event) -> list[Val]:
        """The centre of a block's envelope, as a list of one; empty inside an expectation or for a draw.

        A centre is zero until it is moved. Pairs that are too many have none, and are smoothed as
        functions inside expectations are.
        """
        positions = [s.pos for s in slots if s.pos is not None]
        if node.inner or len(positions) < len(slots) or self.too_many(node, slots):
            return []
        self.state.centres[node.name] = tuple(s.n for s in slots) + event
        return [self.state.graph.make(centre, positions, name=node.name, event=event)]

    def too_many(self, node: Smoothed, slots: list[Slot]) -> bool:
        """Whether a function of pairs of elements would have too many centres.

        The centres of penalties and those that steps move are kept whatever their number.
        """
        if node.penalty is not None or self.state.dual or len(slots) < 2:
            return False
        return math.prod(slot.n for slot in slots) > MOST_CENTRES

    def block(
        self, node: Smoothed, within: Mapping[ir.Binder, Selection]
    ) -> tuple[list[Val], Val, tuple[Axis, ...]]:
        """An envelope in a full pass: the ids of its blocks, its argument there, and a maximum's axes.

        The argument of a function of several numbers is a vector of them along the last axis.

        within   for some binders, the selection of the elements that they take
        """
        inside = node.over
        argument = inside.body if inside is not None else node.argument
        if argument is not None:
            exact = [argument]
        else:
            exact = list(node.original.children)
        own: tuple[ir.Binder, ...] = ()
        outer: dict[ir.Binder, None] = {}
        if inside is not None:
            own = inside.binders
            outer = dict.fromkeys(self.state.free(inside))
        else:
            for expr in exact:
                outer |= dict.fromkeys(self.state.free(expr))
        binders = (*outer, *own)
        blocks = {b: self.slots.everything(b, within.get(b)) for b in binders}
        env: dict[ir.Binder, Slot] = {}
        for slot in blocks.values():
            if slot.selection is not None:
                for parent in slot.selection.parents:
                    env[parent] = self.slots.everything(parent, within.get(parent))
        env |= blocks
        lengths = {b: blocks[b].ids.axes[0].size for b in binders}
        size = max(math.prod(lengths.values()), *(self.sizes.pairs(expr, lengths) for expr in exact))
        with self.state.thinning.over(size):
            chunked = next((b for b in binders[:1] if pays_in_slices(size, lengths[b])), None)
            if chunked is not None:
                env[chunked] = self.slots.all(within.get(chunked) or Selection(binder=chunked), "chunk")
            value = self.stacked(node, [self.lower(expr, env, False) for expr in exact])
            if inside is not None:
                value = self.accepted(inside, value, env)
            if chunked is not None:
                slices, whole = env[chunked].ids.axes[0], blocks[chunked].ids.axes[0]
                value = gathered(self.state.graph, value, slices, whole)
        over = tuple(blocks[b].ids.axes[0] for b in own)
        return [blocks[b].ids for b in binders], value, over

    def accepted(self, inside: ir.Reduce, value: Val, env: Env) -> Val:
        """The value at elements of a maximum, masked by its condition."""
        parts = selections.split(inside.binders, inside.condition)
        if inside.condition is not None and any(part.parents or part.static for part in parts):
            for mask in [self.lower(c, env, False) for c in conjuncts(inside.condition)]:
                value = self.state.graph.make(masked, [value, mask])
        return value
