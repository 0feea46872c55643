"""Where a binder stands: at all elements of its set, at those of a mask, at draws of a distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fccomodel.core import ir
from fccomodel.evaluation import draws, elements, members, selections
from fccomodel.solver import errors
from fccomodel.solver.lower._records import Part, Ranged, Slot
from fccomodel.solver.lower._state import Env, State
from fccomodel.solver.operations import Axis, Val, union
from fccomodel.solver.operations.draws import fixed_noise, noise
from fccomodel.solver.operations.entrywise import number
from fccomodel.solver.operations.indexing import pick
from fccomodel.solver.operations.sources import arange, cell, chunk, take

#: draws of a distribution in a step
DRAWN = 256


@dataclass(eq=False)
class Slots(State):
    """The slots that need no choice of samples, and what all slots are made of."""

    # ---------------------------------------------------------------------------------------------------- all elements
    def everything(self, binder: ir.Binder, sel: selections.Selection | None = None) -> Slot:
        """The binder at every element of its set, or of those that a condition on it alone accepts."""
        key = ("all", id(binder), id(sel))
        if key not in self.slots:
            self.slots[key] = Ranged(env={binder: self.all_slot(sel or selections.Selection(binder=binder))}, parts=())
            self.alive.append((binder, sel))
        return self.slots[key].env[binder]

    def members(self, sel: selections.Selection) -> np.ndarray:
        """The ids of a binder's elements by itself."""
        return selections.realise(self.bound, members.alone(sel)).rows

    def all_slot(self, sel: selections.Selection, kind: str = "all", averaged: bool = False) -> Slot:
        """Every element; in a full pass over many pairs, rows that are averaged over are kept as an array that can be thinned."""
        rows = self.members(sel)
        axis = self.graph.axis(self.unique(sel.binder.name), len(rows), kind)
        heavy = self.full and averaged and bool(self.nests)
        key = self.rows_key(sel, rows, heavy)
        pos = self.graph.make(arange if kind == "all" else chunk, axis=axis, key=key)
        ids = pos if key is None else self.take(key, pos, ())
        if heavy and key is not None:
            self.nests[-1][key] = len(rows)
        related = sel if sel.parents else None
        return Slot(binder=sel.binder, ids=ids, pos=ids, n=self.total(sel.binder), members=rows, selection=related)

    def total(self, binder: ir.Binder) -> int:
        """How many ids there are: the rows of its table, or the members of its set."""
        return elements.extent(self.bound, binder.domain)

    def rows_key(self, sel: selections.Selection, rows: np.ndarray, force: bool = False) -> str | None:
        """The key of an array of row numbers; None where all elements are there in order."""
        if not force and len(rows) == self.total(sel.binder) and np.array_equal(rows, np.arange(len(rows))):
            return None
        domain = self.set_key(sel.binder.domain)
        return self.ship(domain if not sel.static else f"{domain}_{sel.binder.name}", rows)

    def set_key(self, domain: ir.Set) -> str:
        return domain.name if domain.name.isidentifier() else "set"

    def cells(self, key: str, array: np.ndarray, parents: list[Val]) -> Val:
        """A number per cell of the parents' ids."""
        return self.graph.make(cell, parents, key=self.ship(key, np.asarray(array)))

    def known_ids(self, slot: Slot) -> np.ndarray:
        """The ids that a complete axis goes through."""
        return self.data[slot.ids.attrs["key"]] if slot.ids.op is take else np.arange(slot.ids.axes[0].size)

    def mask(self, sel: selections.Selection, env: Env) -> Val:
        """1 where the conditions with other binders hold, else 0."""
        g = self.graph
        parts = [self.expr(m, env, False) for m in sel.masks]
        parts += [self.expr(ir.Apply(op="eq", args=pair), env, False) for pair in sel.keys]
        parts += [g.apply(op, self.expr(a, env, False), self.expr(b, env, False)) for op, a, b in sel.orders]
        parts += [g.apply("ne", env[sel.binder].ids, env[b].ids) for b in sel.excludes]
        result = parts[0]
        for part in parts[1:]:
            result = g.apply("and", result, part)
        return g.make(number, [result])

    # ------------------------------------------------------------------------------------------------------ random draws
    def noise(self, binder: ir.Binder, env: Env, parts: list[Part], body: ir.Expr) -> tuple[Slot, Part]:
        """A draw of a distribution: in a full pass the fixed sample of the reference, jointly with the binders beside it."""
        domain = binder.domain
        assert isinstance(domain, ir.Distribution)
        if domain.family not in ir.DISTRIBUTIONS:
            self.refuse(errors.sampler_from_python(domain.family, binder.span))
        args = [self.expr(a, env, False) for a in domain.args]
        event = self.shape(domain.shape)
        joint = [p.axis for p in parts if p.axis is not None and p.binder in env]
        if self.full:
            draw, axis = self.fixed_noise(binder, args, event, joint, env, body)
        else:
            beside = joint[-1:]
            axis = (
                beside[0]
                if beside
                else self.graph.axis(self.unique(binder.name), self.batch(binder, 1 << 30, True) or DRAWN, "sample")
            )
            name = self.unique(binder.name) if beside else axis.name
            draw = self.graph.make(noise, args, event=event, family=domain.family, axis=axis, name=name)
            self.draws.append(draw)
            if beside:
                return Slot(binder=binder, ids=draw, pos=None, n=0, draw=draw), Part(
                    binder=binder, axis=None, count=self.graph.const(1)
                )
        return Slot(binder=binder, ids=draw, pos=None, n=0, draw=draw), Part(binder=binder, axis=axis, count=self.graph.const(1))

    def fixed_noise(
        self, binder: ir.Binder, args: list[Val], event: tuple[int, ...], joint: list[Axis], env: Env, body: ir.Expr
    ) -> tuple[Val, Axis]:
        """The interpreter's sample of a distribution, made again from its seed."""
        domain, g = binder.domain, self.graph
        assert isinstance(domain, ir.Distribution)
        around = {a for b in self.free(body) if b in env for a in env[b].ids.axes}
        number = draws.count(draws.DRAWS, math.prod(a.size for a in around) * math.prod(event), math.prod(a.size for a in joint))
        axis = g.axis(self.unique(binder.name), number, "all")
        whole = [g.whole(a) if a.kind == "chunk" else a for a in joint]
        base = g.make(
            fixed_noise, axes=(*whole, axis), event=event, family=domain.family,
            seed=draws.stream(self.bound, binder, 0), serial=axis.order,
        )  # fmt: skip
        for a in joint:
            if a.kind == "chunk":
                slot = next(s for s in env.values() if s.ids.axes == (a,) and s.pos is not None)
                position = slot.ids.args[0] if slot.ids.op is take else slot.ids
                base = g.make(pick, [base, position], over=(g.whole(a),), fixed=(None,))
        return g.make(noise, [*args, base], event=event, family=domain.family, axis=axis), axis

    def blocks_around(self, binder: ir.Binder, env: Env, body: ir.Expr) -> tuple[Axis, ...]:
        """The axes of the binders around a drawn one that its body depends on."""
        if binder.kind != "~":
            return ()
        return union([env[b].ids for b in self.free(body) if b in env])
