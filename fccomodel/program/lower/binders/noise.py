"""Draws of distributions: random in a step, and in a full pass the sample of the interpreter.

A sampler from Python is called while the program is written. ``POOL`` of its draws become data of the
program, and steps choose among them, so that the program needs no sampler.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fccomodel.core import ir
from fccomodel.data import draw_counts, net_costs
from fccomodel.evaluation import interpret
from fccomodel.evaluation.sets import draws
from fccomodel.evaluation.sets.axes import Named
from fccomodel.library import distributions
from fccomodel.plan.sizes import DRAWN, ENDLESS
from fccomodel.program import errors
from fccomodel.program.lower.records import ReducedBinder, Slot
from fccomodel.program.lower.state import Env, Lower, State
from fccomodel.program.operations import Axis, Event, Val
from fccomodel.program.operations.draws import draw as drawn
from fccomodel.program.operations.draws import fixed_noise, given_sample, noise
from fccomodel.program.operations.indexing import pick
from fccomodel.program.operations.sources import take

#: Number of draws of a sampler from Python in a step, if there are other binders beside it.
BESIDE = 16
#: Number of draws of a sampler from Python that steps choose among.
POOL = 100_000


class NoiseSlots:
    """Makes slots for binders that stand for draws."""

    def __init__(self, state: State, lower: Lower):
        self.state, self.lower = state, lower

    def slot(
        self, binder: ir.Binder, env: Env, parts: list[ReducedBinder], body: ir.Expr
    ) -> tuple[Slot, ReducedBinder]:
        """A draw for each element of the last binder before it; in a full pass, of all binders before it."""
        domain = binder.domain
        assert isinstance(domain, ir.Distribution)
        args = []
        if not domain.sampler:
            args = [self.lower(arg, env, False) for arg in domain.args]
        joint = [part.axis for part in parts if part.axis is not None and part.binder in env]
        axis: Axis | None
        if self.state.full:
            draw, axis = self.fixed(binder, args, joint, env, body)
        elif domain.sampler:
            draw, axis = self.from_pool(binder, joint)
        else:
            draw, axis = self.random(binder, args, joint[-1:])
        slot = Slot(binder=binder, ids=draw, pos=None, n=0, draw=draw)
        return slot, ReducedBinder(binder=binder, axis=axis, count=self.state.graph.const(1))

    def random(self, binder: ir.Binder, args: list[Val], beside: list[Axis]) -> tuple[Val, Axis | None]:
        """Draws of a step along an axis of their own, or a draw for each element of another axis."""
        state, domain = self.state, binder.domain
        assert isinstance(domain, ir.Distribution)
        name = state.unique(binder.name)
        if beside:
            axis = beside[0]
        else:
            size = state.batch(binder, ENDLESS, True) or DRAWN
            axis = state.graph.axis(name, size, "sample")
            name = axis.name
        event = self.event(binder)
        draw = state.graph.make(noise, args, event=event, family=domain.family, axis=axis, name=name)
        state.draws.append(draw)
        return draw, None if beside else axis

    def fixed(
        self, binder: ir.Binder, args: list[Val], joint: list[Axis], env: Env, body: ir.Expr
    ) -> tuple[Val, Axis]:
        """The sample of the interpreter, drawn again from its seed."""
        domain, g, event = binder.domain, self.state.graph, self.event(binder)
        assert isinstance(domain, ir.Distribution)
        around = {a for b in self.state.free(body) if b in env for a in env[b].ids.axes}
        weight = net_costs.numbers_of_a_draw(self.state.bound, binder, body, math.prod(event))
        times = math.prod(a.size for a in around) * weight
        number = draw_counts.count(self.state.bound.draws, times, math.prod(a.size for a in joint))
        axis = g.axis(self.state.unique(binder.name), number, "all")
        whole = [g.whole(a) if a.kind == "chunk" else a for a in joint]
        if domain.sampler:
            sample = self.sampled(binder, number, 0, [int(a.size) for a in whole])
            key = self.state.ship(f"{domain.family}_sample", sample)
            base = g.make(given_sample, key=key, axes=(*whole, axis), event=event)
        else:
            seed = draws.stream(self.state.bound, binder, 0)
            standard = distributions.all()[domain.family].standard
            base = g.make(
                fixed_noise, axes=(*whole, axis), event=event, standard=standard, seed=seed, serial=axis.order
            )
        for a in joint:
            if a.kind == "chunk":
                slot = next(s for s in env.values() if s.ids.axes == (a,) and s.pos is not None)
                if slot.ids.op is take:
                    position = slot.ids.args[0]
                else:
                    position = slot.ids
                base = g.make(pick, [base, position], over=(g.whole(a),), fixed=(None,))
        if domain.sampler:
            return base, axis
        return g.make(noise, [*args, base], event=event, family=domain.family, axis=axis), axis

    def from_pool(self, binder: ir.Binder, beside: list[Axis]) -> tuple[Val, Axis]:
        """Draws of a step among those of a sampler from Python that the program has as data.

        Every draw is combined with every element of the axes ``beside``.
        """
        state, domain, event = self.state, binder.domain, self.event(binder)
        assert isinstance(domain, ir.Distribution)
        count = max(DRAWN, min(POOL, draw_counts.MOST_NUMBERS // max(1, math.prod(event))))
        key = state.ship(f"{domain.family}_draws", self.sampled(binder, count, 1))
        size = state.batch(binder, ENDLESS, True) or (BESIDE if beside else DRAWN)
        axis = state.graph.axis(state.unique(binder.name), size, "sample")
        position = state.graph.make(drawn, axis=axis, n=count, how="iid")
        state.draws.append(position)
        return state.take(key, position, event), axis

    def sampled(self, binder: ir.Binder, number: int, seed: int, joint: Sequence[int] = ()) -> np.ndarray:
        """``number`` draws of a sampler from Python, for each element of axes of the lengths ``joint``."""
        state, domain = self.state, binder.domain
        assert isinstance(domain, ir.Distribution)
        if any(state.free(arg) for arg in domain.args):
            state.refuse(errors.sampler_of_an_index(domain.family, binder.span))
        args = [Named(interpret.evaluate(state.bound, arg, {})) for arg in domain.args]
        along = [(k - len(joint), size) for k, size in enumerate(joint)]
        return draws.sample(state.bound, binder, args, number, seed, along).data.numpy()

    def event(self, binder: ir.Binder) -> Event:
        """The shape of one draw."""
        assert isinstance(binder.domain, ir.Distribution)
        return self.state.shape(binder.domain.shape)
