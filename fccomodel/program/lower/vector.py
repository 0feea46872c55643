"""The vector form phi(F(w)): every topmost expectation is a component of F, by minibatch or exactly."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fccomodel.core import ir
from fccomodel.evaluation.sets.selections import Selection
from fccomodel.normal_form.smoothing import entry_of_vector
from fccomodel.program import errors
from fccomodel.program.lower.binders.batches import Batches
from fccomodel.program.lower.leaves.slots import set_key
from fccomodel.program.lower.lowering import Lowering
from fccomodel.program.lower.records import Part, Slot, Way
from fccomodel.program.lower.reductions.algebra import gathered
from fccomodel.program.lower.reductions.reductions import Reductions, pays_in_slices
from fccomodel.program.lower.state import Env, Linear, State
from fccomodel.program.operations import Axis, Event, Val, in_order, union
from fccomodel.program.operations.entrywise import spread
from fccomodel.program.operations.indexing import entry
from fccomodel.program.operations.sources import arange, chunk, component, take


@dataclass(frozen=True, eq=False, kw_only=True)
class Component:
    """Entries ``start .. stop`` of F: the expectation ``node`` at every element of the binders around
    it, along ``axes``."""

    node: ir.Reduce
    slots: Mapping[ir.Binder, Slot]
    axes: tuple[Axis, ...]
    event: Event
    start: int

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of its axes and event dims."""
        return tuple(a.size for a in self.axes) + self.event

    @property
    def stop(self) -> int:
        """The position in the vector after its last entry."""
        return self.start + math.prod(self.shape)


class Components(Reductions):
    """Reductions in phi: topmost expectations are entries of a vector u."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.components: dict[tuple[Any, ...], Component] = {}

    def value(self, node: ir.Reduce, env: Env, linear: Linear) -> Val:
        """The value of a reduction: an entry of the vector, or computed on the spot."""
        if not entry_of_vector(node):
            return self.reduced(node, env, linear, False)
        state = self.state
        slots = {b: env[b] for b in state.free(node) if b in env}
        if any(s.draw is not None for s in slots.values()):
            state.refuse(errors.random_vector(state.bound.problem, node))
        key = (node, *(s.ids.id for s in slots.values()))
        if key not in self.components:
            axes, event = union(s.ids for s in slots.values()), state.shape(node.shape)
            self.components[key] = Component(
                node=node, slots=slots, axes=axes, event=event, start=self.length
            )
        entries = self.components[key]
        return state.graph.make(component, axes=entries.axes, event=entries.event, start=entries.start)

    @property
    def length(self) -> int:
        """The entries of F."""
        return max((c.stop for c in self.components.values()), default=0)


class SampledComponents(Reductions):
    """Reductions of phi by samples where it is linear in them, by all elements elsewhere; topmost
    expectations are entries of u, those of the elements at hand. ``components`` are those of the
    whole phi."""

    components: Sequence[Component] = ()

    def value(self, node: ir.Reduce, env: Env, linear: Linear) -> Val:
        """The value of a reduction on a sample of its elements."""
        if (entries := self.known(node, env)) is not None:
            return self.taken(entries, env)
        if linear is True:
            return self.reduced(node, env, linear, False)
        drawn, self.state.batch = self.state.batch, lambda binder, n, inner: None
        try:
            return self.reduced(node, env, linear, False)
        finally:
            self.state.batch = drawn

    def known(self, node: ir.Reduce, env: Env) -> Component | None:
        """The component that the expectation is part of."""
        free = [b for b in self.state.free(node) if b in env]
        for part in (c for c in self.components if c.node == node and [*c.slots] == free):
            if all(np.array_equal(_ids(part.slots[b]), _ids(env[b])) for b in free):
                return part
        return None

    def taken(self, part: Component, env: Env) -> Val:
        """Its entries at the elements that the binders stand for."""
        whole = self.state.graph.make(component, axes=(), event=part.shape, start=part.start)
        if not part.slots:
            return whole
        slots = sorted(part.slots.items(), key=lambda pair: part.axes.index(pair[1].ids.axes[0]))
        places = [self.state.cells(f"place_{b.name}", _places(_ids(s)), [env[b].ids]) for b, s in slots]
        return self.state.graph.make(entry, [whole, *places], fixed=(None,) * len(places))


def _ids(slot: Slot) -> np.ndarray:
    """The elements that a slot's binder may stand for."""
    if slot.members is None:
        return np.arange(slot.n)
    return slot.members


