"""From typed expressions to a graph of values with named axes: a minibatch of the problem, or a full pass over it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from fccomodel import atoms, elements, ir, selection
from fccomodel.bound import Bound
from fccomodel.graph import RESERVED, Axis, Graph, Val, merge_axes
from fccomodel.smoothing import Smoothed

#: a let family with at most so many members is evaluated whole, once a step
WHOLE_LET = 4096
#: a full pass over more pairs than this goes through its outer binder in chunks
DENSE = 1 << 21
#: between stages, the exact problem is evaluated on at most so many pairs
QUICK = 1 << 24


@dataclass(frozen=True, eq=False, kw_only=True)
class Slot:
    """What a binder stands for: ``ids`` of its elements in the table or set, ``pos`` in an estimator's buffer of length ``n``."""

    binder: ir.Binder
    ids: Val
    pos: Val | None
    n: int
    draw: Val | None = None
    members: np.ndarray | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Part:
    """One binder of a reduction: its axis, a weight per element (None: all alike), their number, and its segments if keyed."""

    axis: Axis
    weight: Val | None
    count: Val
    segment: Segment | None = None
    mean_count: float = 0.0
    parents: tuple[ir.Binder, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Segment:
    """Rows laid out flat, each with the cell of ``parents`` (complete axes) that it belongs to."""

    cells: str
    sizes: str
    parents: tuple[Axis, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Ranged:
    """The binders of one reduction made concrete."""

    env: dict[ir.Binder, Slot]
    parts: tuple[Part, ...]


@dataclass(frozen=True, kw_only=True)
class Buffer:
    """An estimator's state: one tracked value per block."""

    name: str
    shape: tuple[int, ...]
    text: str


@dataclass(eq=False)
class Lowering:
    """Lowers expressions of one problem into one graph.

    full       True for a pass over all rows (in chunks where pairs are many); False for a minibatch
    batch      (binder, number of elements, inner) -> sample size, or None for all elements
    memory     True where outer functions are evaluated at tracked estimates, False for plug-in minibatch values
    """

    bound: Bound
    full: bool
    batch: Callable[[ir.Binder, int, bool], int | None] = lambda binder, n, inner: None
    graph: Graph = field(default_factory=Graph)
    data: dict[str, np.ndarray] = field(default_factory=dict)
    buffers: dict[str, Buffer] = field(default_factory=dict)
    centres: dict[str, tuple[int, ...]] = field(default_factory=dict)
    draws: list[Val] = field(default_factory=list)
    memo: dict[tuple, Val] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=lambda: dict.fromkeys(RESERVED, 1))
    spans: dict[int, ir.Expr] = field(default_factory=dict)
    alive: list = field(default_factory=list)
    slots: dict[tuple, Ranged] = field(default_factory=dict)
    nests: list[dict[str, int]] = field(default_factory=list)
    thin: dict[str, int] = field(default_factory=dict)
    freed: dict[int, tuple[ir.Expr, tuple[ir.Binder, ...]]] = field(default_factory=dict)

    # ----------------------------------------------------------------------------------------------------------- names
    def unique(self, stem: str) -> str:
        """A fresh Python name."""
        stem = "".join(c if c.isalnum() else "_" for c in stem).strip("_") or "v"
        self.names[stem] = self.names.get(stem, 0) + 1
        return stem if self.names[stem] == 1 else f"{stem}_{self.names[stem]}"

    def ship(self, key: str, array: np.ndarray) -> str:
        """Registers an array that the program needs, under its key."""
        for count in itertools.count(1):
            name = key if count == 1 else f"{key}_{count}"
            known = self.data.setdefault(name, array)
            if known is array or (known.shape == array.shape and known.dtype == array.dtype and np.array_equal(known, array)):
                return name
        raise AssertionError

    def size(self, dim: ir.Dim) -> int:
        """A size as a number."""
        return elements.size(self.bound, dim)

    def shape(self, shape: ir.Shape) -> tuple[int, ...]:
        return tuple(self.size(n) for n in shape)

    # ------------------------------------------------------------------------------------------------------ expressions
    def expr(self, node: ir.Expr, env: Mapping[ir.Binder, Slot], linear: bool = True) -> Val:
        """The value of an expression where the binders stand for ``env``."""
        free = tuple((id(b), env[b].ids.id) for b in self.free(node) if b in env)
        key = (id(node), free, linear)
        if key not in self.memo:
            self.memo[key] = self._expr(node, env, linear)
            self.alive.append(node)
            self.spans.setdefault(self.memo[key].id, node)
        return self.memo[key]

    def free(self, node: ir.Expr) -> tuple[ir.Binder, ...]:
        if id(node) not in self.freed:
            self.freed[id(node)] = (node, ir.free_binders(node))
        return self.freed[id(node)][1]

    def _expr(self, node: ir.Expr, env: Mapping[ir.Binder, Slot], linear: bool) -> Val:
        g = self.graph
        match node:
            case ir.Const(value=value):
                return g.const(value)
            case ir.Size(dim=dim):
                return g.const(self.size(dim))
            case ir.Param(name=name):
                array = self.bound.params[name] if name in self.bound.params else self.bound.arrays[name]
                if np.ndim(array) == 0:
                    return g.make("param", name=name, value=float(array))
                return g.make("array_data", key=self.ship(name, np.asarray(array)), event=tuple(np.shape(array)), static=True)
            case ir.Var(name=name):
                return g.make("var", name=name, event=self.variable_shape(node), varying=True)
            case ir.Column(binder=binder, name=name):
                slot = env[binder]
                if slot.draw is not None:
                    return slot.draw
                return self.take(self.column_key(binder, name), slot.ids, self.column(binder, name).shape[1:])
            case ir.Element(binder=binder):
                slot = env[binder]
                if slot.draw is not None:
                    return slot.draw
                if isinstance(binder.domain, ir.ValueSet):
                    values = elements.values(self.bound, binder.domain)
                    return self.take(self.ship(self.set_key(binder.domain) + "_values", values), slot.ids, ())
                return slot.ids
            case ir.Item():
                return self.item(node, env, linear)
            case ir.Apply():
                return self.atom(node, env, linear)
            case ir.NetCall():
                return self.net(node, env)
            case ir.LetRef():
                return self.let(node, env, linear)
            case Smoothed():
                return self.smoothed(node, env)
            case ir.Reduce():
                return self.reduce(node, env, linear)
        raise TypeError(f"cannot lower {type(node).__name__}")

    def variable_shape(self, node: ir.Var) -> tuple[int, ...]:
        net = next((n for n in self.bound.nets if node.shape == (f"params({n})",)), None)
        if net is not None:
            return (sum(p.numel() for p in self.bound.nets[net].parameters()),)
        return self.shape(node.shape)

    # ------------------------------------------------------------------------------------------------------------ data
    def column(self, binder: ir.Binder, name: str) -> np.ndarray:
        return self.bound.tables[binder.domain.table].columns[name]

    def column_key(self, binder: ir.Binder, name: str) -> str:
        return self.ship(f"{binder.domain.table}_{name.strip('_')}", self.column(binder, name))

    def set_key(self, domain: ir.Set) -> str:
        return domain.name if domain.name.isidentifier() else "set"

    def take(self, key: str, ids: Val, event: tuple[int, ...]) -> Val:
        """Rows ``ids`` of a data array."""
        return self.graph.make("take", [ids], key=key, event=event, static=ids.static)

    # ------------------------------------------------------------------------------------------------------ atoms, items
    def atom(self, node: ir.Apply, env: Mapping[ir.Binder, Slot], linear: bool) -> Val:
        if node.op in ("dot", "matmul") and len(node.args) == 2:
            for a, b in (node.args, node.args[::-1]):
                rows = isinstance(a, ir.Column) and len(a.shape) == 1 and a.binder in env and env[a.binder].draw is None
                if rows and len(b.shape) == 1 and ir.variables_of(b):
                    weights = self.expr(b, env, False)
                    if not weights.axes:
                        return self.score(a, weights, env)
        keep = linear and node.op in ("add", "sub", "neg")
        if node.op in ("mul", "div") and linear:
            other = node.args[1:] if node.op == "div" else node.args
            sampled = [bool(self._random(a)) for a in node.args]
            keep = sum(sampled) <= 1 and not (node.op == "div" and any(self._random(a) for a in other))
        args = [self.expr(a, env, keep) for a in node.args]
        atom = atoms.get(node.op)
        if isinstance(atom, atoms.ScalarAtom):
            return self.graph.apply(node.op, *args, span=node.span)
        return self.graph.array(node.op, args, span=node.span)

    def _random(self, node: ir.Expr) -> bool:
        return any(isinstance(n, ir.Reduce) for n in ir.walk(node))

    def score(self, column: ir.Column, weights: Val, env: Mapping[ir.Binder, Slot]) -> Val:
        """``X[rows] @ w``, or ``(X @ w)[rows]`` where that touches fewer rows."""
        slot = env[column.binder]
        key = self.column_key(column.binder, column.name)
        sampled = math.prod(a.size for a in slot.ids.axes)
        if not weights.axes and (self.full or 2 * sampled >= len(self.data[key])):
            whole = self.graph.make("table_score", [weights], key=key, axes=(), event=(len(self.data[key]),), static=False)
            return self.graph.make("take_val", [whole, slot.ids], axes=slot.ids.axes, event=())
        rows = self.take(key, slot.ids, self.column(column.binder, column.name).shape[1:])
        return self.graph.make("score", [rows, weights], event=())

    def item(self, node: ir.Item, env: Mapping[ir.Binder, Slot], linear: bool) -> Val:
        base = self.expr(node.base, env, linear)
        fixed: list[int | None] = []
        moving: list[Val] = []
        for index in node.indices:
            if isinstance(index, ir.Const):
                fixed.append(int(index.value))
            else:
                fixed.append(None)
                assert isinstance(index, ir.Element)
                moving.append(env[index.binder].ids)
        event = base.event[len(node.indices) :]
        return self.graph.make("entry", [base, *moving], event=event, fixed=tuple(fixed))

    def net(self, node: ir.NetCall, env: Mapping[ir.Binder, Slot]) -> Val:
        variable = self.expr(node.params, env, False)
        event = self.shape(node.shape)
        if self.full and isinstance(node.arg, ir.Column) and env[node.arg.binder].draw is None:
            key = self.column_key(node.arg.binder, node.arg.name)
            rows = len(self.data[key])
            whole = self.graph.make(
                "table_net",
                [variable],
                net=node.net,
                variable=node.params.name,
                key=key,
                axes=(),
                event=(rows, *event),
                varying=True,
            )
            return self.graph.make("take_val", [whole, env[node.arg.binder].ids], axes=env[node.arg.binder].ids.axes, event=event)
        arg = self.expr(node.arg, env, False)
        return self.graph.make(
            "net", [variable, arg], net=node.net, variable=node.params.name, axes=arg.axes, event=event, varying=True
        )

    # ------------------------------------------------------------------------------------------------------------- lets
    def let(self, node: ir.LetRef, env: Mapping[ir.Binder, Slot], linear: bool) -> Val:
        let = node.let
        if not let.binders:
            return self.expr(let.body, env, linear)
        sizes = [len(elements.ids(self.bound, b.domain)) for b in let.binders]
        constant = any(isinstance(a, ir.Const) for a in node.args)
        if constant or math.prod(sizes) <= WHOLE_LET:
            inner = dict(env)
            for binder in let.binders:
                inner[binder] = self.everything(binder)
            whole = self.expr(let.body, inner, False)
            axes = [inner[b].ids.axes[0] for b in let.binders]
            moving, fixed = [], []
            for arg in node.args:
                fixed.append(int(arg.value) if isinstance(arg, ir.Const) else None)
                if isinstance(arg, ir.Element):
                    moving.append(env[arg.binder].ids)
            return self.graph.make(
                "pick",
                [whole, *moving],
                axes=merge_axes([_without(whole, axes), *moving]),
                event=whole.event,
                over=tuple(axes),
                fixed=tuple(fixed),
            )
        return self.expr(let.body, {**env, **{b: env[a.binder] for b, a in zip(let.binders, node.args, strict=True)}}, linear)

    def everything(self, binder: ir.Binder) -> Slot:
        """The binder at every element of its set."""
        sel = selection.Selection(binder=binder)
        key = ("all", id(binder))
        if key not in self.slots:
            self.slots[key] = Ranged(env={binder: self.all_slot(sel)}, parts=())
        return self.slots[key].env[binder]

    # ------------------------------------------------------------------------------------------------------- reductions
    def all_slot(self, sel: selection.Selection, kind: str = "all", averaged: bool = False) -> Slot:
        """Every element; in a full pass over many pairs, rows that are averaged over are kept as an array that can be thinned."""
        rows = selection.realise(self.bound, replace(sel, keys=(), orders=(), excludes=(), masks=(), parents=())).rows
        axis = self.graph.axis(self.unique(sel.binder.name), len(rows), kind)
        heavy = self.full and averaged and bool(self.nests)
        key = self.rows_key(sel, rows, heavy)
        pos = self.graph.make("arange" if kind == "all" else "chunk", axes=(axis,), static=kind == "all", axis=axis, key=key)
        ids = self.rows(sel, rows, pos, heavy)
        if heavy and key is not None:
            self.nests[-1][key] = len(rows)
        return Slot(binder=sel.binder, ids=ids, pos=ids, n=self.total(sel.binder), members=rows)

    def total(self, binder: ir.Binder) -> int:
        """How many ids there are: the rows of its table, or the members of its set."""
        domain = binder.domain
        return self.bound.tables[domain.table].n if isinstance(domain, ir.RowSet) else len(elements.ids(self.bound, domain))

    def rows_key(self, sel: selection.Selection, rows: np.ndarray, force: bool = False) -> str | None:
        """The key of an array of row numbers; None where all elements are there in order."""
        total = self.total(sel.binder)
        if not force and len(rows) == total and np.array_equal(rows, np.arange(total)):
            return None
        domain = self.set_key(sel.binder.domain)
        return self.ship(domain if not sel.static else f"{domain}_{sel.binder.name}", rows)

    def rows(self, sel: selection.Selection, rows: np.ndarray, pos: Val, force: bool = False) -> Val:
        """Row numbers at positions; positions themselves where all elements are there in order."""
        key = self.rows_key(sel, rows, force)
        return pos if key is None else self.graph.make("take", [pos], key=key, event=(), static=pos.static)

    def ranges(
        self, binders: tuple[ir.Binder, ...], condition: ir.Expr | None, env: Mapping[ir.Binder, Slot], inner: bool, chunk: bool
    ) -> Ranged:
        """The binders of a reduction made concrete."""
        outside = tuple((id(b), s.ids.id) for b, s in env.items())
        key = (tuple(id(b) for b in binders), id(condition), outside, chunk)
        if key in self.slots:
            return self.slots[key]
        env = dict(env)
        parts: list[Part] = []
        for sel in selection.split(binders, condition):
            if isinstance(sel.binder.domain, ir.Distribution):
                slot = self.noise(sel.binder, env)
                part = Part(axis=slot.ids.axes[-1], weight=None, count=self.graph.const(1))
            elif self.full:
                slot, part, aliases = self.full_slot(sel, env, chunk and not parts, inner)
                env.update(aliases)
            else:
                slot, part, aliases = self.sampled_slot(sel, env, inner)
                env.update(aliases)
            env[sel.binder] = slot
            parts.append(part)
        self.slots[key] = Ranged(env=env, parts=tuple(parts))
        self.alive.append((condition, binders))
        return self.slots[key]

    def noise(self, binder: ir.Binder, env: Mapping[ir.Binder, Slot]) -> Slot:
        """A draw of a distribution."""
        domain = binder.domain
        assert isinstance(domain, ir.Distribution)
        size = self.batch(binder, 1 << 30, True) or 256
        axis = self.graph.axis(self.unique(binder.name), 1 << 14 if self.full else size, "all" if self.full else "sample")
        args = [self.expr(a, env, False) for a in domain.args]
        shape = self.shape(domain.shape)
        draw = self.graph.make(
            "noise",
            args,
            axes=(*merge_axes(args), axis),
            event=shape,
            family=domain.family,
            axis=axis,
            static=False,
            fixed_seed=self.full,
            serial=len(self.draws),
        )
        self.draws.append(draw)
        return Slot(binder=binder, ids=draw, pos=None, n=0, draw=draw)

    def sampled_slot(
        self, sel: selection.Selection, env: Mapping[ir.Binder, Slot], inner: bool
    ) -> tuple[Slot, Part, dict[ir.Binder, Slot]]:
        """A minibatch of the binder's elements, given the sampled elements around it; all of them where that costs no more."""
        g = self.graph
        realised = selection.realise(self.bound, sel)
        n = len(realised.rows) if realised.size is None else int(realised.size.max())
        size = self.batch(sel.binder, n, inner)
        if not sel.parents:
            if size is None or size >= n:
                slot = self.all_slot(sel)
                return slot, Part(axis=slot.ids.axes[0], weight=None, count=g.const(n)), {}
            axis = g.axis(self.unique(sel.binder.name), size, "sample")
            pos = g.make("draw", axes=(axis,), axis=axis, n=n, static=False)
            self.draws.append(pos)
            ids = self.rows(sel, realised.rows, pos)
            slot = Slot(binder=sel.binder, ids=ids, pos=ids, n=self.total(sel.binder), members=realised.rows)
            return slot, Part(axis=axis, weight=None, count=g.const(n)), {}
        if realised.size is not None and self.partitioned(sel, env):
            cells = realised.size[np.ix_(*(self.known_ids(env[p]) for p in sel.parents))]
            if cells.sum() <= cells.size * min(n, size or n):
                return self.segments(sel, env)
        parents = [env[p].ids for p in sel.parents]
        axis = g.axis(self.unique(sel.binder.name), min(n, size or n), "sample")
        stem = self.unique(f"{sel.binder.name}_of")
        if realised.size is None:
            pos = g.make("draw", axes=(axis,), axis=axis, n=n, static=False)
            count: Val = g.const(n)
        else:
            start = self.cells(f"{stem}_start", realised.start, parents)
            count = self.cells(f"{stem}_size", realised.size, parents)
            skip = [] if realised.skip is None else [self.cells(f"{stem}_skip", realised.skip, parents)]
            pos = g.make("draw_range", [start, count, *skip], axes=(*merge_axes([start, count]), axis), axis=axis, static=False)
        self.draws.append(pos)
        ids = g.make("take", [pos], key=self.ship(f"{stem}_rows", realised.rows), event=(), static=False)
        slot = Slot(binder=sel.binder, ids=ids, pos=ids, n=self.total(sel.binder))
        sizes = np.asarray(float(n)) if realised.size is None else realised.size.astype(float)
        if not sel.masks:
            average = self.mean_cell(sizes, sel, env)
            return slot, Part(axis=axis, weight=None, count=count, mean_count=average, parents=sel.parents), {}
        accept = self.cells(f"{stem}_accept", realised.accept, parents)
        weight = g.apply("div", self.mask(sel, {**env, sel.binder: slot}, masks_only=True), accept)
        average = self.mean_cell(sizes * realised.accept, sel, env)
        part = Part(axis=axis, weight=weight, count=g.apply("mul", count, accept), mean_count=average, parents=sel.parents)
        return slot, part, {}

    def mean_cell(self, cells: np.ndarray, sel: selection.Selection, env: Mapping[ir.Binder, Slot]) -> float:
        """The average over all members of the parents."""
        lists = [
            env[p].members if env[p].members is not None else np.arange(k) for p, k in zip(sel.parents, cells.shape, strict=False)
        ]
        return float(cells[np.ix_(*lists)].mean()) if cells.ndim else float(cells)

    def cells(self, key: str, array: np.ndarray, parents: list[Val]) -> Val:
        """A number per cell of the parents' ids."""
        return self.graph.make(
            "cell", parents, key=self.ship(key, np.asarray(array)), event=(), static=all(p.static for p in parents)
        )

    def full_slot(
        self, sel: selection.Selection, env: Mapping[ir.Binder, Slot], chunk: bool, averaged: bool
    ) -> tuple[Slot, Part, dict[ir.Binder, Slot]]:
        """All elements of the binder; keyed to complete axes they lie flat, otherwise a mask says which pairs count."""
        g = self.graph
        if not sel.parents:
            slot = self.all_slot(sel, "chunk" if chunk else "all", averaged)
            return slot, Part(axis=slot.ids.axes[0], weight=None, count=g.const(slot.n)), {}
        if self.partitioned(sel, env):
            return self.segments(sel, env)
        slot = self.all_slot(sel)
        mask = self.mask(sel, {**env, sel.binder: slot}, masks_only=False)
        axis = slot.ids.axes[0]
        return slot, Part(axis=axis, weight=mask, count=g.total(mask, [axis]), parents=sel.parents), {}

    def partitioned(self, sel: selection.Selection, env: Mapping[ir.Binder, Slot]) -> bool:
        """The binder's rows are split by equal keys among the elements of complete axes."""
        plain = bool(sel.keys) and not (sel.orders or sel.excludes or sel.masks)
        return plain and all(env[p].draw is None and env[p].ids.static and len(env[p].ids.axes) == 1 for p in sel.parents)

    def segments(self, sel: selection.Selection, env: Mapping[ir.Binder, Slot]) -> tuple[Slot, Part, dict[ir.Binder, Slot]]:
        """Rows partitioned by key: one flat axis, each row knowing the cell of parents that it belongs to."""
        g = self.graph
        realised = selection.realise(self.bound, sel)
        lists = [self.known_ids(env[p]) for p in sel.parents]
        grid = np.ix_(*lists)
        start, size = realised.start[grid].ravel(), realised.size[grid].ravel()
        cell = np.repeat(np.arange(len(size)), size)
        offset = np.arange(len(cell)) - np.repeat(np.cumsum(size) - size, size)
        stem = self.unique(f"{sel.binder.name}_by")
        axis = g.axis(self.unique(sel.binder.name), len(cell), "all")
        pos = g.make("arange", axes=(axis,), static=True, axis=axis)

        def per_row(key: str, array: np.ndarray) -> Val:
            return g.make("take", [pos], key=self.ship(f"{stem}_{key}", array), event=(), static=True)

        rows = realised.rows[np.repeat(start, size) + offset]
        slot = Slot(binder=sel.binder, ids=per_row("rows", rows), pos=None, n=0)
        members = np.unravel_index(cell, tuple(len(x) for x in lists))
        aliases = {
            p: replace(env[p], ids=per_row(p.name, ids[member]), pos=None, members=ids[member])
            for p, ids, member in zip(sel.parents, lists, members, strict=True)
        }
        segment = Segment(
            cells=self.ship(f"{stem}_cell", cell),
            sizes=self.ship(f"{stem}_size", size),
            parents=tuple(env[p].ids.axes[0] for p in sel.parents),
        )
        return slot, Part(axis=axis, weight=None, count=g.const(1), segment=segment, parents=sel.parents), aliases

    def known_ids(self, slot: Slot) -> np.ndarray:
        """The ids that a complete axis goes through."""
        return self.data[slot.ids.attrs["key"]] if slot.ids.op == "take" else np.arange(slot.ids.axes[0].size)

    def mask(self, sel: selection.Selection, env: Mapping[ir.Binder, Slot], masks_only: bool) -> Val:
        """1 where the conditions with other binders hold, else 0."""
        g = self.graph
        parts = [self.expr(m, env, False) for m in sel.masks]
        if not masks_only:
            parts += [g.apply("eq", self.expr(a, env, False), self.expr(b, env, False)) for a, b in sel.keys]
            parts += [g.apply(op, self.expr(a, env, False), self.expr(b, env, False)) for op, a, b in sel.orders]
            parts += [g.apply("ne", env[sel.binder].ids, env[b].ids) for b in sel.excludes]
        result = parts[0]
        for part in parts[1:]:
            result = g.apply("and", result, part)
        return g.make("number", [result], event=())

    def reduce(self, node: ir.Reduce, env: Mapping[ir.Binder, Slot], linear: bool) -> Val:
        """A reduction; in a minibatch under a nonlinear function, the estimate u of it that is tracked."""
        averaged = node.kind in ("E", "mean", "sum", "prob")
        inside = any(a.kind == "chunk" for slot in env.values() for a in slot.ids.axes)
        pairs = self.pairs(node) if self.full else 0.0
        chunk = self.full and not inside and pairs > DENSE
        if chunk and not self.nests:
            self.nests.append({})
            try:
                return self.reduced(node, env, linear, averaged, chunk)
            finally:
                self.thinned(self.nests.pop(), pairs)
        return self.reduced(node, env, linear, averaged, chunk)

    def thinned(self, axes: Mapping[str, int], pairs: float) -> None:
        """Row sets to be thinned, the largest first, until a quick evaluation takes at most ``QUICK`` pairs."""
        sizes = dict(axes)
        while pairs > QUICK and sizes:
            key = max(sizes, key=lambda k: sizes[k])
            kept = max(256, int(sizes[key] / max(2.0, min(pairs / QUICK, 8.0))))
            if kept >= sizes[key]:
                break
            pairs *= kept / sizes[key]
            sizes[key] = kept
        self.thin |= {k: min(n, self.thin.get(k, n)) for k, n in sizes.items() if n < axes[k]}

    def reduced(self, node: ir.Reduce, env: Mapping[ir.Binder, Slot], linear: bool, averaged: bool, chunk: bool) -> Val:
        g = self.graph
        ranged = self.ranges(node.binders, node.condition, env, averaged, chunk)
        body = self.expr(node.body, ranged.env, averaged)
        if node.kind == "prob":
            body = g.make("number", [body], event=())
        if chunk and not averaged:
            body = self.gather(body, ranged.parts[0].axis)
        if not averaged:
            return self.other(node, body, ranged, env)
        parts, body = self.combined(node, ranged, body)
        for part in reversed(parts):
            if part.axis.kind == "chunk":
                body = self.gather(body, part.axis)
                part = replace(part, axis=body.attrs["onto"])
            body = self.reduce_part(node.kind, body, part)
        sampled = any(p.axis.kind == "sample" for p in ranged.parts)
        if self.full or linear or not sampled or not body.varying:
            return body
        return self.track(node, body, env)

    def combined(self, node: ir.Reduce, ranged: Ranged, body: Val) -> tuple[list[Part], Val]:
        """Where one binder's range depends on another of the same reduction, every combination weighs alike."""
        g = self.graph
        parts = list(ranged.parts)
        own = {id(b) for b in node.binders}
        for part in ranged.parts:
            inside = [p for p in part.parents if id(p) in own]
            if not inside:
                continue
            if part.segment is not None:
                gone = set(part.segment.parents)
                parts = [
                    replace(p, segment=None, count=g.const(p.axis.size)) if p is part else p for p in parts if p.axis not in gone
                ]
            elif self.full:
                assert part.weight is not None
                if node.kind == "sum":
                    continue
                others = [p.axis for p in ranged.parts if p.axis in part.count.axes]
                average = g.average(part.count, others)
                parts[parts.index(part)] = replace(part, count=average)
            elif node.kind != "sum":
                body = g.apply("mul", g.apply("div", part.count, g.const(part.mean_count)), body)
        return parts, body

    def reduce_part(self, kind: str, body: Val, part: Part) -> Val:
        g = self.graph
        if part.segment is not None:
            axes = tuple(sorted({*(a for a in body.axes if a is not part.axis), *part.segment.parents}, key=lambda a: a.order))
            return g.make("segment", [body], axes=axes, event=body.event, axis=part.axis, how="sum" if kind == "sum" else "mean",
                          cells=part.segment.cells, sizes=part.segment.sizes, parents=part.segment.parents)  # fmt: skip
        weighted = body if part.weight is None else g.apply("mul", part.weight, body)
        if part.weight is not None and self.full:
            total = g.total(weighted, [part.axis])
            return total if kind == "sum" else g.apply("div", total, part.count)
        mean = g.average(weighted, [part.axis])
        return g.apply("mul", part.count, mean) if kind == "sum" else mean

    def gather(self, body: Val, axis: Axis, onto: Axis | None = None) -> Val:
        """The values of all chunks together."""
        onto = onto or self.graph.known.get(("onto", axis))  # type: ignore[assignment]
        if onto is None:
            self.graph.axes += 1
            onto = Axis(name=axis.name, order=axis.order, size=axis.size, kind="all")
            self.graph.known[("onto", axis)] = onto  # type: ignore[assignment]
        axes = tuple(onto if a is axis else a for a in body.axes)
        if onto not in axes:
            axes = tuple(sorted((*axes, onto), key=lambda a: a.order))
        return self.graph.make("chunked", [body], axes=axes, event=body.event, axis=axis, onto=onto)

    def pairs(self, node: ir.Expr) -> float:
        """Elements in the largest dense product of axes below a node."""
        if not isinstance(node, ir.Reduce):
            return max((self.pairs(c) for c in node.children), default=1)
        own = 1.0
        for sel in selection.split(node.binders, node.condition):
            if isinstance(sel.binder.domain, ir.Distribution):
                own *= 1 << 14
            elif not (sel.keys and not (sel.orders or sel.excludes or sel.masks)):
                own *= len(elements.ids(self.bound, sel.binder.domain))
        return own * self.pairs(node.body)

    def other(self, node: ir.Reduce, body: Val, ranged: Ranged, env: Mapping[ir.Binder, Slot]) -> Val:
        """max, min, prod, cvar, ... over complete axes."""
        axes = tuple(
            body.attrs["onto"] if body.op == "chunked" and p.axis is body.attrs["axis"] else p.axis for p in ranged.parts
        )
        options = [self.expr(v, env, False) for v in node.options.values()]
        weights = [p.weight for p in ranged.parts if p.weight is not None]
        kept = tuple(a for a in merge_axes([body, *weights]) if a not in axes)
        if node.kind == "variance":
            mean = self.graph.average(body, axes)
            return self.graph.average(self.graph.apply("square", self.graph.apply("sub", body, mean)), axes)
        return self.graph.make(
            "reduce", [body, *options, *weights], axes=kept, event=body.event, kind=node.kind, over=axes, masked=bool(weights)
        )

    # -------------------------------------------------------------------------------------------- trackers and smoothing
    def block(self, node: Smoothed) -> tuple[list[Val], Val]:
        """In a full pass: the ids of all cells of an envelope, and its argument there (a maximum's terms along the last axis)."""
        inside = node.args[0] if len(node.args) == 1 and node.graph is None and isinstance(node.args[0], ir.Reduce) else None
        free = self.free(inside or node.original)
        binders = (*free, *(inside.binders if inside else ()))
        cells = {b: self.everything(b) for b in binders}
        env = dict(cells)
        argument = inside.body if inside is not None else node.argument if node.argument is not None else node.original
        size = math.prod((cells[b].ids.axes[0].size for b in binders), start=1) * self.pairs(argument)
        self.nests.append({})
        chunked = binders[0] if binders and size > DENSE else None
        if chunked is not None:
            env[chunked] = self.all_slot(selection.Selection(binder=chunked), "chunk")
        if inside is None and node.graph is None:
            value = self.graph.make("stack", [self.expr(a, env, False) for a in node.original.children], event=(len(node.args),))
        else:
            value = self.expr(argument, env, False)
        if chunked is not None:
            axis = env[chunked].ids.axes[0]
            value = self.gather(value, axis, cells[chunked].ids.axes[0])
        self.thinned(self.nests.pop(), size)
        return [cells[b].ids for b in binders], value

    def track(self, node: ir.Reduce, g_value: Val, env: Mapping[ir.Binder, Slot]) -> Val:
        """u: one estimate per block, updated from the minibatch value g."""
        slots = [env[b] for b in self.free(node) if b in env]
        if any(s.pos is None for s in slots):
            return g_value
        name = f"u{len(self.buffers) + 1}"
        shape = tuple(s.n for s in slots) + g_value.event
        self.buffers[name] = Buffer(name=name, shape=shape, text=self.bound.problem.text(node))
        return self.graph.make(
            "track",
            [g_value, *(s.pos for s in slots)],
            axes=merge_axes([g_value, *(s.pos for s in slots)]),
            event=g_value.event,
            name=name,
        )

    def smoothed(self, node: Smoothed, env: Mapping[ir.Binder, Slot]) -> Val:
        """An envelope at its argument; in a full pass the function itself."""
        if self.full:
            return self.expr(node.original, env, True)
        g = self.graph
        if node.graph is not None:
            t = self.expr(node.args[0], env, False if not node.inner else True)
            if node.inner:
                return g.make("envelope", [t], event=t.event, graph=node.graph, name="inner", scale=None)
            return g.make(
                "envelope",
                [t, self.centre(node, env, t.event)],
                event=t.event,
                graph=node.graph,
                name=node.name,
                scale=node.bound,
            )
        if len(node.args) == 1 and isinstance(node.args[0], ir.Reduce):
            inside = node.args[0]
            ranged = self.ranges(inside.binders, inside.condition, env, False, False)
            body = self.expr(inside.body, ranged.env, False)
            axes = tuple(p.axis for p in ranged.parts)
            slots = [*(env[b] for b in self.free(inside) if b in env), *(ranged.env[b] for b in inside.binders)]
            self.centres[node.name] = tuple(s.n for s in slots)
            positions = [s.pos for s in slots]
            centre = g.make("centre", positions, name=node.name, event=(), axes=merge_axes(positions))
            return g.make(
                "smooth_max",
                [body, centre],
                axes=tuple(a for a in body.axes if a not in axes),
                event=(),
                over=axes,
                name=node.name,
            )
        values = [self.expr(a, env, False) for a in node.args]
        stacked = g.make("stack", values, event=(len(values),))
        self.centres[node.name] = (len(values),)
        return g.make(
            "smooth_max",
            [stacked, g.make("centre", name=node.name, event=(len(values),), axes=())],
            event=(),
            over=(),
            name=node.name,
        )

    def centre(self, node: Smoothed, env: Mapping[ir.Binder, Slot], event: tuple[int, ...]) -> Val:
        """The centre of a block's smoothing, zero until it is moved."""
        slots = [env[b] for b in self.free(node.args[0]) if b in env]
        if any(s.pos is None for s in slots):
            return self.graph.const(0.0)
        self.centres[node.name] = tuple(s.n for s in slots) + event
        positions = [s.pos for s in slots]
        return self.graph.make("centre", positions, name=node.name, event=event, axes=merge_axes(positions))


def _without(val: Val, axes: list[Axis]) -> Val:
    """A stand-in with the axes of ``val`` that are not in ``axes``."""
    return Val(id=-1, op="const", axes=tuple(a for a in val.axes if a not in axes))
