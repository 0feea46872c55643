"""The vector form phi(F(w)): every topmost expectation is a component of F, by minibatch or exactly."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from fccomodel.algorithms.runtime.settings import VectorSettings
from fccomodel.algorithms.runtime.solver import VectorSolver
from fccomodel.core import ir
from fccomodel.core.quoting import comment
from fccomodel.evaluation.selections import Selection
from fccomodel.library import reductions
from fccomodel.normal._terms import nonlinear_below
from fccomodel.normal.smoothing import Smoothed
from fccomodel.solver import errors
from fccomodel.solver.emit.printer import Prepared, Printer, below
from fccomodel.solver.emit.program import Emitter
from fccomodel.solver.emit.record import Form
from fccomodel.solver.lower import Lowering, Slot
from fccomodel.solver.lower._records import Part
from fccomodel.solver.lower._reduce import DENSE
from fccomodel.solver.lower._state import Env, Linear
from fccomodel.solver.names import Names
from fccomodel.solver.operations import Axis, Val, union
from fccomodel.solver.operations.draws import draw, draw_range, noise
from fccomodel.solver.operations.entrywise import spread
from fccomodel.solver.operations.sources import arange, chunk, component, take


@dataclass(frozen=True, eq=False, kw_only=True)
class Component:
    """Entries ``start .. stop`` of F: the expectation ``node`` at every element of the binders around it, along ``axes``."""

    node: ir.Reduce
    slots: dict[ir.Binder, Slot]
    axes: tuple[Axis, ...]
    event: tuple[int, ...]
    start: int

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(a.size for a in self.axes) + self.event

    @property
    def stop(self) -> int:
        return self.start + math.prod(self.shape)


@dataclass(eq=False)
class Outer(Lowering):
    """phi: every binder complete, non-smooth functions by their envelopes, expectations as entries of a vector u."""

    components: dict[tuple[int, ...], Component] = field(default_factory=dict)

    def reduce(self, node: ir.Reduce, env: Env, linear: Linear) -> Val:
        smoothed = any(isinstance(n, Smoothed) and not n.inner for n in ir.walk(node.body))
        if not reductions.of(node).linear or smoothed or nonlinear_below(node.body) or not ir.variables_of(node):
            return self.reduced(node, env, linear, False)
        slots = {b: env[b] for b in self.free(node) if b in env}
        if any(s.draw is not None for s in slots.values()):
            self.refuse(errors.random_vector(self.bound.problem, node))
        key = (id(node), *(s.ids.id for s in slots.values()))
        if key not in self.components:
            start = max((c.stop for c in self.components.values()), default=0)
            axes, event = union(s.ids for s in slots.values()), self.shape(node.shape)
            self.components[key] = Component(node=node, slots=slots, axes=axes, event=event, start=start)
        found = self.components[key]
        return self.graph.make(component, axes=found.axes, event=found.event, start=found.start)

    def smoothed(self, node: Smoothed, env: Env) -> Val:
        return self.envelope(node, env)


@dataclass(eq=False)
class Entries(Lowering):
    """The components of F by minibatch (expectations over the same rows share their draws), or exactly."""

    drawn: dict[tuple, tuple[Slot, Part]] = field(default_factory=dict)
    known: dict[Axis, Axis] = field(default_factory=dict)
    slices: dict[Axis, Axis] = field(default_factory=dict)

    def value(self, component: Component, known: list[Any]) -> Val:
        """The expectation at every element of the binders around it; where pairs are many, by slices of the first one."""
        pairs = math.prod(component.shape) * (self.pairs(component.node) if self.full else 0)
        chunked = component.axes[0] if component.axes and pairs > DENSE else None
        env = {b: self.met(slot, ids, chunked) for (b, slot), ids in zip(component.slots.items(), known, strict=True)}
        value = self.expr(component.node, env, True)
        if chunked is not None:
            value = self.gather(value, self.sliced(chunked), self.known[chunked])
        axes = tuple(self.known[a] for a in component.axes)
        return value if value.axes == axes else self.graph.make(spread, [value], axes=axes)

    def meet(self, components: Iterable[Component]) -> None:
        """Axes here for those of phi, in its order."""
        for axis in sorted({a for c in components for a in c.axes}, key=lambda a: a.order):
            self.known[axis] = self.graph.axis(self.unique(axis.name), axis.size, "all")

    def sliced(self, axis: Axis) -> Axis:
        """One of phi's axes here, slice by slice."""
        if axis not in self.slices:
            self.slices[axis] = replace(self.known[axis], kind="chunk")
        return self.slices[axis]

    def met(self, slot: Slot, ids: Any, chunked: Axis | None) -> Slot:
        """A binder of phi at the same elements, in this graph."""
        (own,) = slot.ids.axes
        axis, op = (self.sliced(own), chunk) if own is chunked else (self.known[own], arange)
        pos = self.graph.make(op, axis=axis)
        taken = self.take(self.ship(slot.ids.attrs["key"], ids), pos, ()) if slot.ids.op is take else pos
        return replace(slot, ids=taken, pos=pos, members=ids)

    def sampled_slot(
        self, sel: Selection, env: Env, inner: bool, whole: bool, own: set[ir.Binder], body: ir.Expr, total: bool
    ) -> tuple[Slot, Part, Any]:
        """A minibatch; one draw of a table's rows serves every component."""
        if sel.parents:
            return super().sampled_slot(sel, env, inner, whole, own, body, total)
        rows = self.members(sel)
        key = (self.set_key(sel.binder.domain), self.batch(sel.binder, len(rows), inner), len(rows), rows.tobytes())
        if key in self.drawn:
            slot, part = self.drawn[key]
            if not any(a in s.ids.axes for a in slot.ids.axes for s in env.values()):
                return replace(slot, binder=sel.binder), replace(part, binder=sel.binder), {}
        slot, part, aliases = super().sampled_slot(sel, env, inner, whole, own, body, total)
        self.drawn.setdefault(key, (slot, part))
        return slot, part, aliases


