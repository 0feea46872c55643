"""Binders made concrete: minibatches of their elements, or all of them, given the binders around them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch

from fccomodel.core import ir
from fccomodel.evaluation import interpret
from fccomodel.evaluation import selections as selection
from fccomodel.library.reductions.sum import SUM
from fccomodel.solver import errors
from fccomodel.solver.lower._met import counted, filled, taken, vacant
from fccomodel.solver.lower._records import Part, Ranged, Segment, Slot
from fccomodel.solver.lower._slots import Slots
from fccomodel.solver.lower._state import Env
from fccomodel.solver.operations import Val, in_order, union
from fccomodel.solver.operations.draws import draw, draw_range
from fccomodel.solver.operations.entrywise import number
from fccomodel.solver.operations.sources import arange, cell, take


@dataclass(eq=False)
class Ranging(Slots):
    """Slots for binders, by minibatch or in full."""

    def ranges(
        self,
        binders: tuple[ir.Binder, ...],
        condition: ir.Expr | None,
        env: Env,
        *,
        body: ir.Expr,
        inner: bool = False,
        chunk: bool = False,
        whole: bool = False,
        dense: bool = False,
        total: bool = False,
    ) -> Ranged:
        """The binders of a reduction of ``body`` made concrete.

        inner   drawn for a mean       chunk   the first binder goes through in slices (full pass)
        whole   no minibatch           dense   no rows laid out flat by their keys
        total   it has a value over no elements
        """
        outside = tuple((id(b), s.ids.id) for b, s in env.items())
        key = (tuple(id(b) for b in binders), id(condition), outside, chunk, whole, dense, total, self.again)
        if key in self.slots:
            return self.slots[key]
        env = dict(env)
        parts: list[Part] = []
        selections = selection.split(binders, condition)
        needed = {b for sel in selections for b in sel.parents}
        listed = [s for s in selections if not isinstance(s.binder.domain, ir.Distribution) or s.binder in needed]
        own = {s.binder for s in listed}
        averaged = inner and not any(p in own for s in listed for p in s.parents)
        for sel in [*listed, *(s for s in selections if s not in listed)]:
            if isinstance(sel.binder.domain, ir.VectorSet):
                self.refuse(errors.inner_problem(sel.binder))
            if isinstance(sel.binder.domain, ir.Distribution):
                if sel.parents or sel.static or sel.masks or sel.keys or sel.orders:
                    self.refuse(errors.condition_on_draws(sel.binder))
                slot, part = self.noise(sel.binder, env, parts, body)
            elif self.full:
                single = sum(bool(s.parents) for s in selections) == 1
                flat = not dense and (not any(p in own for p in sel.parents) or single and all(p in own for p in sel.parents))
                slot, part, aliases = self.full_slot(sel, env, chunk and not parts, averaged, own, flat, total)
                env.update(aliases)
            else:
                slot, part, aliases = self.sampled_slot(sel, env, inner, whole, own, body, total)
                env.update(aliases)
            env[sel.binder] = slot
            parts.append(part)
        self.slots[key] = Ranged(env=env, parts=tuple(parts))
        self.alive.append((condition, binders))
        return self.slots[key]

    # ------------------------------------------------------------------------------------------------------- minibatches
    def sampled_slot(
        self, sel: selection.Selection, env: Env, inner: bool, whole: bool, own: set[ir.Binder], body: ir.Expr, total: bool
    ) -> tuple[Slot, Part, Mapping[ir.Binder, Slot]]:
        """A minibatch of the binder's elements, given the sampled elements around it; all of them where that costs no more."""
        if not sel.parents:
            return (*self.free_slot(sel, env, inner, whole, body), {})
        binder, related = sel.binder, any(p in own for p in sel.parents)
        if related or total:
            realised = selection.realise(self.bound, replace(sel, masks=()), empty="keep")
        else:
            realised = self.complete_ranges(sel, env)
        if realised.size is not None and (whole or self.complete(sel, env)):
            return (*self.masked_slot(sel, env, own, total), {})
        n = len(realised.rows) if realised.size is None else int(realised.size.max())
        if not related and self.keyed(sel):
            found = self.segments(sel, env, own, total, most=min(n, self.batch(binder, n, inner) or n))
            if found is not None:
                return found
        return (*self.cell_slot(sel, realised, env, min(n, self.batch(binder, n, inner) or n) or 1, related, body), {})

    def free_slot(self, sel: selection.Selection, env: Env, inner: bool, whole: bool, body: ir.Expr) -> tuple[Slot, Part]:
        """A minibatch of elements that nothing around restricts."""
        g, binder, rows = self.graph, sel.binder, self.members(sel)
        n = len(rows)
        size = None if whole else self.batch(binder, n, inner)
        if size is None or size >= n:
            slot = self.all_slot(sel)
            return slot, Part(binder=binder, axis=slot.ids.axes[0], count=g.const(n))
        axis = g.axis(self.unique(binder.name), size, "sample")
        around = self.blocks_around(binder, env, body)
        if around and self.inner_sampling == "per_block":
            pos = g.make(draw_range, [g.const(0), g.const(n)], axes=(*around, axis), axis=axis, most=n)
        else:
            pos = g.make(draw, axis=axis, n=n, how=self.sampling)
        self.draws.append(pos)
        key = self.rows_key(sel, rows)
        ids = pos if key is None else self.take(key, pos, ())
        slot = Slot(binder=binder, ids=ids, pos=ids, n=self.total(binder), members=rows)
        return slot, Part(binder=binder, axis=axis, count=g.const(n))

    def cell_slot(
        self, sel: selection.Selection, realised: selection.Ranges, env: Env, most: int, related: bool, body: ir.Expr
    ) -> tuple[Slot, Part]:
        """A minibatch of the elements in the cell that the sampled ones around it decide, ``most`` of them."""
        g, binder = self.graph, sel.binder
        parents = [env[p].ids for p in sel.parents]
        axis = g.axis(self.unique(binder.name), most, "sample")
        stem = self.unique(f"{binder.name}_of")
        skip = None
        if realised.start is None or realised.size is None:
            n = len(realised.rows)
            pos = g.make(draw, axis=axis, n=n, how=self.sampling)
            count: Val = g.const(n)
        else:
            valid = realised.size if realised.skip is None else realised.size - (realised.skip >= 0)
            start = self.cells(f"{stem}_start", realised.start, parents)
            count = self.cells(f"{stem}_size", valid, parents)
            skip = None if realised.skip is None else self.cells(f"{stem}_skip", realised.skip, parents)
            bounds = [start, count] if skip is None else [start, count, skip]
            axes = union([start, count])
            if self.inner_sampling == "per_block":
                axes = in_order([*axes, *self.blocks_around(binder, env, body)])
            pos = g.make(draw_range, bounds, axes=(*axes, axis), axis=axis, most=int(realised.size.max()))
        self.draws.append(pos)
        ids = self.take(self.ship(f"{stem}_rows", realised.rows), pos, ())
        slot = Slot(binder=binder, ids=ids, pos=ids, n=self.total(binder), members=self.members(sel), selection=sel)
        count = g.make(number, [count]) if count.op is cell else count
        weight = accept = None
        if sel.masks:
            weight = self.mask(replace(sel, keys=(), orders=(), excludes=()), {**env, binder: slot})
            accept = None if related or realised.accept is None else self.cells(f"{stem}_accept", realised.accept, parents)
        return slot, Part(binder=binder, axis=axis, weight=weight, count=count, accept=accept, parents=sel.parents)

    def keyed(self, sel: selection.Selection) -> bool:
        """Equal keys alone decide the binder's range."""
        return bool(sel.keys) and not (sel.orders or sel.excludes or sel.masks)

    def complete(self, sel: selection.Selection, env: Env) -> bool:
        """A small set of values or labels under a condition: all of it, with a mask."""
        return not sel.keys and not isinstance(sel.binder.domain, ir.RowSet) and self.total(sel.binder) <= 64

    def masked_slot(self, sel: selection.Selection, env: Env, own: set[ir.Binder], total: bool) -> tuple[Slot, Part]:
        """All elements, with a mask for those that the condition accepts."""
        slot = self.all_slot(sel)
        mask = self.complete_mask(sel, {**env, sel.binder: slot}, own, total)
        axis = slot.ids.axes[0]
        n = self.graph.const(axis.size)
        accept = self.graph.average(mask, [axis])
        return slot, Part(binder=sel.binder, axis=axis, weight=mask, count=n, accept=accept, parents=sel.parents)

    def complete_ranges(self, sel: selection.Selection, env: Env) -> selection.Ranges:
        """A selection's ranges, none of them empty: F0705 where one that is met is, others borrow."""
        found = selection.realise(self.bound, sel, empty="keep")
        if found.size is None:
            return found
        empty = vacant(self.bound, sel.binder, sel.parents, counted(found), env)
        return found if empty is None else filled(found, empty)

    def complete_mask(self, sel: selection.Selection, env: Env, own: set[ir.Binder], total: bool) -> Val:
        """``mask``; where a combination around this reduction that is not met has no elements, all of them."""
        mask, parents = self.mask(sel, env), [env[p] for p in sel.parents]
        related = any(p in own for p in sel.parents)
        if total or related or sel.masks and all(slot.selection is None for slot in parents):
            return mask
        count = counted(selection.realise(self.bound, sel, empty="keep"))
        empty = vacant(self.bound, sel.binder, sel.parents, count, env)
        if empty is None:
            return mask
        whole = self.cells(self.unique(f"{sel.binder.name}_empty"), empty.astype(np.float64), [env[p].ids for p in sel.parents])
        return self.graph.apply("max", mask, whole)

    def combinations(self, node: ir.Reduce, env: Env) -> Val:
        """How many combinations of a reduction's binders satisfy its condition, for each cell of the binders around it."""
        one = ir.Reduce(kind=SUM.name, binders=node.binders, body=ir.Const(value=1.0), condition=node.condition, span=node.span)
        parents = [b for b in self.free(one) if b in env]
        lists = [taken(self.bound, b, env) for b in parents]
        with torch.no_grad():
            found = interpret.evaluate(self.bound, one, {}, dict(zip(parents, lists, strict=True))).numpy()
        if not parents:
            if not found > 0:
                selection.no_elements(self.bound, node.binders[-1])
            return self.graph.const(float(found))
        table = np.ones(tuple(self.total(b) for b in parents))
        table[np.ix_(*lists)] = found
        empty = vacant(self.bound, node.binders[-1], parents, table, env)
        table = table if empty is None else np.where(empty, 1.0, table)
        return self.cells(self.unique(f"{node.binders[0].name}_combinations"), table, [env[b].ids for b in parents])

    # -------------------------------------------------------------------------------------------------------- full passes
    def full_slot(
        self, sel: selection.Selection, env: Env, chunk: bool, averaged: bool, own: set[ir.Binder], flat: bool, total: bool
    ) -> tuple[Slot, Part, Mapping[ir.Binder, Slot]]:
        """All elements of the binder; keyed to complete axes they lie flat, otherwise a mask says which pairs count."""
        g, binder = self.graph, sel.binder
        if not sel.parents:
            slot = self.all_slot(sel, "chunk" if chunk else "all", averaged)
            axis = slot.ids.axes[0]
            return slot, Part(binder=binder, axis=axis, count=g.const(axis.size)), {}
        if flat and self.keyed(sel):
            found = self.segments(sel, env, own, total)
            if found is not None:
                return found
        slot = self.all_slot(sel)
        mask = self.complete_mask(sel, {**env, binder: slot}, own, total)
        axis = slot.ids.axes[0]
        return slot, Part(binder=binder, axis=axis, weight=mask, count=g.total(mask, [axis]), parents=sel.parents), {}

    def segments(
        self, sel: selection.Selection, env: Env, own: set[ir.Binder], total: bool, most: int | None = None
    ) -> tuple[Slot, Part, Mapping[ir.Binder, Slot]] | None:
        """Rows partitioned by key: one flat axis, each row knowing the cell of parents that it belongs to; None where binders
        around them do not lie along the parents' axes alone, or where there are more than ``most`` rows for each cell."""
        g, binder = self.graph, sel.binder
        parents = [env[p] for p in sel.parents]
        axes = [s.ids.axes[0] for s in parents if len(s.ids.axes) == 1 and s.ids.static and s.draw is None]
        if len(axes) != len(parents) or len(set(axes)) != len(axes):
            return None
        moved = {b: s for b, s in env.items() if any(a in axes for a in s.ids.axes)}
        if any(len(s.ids.axes) != 1 or s.draw is not None or not s.ids.static for s in moved.values()):
            return None
        if total or any(p in own for p in sel.parents):
            realised = selection.realise(self.bound, sel, empty="keep")
        else:
            realised = self.complete_ranges(sel, env)
        assert realised.start is not None and realised.size is not None
        lists = [self.known_ids(s) for s in parents]
        grid = np.ix_(*lists)
        start, size = realised.start[grid].ravel(), realised.size[grid].ravel()
        if most is not None and size.sum() > size.size * most:
            return None
        cell = np.repeat(np.arange(len(size)), size)
        offset = np.arange(len(cell)) - np.repeat(np.cumsum(size) - size, size)
        stem = self.unique(f"{binder.name}_by")
        axis = g.axis(self.unique(binder.name), len(cell), "all")
        pos = g.make(arange, axis=axis)

        def per_row(key: str, array: np.ndarray) -> Val:
            return g.make(take, [pos], key=self.ship(f"{stem}_{key}", array), event=())

        rows = realised.rows[np.repeat(start, size) + offset]
        own_ids = per_row("rows", rows)
        slot = Slot(binder=binder, ids=own_ids, pos=own_ids, n=self.total(binder), members=np.unique(rows), selection=sel)
        places = dict(zip(axes, np.unravel_index(cell, tuple(len(x) for x in lists)), strict=True))
        aliases = {}
        for b, s in moved.items():
            ids = self.known_ids(s)[places[s.ids.axes[0]]]
            alias = per_row(b.name, ids)
            aliases[b] = replace(s, ids=alias, pos=alias)
        segment = Segment(cells=self.ship(f"{stem}_cell", cell), sizes=self.ship(f"{stem}_size", size), parents=tuple(axes))
        part = Part(binder=binder, axis=axis, count=g.const(1), segment=segment, parents=sel.parents)
        return slot, part, aliases
