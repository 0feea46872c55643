"""Lowers the vector form phi(F(w)), where every topmost expectation is a component of F."""

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
from fccomodel.program.lower.binders.batches import BatchSlots
from fccomodel.program.lower.leaves.slots import set_key
from fccomodel.program.lower.lowering import Lowering
from fccomodel.program.lower.records import ReducedBinder, Slot, Way
from fccomodel.program.lower.reductions.algebra import gathered
from fccomodel.program.lower.reductions.reductions import Reductions, pays_in_slices
from fccomodel.program.lower.state import Env, Linear, State
from fccomodel.program.operations import Axis, Event, Val, in_order, union
from fccomodel.program.operations.entrywise import spread
from fccomodel.program.operations.indexing import entry
from fccomodel.program.operations.sources import arange, chunk, component, take


@dataclass(frozen=True, eq=False, kw_only=True)
class Component:
    """A component of F: entries ``start .. stop`` of the vector.

    node    the expectation
    slots   the slots of outer binders, for each of whose elements it has a value
    axes    the axes of these slots
    event   the shape of a value
    start   the position of its first entry
    """

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
        """The position after its last entry."""
        return self.start + math.prod(self.shape)


class Components(Reductions):
    """Lowers reductions in phi: topmost expectations are entries of a vector u."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.components: dict[tuple[Any, ...], Component] = {}

    def value(self, node: ir.Reduce, env: Env, linear: Linear) -> Val:
        """The value of a reduction: entries of the vector, or a value computed from all elements."""
        if not entry_of_vector(node):
            return self.reduced(node, env, linear, False)
        state = self.state
        slots = {b: env[b] for b in state.free(node) if b in env}
        if any(s.draw is not None for s in slots.values()):
            state.refuse(errors.random_vector(state.bound.problem, node))
        key = (node, *(s.ids.id for s in slots.values()))
        if key not in self.components:
            axes = union(slot.ids for slot in slots.values())
            event = state.shape(node.shape)
            start = self.length
            self.components[key] = Component(node=node, slots=slots, axes=axes, event=event, start=start)
        entries = self.components[key]
        return state.graph.make(component, axes=entries.axes, event=entries.event, start=entries.start)

    @property
    def length(self) -> int:
        """The number of entries of F so far."""
        return max((c.stop for c in self.components.values()), default=0)


class SampledComponents(Reductions):
    """Lowers reductions in phi to samples of their elements, if phi is linear in them.

    Other reductions take all elements. Topmost expectations are entries of u at the sampled elements.

    components   the components of F
    """

    components: Sequence[Component] = ()

    def value(self, node: ir.Reduce, env: Env, linear: Linear) -> Val:
        """The value of a reduction on a sample of its elements."""
        entries = self.component_of(node, env)
        if entries is not None:
            return self.entries_at(entries, env)
        if linear is True:
            return self.reduced(node, env, linear, False)
        batch = self.state.batch
        self.state.batch = lambda binder, n, inner: None
        try:
            return self.reduced(node, env, linear, False)
        finally:
            self.state.batch = batch

    def component_of(self, node: ir.Reduce, env: Env) -> Component | None:
        """The component of F that an expectation is; None if it is no component."""
        free = [b for b in self.state.free(node) if b in env]
        for candidate in self.components:
            if candidate.node == node and [*candidate.slots] == free:
                if all(np.array_equal(_ids(candidate.slots[b]), _ids(env[b])) for b in free):
                    return candidate
        return None

    def entries_at(self, part: Component, env: Env) -> Val:
        """The entries of a component at the elements in ``env``."""
        whole = self.state.graph.make(component, axes=(), event=part.shape, start=part.start)
        if not part.slots:
            return whole
        slots = sorted(part.slots.items(), key=lambda pair: part.axes.index(pair[1].ids.axes[0]))
        places = []
        for binder, slot in slots:
            table = _places(_ids(slot))
            places.append(self.state.cells(f"place_{binder.name}", table, [env[binder].ids]))
        return self.state.graph.make(entry, [whole, *places], fixed=(None,) * len(places))


def _ids(slot: Slot) -> np.ndarray:
    """The ids of the elements that a slot's binder can stand for."""
    if slot.members is None:
        return np.arange(slot.n)
    return slot.members


def _places(ids: np.ndarray) -> np.ndarray:
    """The place among the ids of each number up to the largest id; 0 for numbers that are no id."""
    places = np.zeros(int(ids.max()) + 1 if len(ids) else 1, dtype=np.int64)
    places[ids] = np.arange(len(ids))
    return places