class VectorEmitter(Emitter):
    """``inner``, ``inner_full`` and ``outer`` in the place of ``gradient``."""

    def lower(self) -> Val:
        data, centres = self.step.data, self.step.centres
        self.outer = Outer(bound=self.bound, full=True, stable=False, separated=False, data=data, centres=centres)
        root = self.outer.expr(self.normal.objective, {}, True)
        self.step = Entries(bound=self.bound, full=False, stable=False, batch=self.plan.batch, data=data, centres=centres)
        self.whole = Entries(bound=self.bound, full=True, stable=False, separated=False, data=data)
        self.components = list(self.outer.components.values())
        self.step.meet(self.components)
        self.whole.meet(self.components)
        self.samples = [self.step.value(c, self.ids(c)) for c in self.components]
        self.values = [self.whole.value(c, self.ids(c)) for c in self.components]
        return root

    def ids(self, component: Component) -> list[Any]:
        """The ids of the elements of the binders around a component."""
        return [self.outer.known_ids(s) for s in component.slots.values()]

    def gradient_section(self) -> tuple[str, str]:
        prepared = Prepared()
        names = self.batch_names
        unpack = [f"{', '.join(names)}{',' if len(names) == 1 else ''} = batch"] if names else []
        step = self.printer(self.step, prepared)
        self.name_draws(step)
        inner = [*unpack, *self.joined(step, self.samples)]
        full = self.joined(self.printer(self.whole, prepared), self.values)
        phi = self.printer(self.outer, prepared)
        phi.print([self.root])
        layout = [f"#   u[{c.start}:{c.stop}] = {comment(self.problem.text(c.node), 100)}" for c in self.components]
        text = "\n".join(
            [
                "# ---- F, whose entries are the expectations, and phi",
                *layout,
                "def inner(data, w, batch, h):",
                '    """F(w; xi): the mean over a minibatch."""',
                *("    " + line for line in inner),
                "",
                "",
                "def inner_full(data, w, h):",
                '    """F(w), exactly."""',
                *("    " + line for line in full),
                "",
                "",
                "def outer(data, w, u, c, h):",
                '    """phi(u) by envelopes, with what has neither expectation nor prox."""',
                *("    " + line for line in phi.lines),
                f"    return torch.as_tensor({phi.ref(self.root)})",
            ]
        )
        body = "".join(f"    {line}\n" for line in prepared.lines)
        return text, f'def prepare(data):\n    """What depends on the data alone, computed once."""\n{body}    return data'

    def form(self) -> Form:
        """What the loop over vectors asks for."""
        length = max((c.stop for c in self.components), default=0)
        values = {"components": length, "samples": self.cost(self.samples), "rows": self.cost(self.values)}
        return Form(record=VectorSolver, settings=VectorSettings, defined=("inner", "inner_full", "outer"), values=values)

    def printer(self, lowering: Lowering, prepared: Prepared) -> Printer:
        """A printer whose names for what is computed once are new."""
        names = Names([*self.taken(), *prepared.taken])
        return Printer(layout=self.layout, comments=self.comments(lowering), prepared=prepared, names=names, autograd=True)

    @staticmethod
    def joined(printer: Printer, values: list[Val]) -> list[str]:
        """Statements that end with the values as one flat vector."""
        printer.print(values)
        texts = [f"{printer.ref(v)}.reshape({math.prod([a.size for a in v.axes] + list(v.event))})" for v in values]
        joined = texts[0] if len(texts) == 1 else f"torch.cat([{', '.join(texts)}])"
        return [*printer.lines, f"return {joined}"]

    def cost(self, values: list[Val]) -> int:
        """Values of g(w; xi) at one block and one sample: the largest product of axes; components that share draws count once."""
        groups: dict[Any, int] = {}
        for entry, sample, value in zip(self.components, self.samples, values, strict=True):
            drawn = frozenset(v.id for v in below([sample]).values() if v.op in (draw, draw_range, noise))
            tables = frozenset(b.domain.name for n in ir.walk(entry.node) if isinstance(n, ir.Reduce) for b in n.binders)
            size = max(math.prod(a.size for a in v.axes) for v in below([value]).values())
            groups[drawn, tables] = max(groups.get((drawn, tables), 0), size)
        return sum(groups.values())

