"""Slots for the binders of a reduction: minibatches of their elements, or all elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fccomodel.core import ir
from fccomodel.evaluation.sets import selections
from fccomodel.program import errors
from fccomodel.program.lower.binders.batches import BatchSlots
from fccomodel.program.lower.binders.noise import NoiseSlots
from fccomodel.program.lower.binders.passes import Passes
from fccomodel.program.lower.records import Ranged, ReducedBinder, Slot, Way
from fccomodel.program.lower.state import Env, State


class Binders:
    """Makes slots for the binders of reductions."""

    def __init__(self, state: State, noise: NoiseSlots, batches: BatchSlots, passes: Passes):
        self.state, self.noise, self.batches, self.passes = state, noise, batches, passes
        self.cache: dict[tuple, Ranged] = {}

    def ranged(self, binders: tuple[ir.Binder, ...], condition: ir.Expr | None, env: Env, way: Way) -> Ranged:
        """The slots of a reduction's binders. They are made once for given slots of outer binders."""
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
            self.cache[key] = self._ranged(selections.split(binders, condition), env, way)
        return self.cache[key]

    def _ranged(self, sels: Sequence[selections.Selection], env: Env, way: Way) -> Ranged:
        """The slots, one binder after another. Draws that no condition depends on come last."""
        env = dict(env)
        parts: list[ReducedBinder] = []
        needed = {binder for sel in sels for binder in sel.parents}
        first, last = [], []
        for sel in sels:
            if isinstance(sel.binder.domain, ir.Distribution) and sel.binder not in needed:
                last.append(sel)
            else:
                first.append(sel)
        way = replace(way, binders=frozenset(sel.binder for sel in first))
        in_slices = way.chunk and not sels[0].parents
        averaged = way.inner and (in_slices or not any(map(way.inside, first)))
        with_parents = [sel for sel in sels if sel.parents]
        for sel in [*first, *last]:
            aliases: Mapping[ir.Binder, Slot] = {}
            if isinstance(sel.binder.domain, ir.VectorSet):
                self.state.refuse(errors.inner_problem(sel.binder))
            if isinstance(sel.binder.domain, ir.Distribution):
                if sel.parents or sel.static or sel.masks or sel.keys or sel.orders:
                    self.state.refuse(errors.condition_on_draws(sel.binder))
                slot, part = self.noise.slot(sel.binder, env, parts, way.body)
            elif self.state.full:
                only_one = len(with_parents) == 1 and all(p in way.binders for p in sel.parents)
                flat = not way.dense and (only_one or not way.inside(sel))
                flat = flat and not has_weighted_parent(parts, sel, env)
                chunk = way.chunk and not parts
                slot, part, aliases = self.passes.slot(sel, env, way, chunk, averaged, flat)
            else:
                slot, part, aliases = self.batches.slot(sel, env, way)
            env.update(aliases)
            env[sel.binder] = slot
            parts.append(part)
        return Ranged(env=env, parts=tuple(parts))


def has_weighted_parent(parts: Sequence[ReducedBinder], sel: selections.Selection, env: Env) -> bool:
    """Whether an earlier binder has weights along an axis of the selection's parents.

    Rows laid out flat would have to take these weights with them, which they cannot.
    """
    axes = {axis for parent in sel.parents for axis in env[parent].ids.axes}
    return any(part.weight is not None and axes.intersection(part.weight.axes) for part in parts)
