"""Binders made concrete: minibatches of their elements, or all of them, given the binders around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fccomodel.core import ir
from fccomodel.evaluation.sets import selections
from fccomodel.program import errors
from fccomodel.program.lower.binders.batches import Batches
from fccomodel.program.lower.binders.noise import Noise
from fccomodel.program.lower.binders.passes import Passes
from fccomodel.program.lower.records import Part, Ranged, Slot, Way
from fccomodel.program.lower.state import Env, State


class Binders:
    """The binders of one reduction after another."""

    def __init__(self, state: State, noise: Noise, batches: Batches, passes: Passes):
        self.state, self.noise, self.batches, self.passes = state, noise, batches, passes
        self.cache: dict[tuple, Ranged] = {}

    def ranged(self, binders: tuple[ir.Binder, ...], condition: ir.Expr | None, env: Env, way: Way) -> Ranged:
        """The binders of a reduction made concrete, once for the same elements around them."""
        outside = tuple((b, s.ids.id) for b, s in env.items())
        key = (
            binders,
            condition,
            outside,
            way.chunk,
            way.whole,
            way.dense,
            way.total,
            way.runs,
            self.state.again,
        )
        if key not in self.cache:
            self.cache[key] = self.made(selections.split(binders, condition), env, way)
        return self.cache[key]

    def made(self, sels: Sequence[selections.Selection], env: Env, way: Way) -> Ranged:
        """One binder after another; draws that no condition needs come last."""
        env = dict(env)
        parts: list[Part] = []
        needed = {b for sel in sels for b in sel.parents}
        listed = [s for s in sels if not isinstance(s.binder.domain, ir.Distribution) or s.binder in needed]
        way = replace(way, binders=frozenset(s.binder for s in listed))
        sliced = way.chunk and not sels[0].parents
        averaged = way.inner and (sliced or not any(map(way.inside, listed)))
        single = sum(bool(s.parents) for s in sels) == 1
        for sel in [*listed, *(s for s in sels if s not in listed)]:
            aliases: Mapping[ir.Binder, Slot] = {}
            if isinstance(sel.binder.domain, ir.VectorSet):
                self.state.refuse(errors.inner_problem(sel.binder))
            if isinstance(sel.binder.domain, ir.Distribution):
                if sel.parents or sel.static or sel.masks or sel.keys or sel.orders:
                    self.state.refuse(errors.condition_on_draws(sel.binder))
                slot, part = self.noise.slot(sel.binder, env, parts, way.body)
            elif self.state.full:
                flat = not way.dense and (
                    not way.inside(sel) or single and all(p in way.binders for p in sel.parents)
                )
                flat = flat and not weighed(parts, sel, env)
                slot, part, aliases = self.passes.slot(sel, env, way, way.chunk and not parts, averaged, flat)
            else:
                slot, part, aliases = self.batches.slot(sel, env, way)
            env.update(aliases)
            env[sel.binder] = slot
            parts.append(part)
        return Ranged(env=env, parts=tuple(parts))


def weighed(parts: Sequence[Part], sel: selections.Selection, env: Env) -> bool:
    """Whether a binder before has weights along an axis of this one's parents: its rows cannot take
    that axis with them."""
    axes = {axis for parent in sel.parents for axis in env[parent].ids.axes}
    return any(part.weight is not None and axes.intersection(part.weight.axes) for part in parts)