class Shared(BatchSlots):
    """Minibatches in which one draw of a table's rows serves all components."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.drawn: dict[tuple[Any, ...], tuple[Slot, ReducedBinder]] = {}

    def slot(
        self, sel: Selection, env: Env, way: Way
    ) -> tuple[Slot, ReducedBinder, Mapping[ir.Binder, Slot]]:
        """The slot of a selection. Selections of equal rows share one sample."""
        if sel.parents:
            return super().slot(sel, env, way)
        rows = self.slots.members(sel)
        size = self.state.batch(sel.binder, len(rows), way.inner)
        key = (set_key(sel.binder.domain), size, len(rows), rows.tobytes())
        if key in self.drawn:
            slot, part = self.drawn[key]
            is_outer = any(axis in outer.ids.axes for axis in slot.ids.axes for outer in env.values())
            if not is_outer:
                return replace(slot, binder=sel.binder), replace(part, binder=sel.binder), {}
        slot, part, aliases = super().slot(sel, env, way)
        self.drawn.setdefault(key, (slot, part))
        return slot, part, aliases


class Phi:
    """Lowers phi: over all elements, with envelopes of non-smooth functions, and expectations as entries
    of u."""

    def __init__(self, state: State):
        assert state.full and state.enveloped and not state.separated
        self.lowering = Lowering(state, reductions=Components)
        self.state = state

    def expr(self, node: ir.Expr) -> Val:
        """The value of a closed expression."""
        return self.lowering.expr(node, {}, True)

    @property
    def components(self) -> list[Component]:
        """The components of F, in order."""
        assert isinstance(self.lowering.reductions, Components)
        return list(self.lowering.reductions.components.values())

    def ids(self, component: Component) -> list[np.ndarray]:
        """The ids of the elements of a component's outer binders."""
        return [self.lowering.slots.known_ids(s) for s in component.slots.values()]


def sampled_phi(state: State, phi: Phi, node: ir.Expr) -> Val | None:
    """phi from samples of its outer functions, drawn together with the samples of F.

    None if a step takes all outer functions.
    """
    draws = len(state.draws)
    lowering = Lowering(state, reductions=SampledComponents)
    assert isinstance(lowering.reductions, SampledComponents)
    lowering.reductions.components = phi.components
    value = lowering.expr(node, {}, True)
    if len(state.draws) > draws:
        return value
    return None


class Entries:
    """Lowers the components of F, on minibatches or exactly.

    axes     the axis here for each axis of phi
    slices   the axis here for each axis of phi that is taken in slices
    """

    def __init__(self, state: State, phi: Phi):
        self.state, self.phi = state, phi
        self.lowering = Lowering(state, batches=Shared)
        self.slices: dict[Axis, Axis] = {}
        axes = in_order(axis for part in phi.components for axis in part.axes)
        self.axes = {axis: state.graph.axis(state.unique(axis.name), axis.size, "all") for axis in axes}

    def value(self, part: Component) -> Val:
        """The values of a component, in slices of its first axis if there are many pairs."""
        chunked = None
        if self.state.full and part.axes:
            pairs = math.prod(part.shape) * self.lowering.sizes.pairs(part.node)
            if pays_in_slices(pairs, part.axes[0].size):
                chunked = part.axes[0]
        env = {}
        for (binder, slot), rows in zip(part.slots.items(), self.phi.ids(part), strict=True):
            env[binder] = self.slot_here(slot, rows, chunked)
        value = self.lowering.expr(part.node, env, True)
        if chunked is not None:
            value = gathered(self.state.graph, value, self.sliced(chunked), self.axes[chunked])
        axes = tuple(self.axes[a] for a in part.axes)
        if value.axes == axes:
            return value
        return self.state.graph.make(spread, [value], axes=axes)

    def sliced(self, axis: Axis) -> Axis:
        """The axis here for an axis of phi that is taken in slices."""
        if axis not in self.slices:
            self.slices[axis] = replace(self.axes[axis], kind="chunk")
        return self.slices[axis]

    def slot_here(self, slot: Slot, ids: np.ndarray, chunked: Axis | None) -> Slot:
        """The slot in this graph for a slot of phi, at the elements ``ids``."""
        (outer,) = slot.ids.axes
        if outer is chunked:
            pos = self.state.graph.make(chunk, axis=self.sliced(outer))
        else:
            pos = self.state.graph.make(arange, axis=self.axes[outer])
        here = pos
        if slot.ids.op is take:
            here = self.state.take(self.state.ship(slot.ids.attrs["key"], ids), pos, ())
        return replace(slot, ids=here, pos=pos, members=ids)