def _places(ids: np.ndarray) -> np.ndarray:
    """Where each id stands among these, 0 for others."""
    places = np.zeros(int(ids.max()) + 1 if len(ids) else 1, dtype=np.int64)
    places[ids] = np.arange(len(ids))
    return places


class Shared(Batches):
    """Minibatches of which one draw of a table's rows serves every component."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.drawn: dict[tuple[Any, ...], tuple[Slot, Part]] = {}

    def slot(self, sel: Selection, env: Env, way: Way) -> tuple[Slot, Part, Mapping[ir.Binder, Slot]]:
        """The slot of a selection; selections of the same rows share one sample."""
        if sel.parents:
            return super().slot(sel, env, way)
        rows = self.slots.members(sel)
        key = (
            set_key(sel.binder.domain),
            self.state.batch(sel.binder, len(rows), way.inner),
            len(rows),
            rows.tobytes(),
        )
        if key in self.drawn:
            slot, part = self.drawn[key]
            if not any(a in s.ids.axes for a in slot.ids.axes for s in env.values()):
                return replace(slot, binder=sel.binder), replace(part, binder=sel.binder), {}
        slot, part, aliases = super().slot(sel, env, way)
        self.drawn.setdefault(key, (slot, part))
        return slot, part, aliases


class Phi:
    """phi: every binder complete, non-smooth functions by their envelopes, expectations as entries of u."""

    def __init__(self, state: State):
        assert state.full and state.enveloped and not state.separated
        self.lowering = Lowering(state, reductions=Components)
        self.state = state

    def expr(self, node: ir.Expr) -> Val:
        """The value of a closed expression."""
        return self.lowering.expr(node, {}, True)

    @property
    def components(self) -> list[Component]:
        """Those of F, in order."""
        assert isinstance(self.lowering.reductions, Components)
        return list(self.lowering.reductions.components.values())

    def ids(self, component: Component) -> list[np.ndarray]:
        """The ids of the elements of the binders around a component."""
        return [self.lowering.slots.known_ids(s) for s in component.slots.values()]


def sampled_phi(state: State, phi: Phi, node: ir.Expr) -> Val | None:
    """phi by samples of its outer functions, drawn with those of F; None where every step has all of them."""
    draws = len(state.draws)
    lowering = Lowering(state, reductions=SampledComponents)
    assert isinstance(lowering.reductions, SampledComponents)
    lowering.reductions.components = phi.components
    value = lowering.expr(node, {}, True)
    if len(state.draws) > draws:
        return value
    return None


class Entries:
    """The components of F by minibatch, or exactly: phi's axes have their like here."""

    def __init__(self, state: State, phi: Phi):
        self.state, self.phi = state, phi
        self.lowering = Lowering(state, batches=Shared)
        self.slices: dict[Axis, Axis] = {}
        axes = in_order(axis for part in phi.components for axis in part.axes)
        self.axes = {axis: state.graph.axis(state.unique(axis.name), axis.size, "all") for axis in axes}

    def value(self, part: Component) -> Val:
        """The expectation at every element of the binders around it; where pairs are many, by slices
        of the first one."""
        pairs = math.prod(part.shape) * (self.lowering.sizes.pairs(part.node) if self.state.full else 0)
        chunked = next((axis for axis in part.axes[:1] if pays_in_slices(pairs, axis.size)), None)
        ids = self.phi.ids(part)
        env = {
            b: self.met(slot, rows, chunked) for (b, slot), rows in zip(part.slots.items(), ids, strict=True)
        }
        value = self.lowering.expr(part.node, env, True)
        if chunked is not None:
            value = gathered(self.state.graph, value, self.sliced(chunked), self.axes[chunked])
        axes = tuple(self.axes[a] for a in part.axes)
        if value.axes == axes:
            return value
        return self.state.graph.make(spread, [value], axes=axes)

    def sliced(self, axis: Axis) -> Axis:
        """One of phi's axes here, slice by slice."""
        if axis not in self.slices:
            self.slices[axis] = replace(self.axes[axis], kind="chunk")
        return self.slices[axis]

    def met(self, slot: Slot, ids: np.ndarray, chunked: Axis | None) -> Slot:
        """A binder of phi at the same elements, in this graph."""
        (outer,) = slot.ids.axes
        axis, op = (self.sliced(outer), chunk) if outer is chunked else (self.axes[outer], arange)
        pos = self.state.graph.make(op, axis=axis)
        if slot.ids.op is take:
            taken = self.state.take(self.state.ship(slot.ids.attrs["key"], ids), pos, ())
        else:
            taken = pos
        return replace(slot, ids=taken, pos=pos, members=ids)
