"""Reductions: means and sums of minibatches or of everything, maxima and the like over complete axes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from fccomodel.core import ir
from fccomodel.evaluation.sets import selections
from fccomodel.library import reductions
from fccomodel.library.reductions.expectation import E
from fccomodel.normal_form.reformulations.largest_of_many import TOGETHER
from fccomodel.program import errors
from fccomodel.program.lower.binders.binders import Binders
from fccomodel.program.lower.leaves.cells import Cells
from fccomodel.program.lower.leaves.slots import Slots
from fccomodel.program.lower.records import Part, Ranged, Way
from fccomodel.program.lower.reductions.algebra import Logarithms, Numbers, gathered, product
from fccomodel.program.lower.reductions.estimates import Estimates
from fccomodel.program.lower.reductions.separated import Separated
from fccomodel.program.lower.reductions.sizes import Sizes
from fccomodel.program.lower.state import Env, Linear, Lower, State
from fccomodel.program.operations import Axis, Val, in_order
from fccomodel.program.operations.entrywise import number, spread
from fccomodel.program.operations.estimates import couple
from fccomodel.program.operations.indexing import pick
from fccomodel.program.operations.reductions import reduce
from fccomodel.program.operations.sources import arange
from fccomodel.program.operations.sources import chunk as chunk_of

#: a full pass over more pairs than this goes through its outer binder in chunks
DENSE = 1 << 21
#: Outer elements that share a key, at least, for a reduction to be made once for each key.
SHARED_BY = 2


class Reductions:
    """Reductions of expressions, by what their kinds say of themselves."""

    def __init__(
        self,
        state: State,
        slots: Slots,
        cells: Cells,
        binders: Binders,
        separated: Separated,
        sizes: Sizes,
        estimates: Estimates,
        lower: Lower,
    ):
        self.state, self.slots, self.cells, self.binders = state, slots, cells, binders
        self.separated, self.sizes, self.estimates, self.lower = separated, sizes, estimates, lower
        self.spelled: dict[ir.Reduce, ir.Expr] = {}

    def value(self, node: ir.Reduce, env: Env, linear: Linear) -> Val:
        """A reduction; in a minibatch under a nonlinear function, the estimate u of it that is tracked."""
        state = self.state
        if state.stable and linear is not True:
            log = state.logarithms.logged(node)
        else:
            log = None
        if log is not None and not reductions.of(node).logarithmic:
            return state.graph.apply("exp", self.lower(log, env, False))
        if (form := self.separated.form(node)) is not None:
            return self.lower(form, env, linear)
        if (value := self.separated.by_runs(node, env)) is not None:
            return value
        if (value := self.by_keys(node, env, linear)) is not None:
            return value
        inside = any(a.kind == "chunk" for slot in env.values() for a in slot.ids.axes)
        if state.full:
            pairs = self.sizes.pairs(node, through=node.binders[0])
        else:
            pairs = 0.0
        chunk = state.full and not inside and pairs > DENSE
        if chunk and not state.thinning.nests:
            with state.thinning.over(pairs):
                return self.reduced(node, env, linear, chunk)
        return self.reduced(node, env, linear, chunk)

    def by_keys(self, node: ir.Reduce, env: Env, linear: Linear) -> Val | None:
        """A reduction in a full pass whose rows are those with the keys of an outer element, and that
        depends on this element in no other way: one value for each different key, read by every
        outer element. None of another one."""
        state, outer = self.state, [b for b in self.state.free(node) if b in env]
        if not state.full or len(outer) != 1 or not selections.listed(outer[0]):
            return None
        (binder,), slot = outer, env[outer[0]]
        if slot.members is None or (keys := keys_alone(node, binder)) is None:
            return None
        codes = selections.key_codes(state.bound, binder, keys, slot.members)
        _, first, which = np.unique(codes, return_index=True, return_inverse=True)
        if SHARED_BY * len(first) > len(slot.members):
            return None
        rows = state.ship(state.unique(f"{binder.name}_keys"), slot.members[first])
        value = self.lower(
            node, {binder: self.slots.listed(selections.Selection(binder=binder), rows)}, linear
        )
        axes = [axis for axis in value.axes if axis.name.startswith(binder.name) and axis.size == len(first)]
        if len(axes) != 1:
            if not value.axes:
                return value
            return None
        place = np.zeros(state.total(binder), dtype=np.int64)
        place[slot.members] = which.reshape(-1)
        at = state.cells(state.unique(f"{binder.name}_key"), place, [slot.ids])
        return state.graph.make(pick, [value, at], over=tuple(axes), fixed=(None,))

    def reduced(self, node: ir.Reduce, env: Env, linear: Linear, chunk: bool) -> Val:
        """A reduction over its binders' elements, those of the first in slices (``chunk``)."""
        kind, g = reductions.of(node), self.state.graph
        if self.state.coupled and not self.state.full and kind.coupling:
            return self.coupled(node, env)
        if not (kind.linear or kind.logarithmic):
            if kind.lowered is None and kind.program is None:
                return self.lower(self.spelled_out(node), env, linear)
            some = self.state.full and kind.sampled
            dense = kind.lowered is None or not self.state.full
            way = Way(
                body=node.body, inner=some, chunk=chunk, whole=True, dense=dense, total=kind.total, runs=True
            )
            ranged = self.ranged(node, env, way)
            return self.complete(node, self.lower(node.body, ranged.env, False), ranged, env)
        ranged = self.ranged(
            node, env, Way(body=node.body, inner=True, chunk=chunk, total=kind.total, runs=True)
        )
        under: Linear = "log" if kind.logarithmic else True
        body = self.lower(node.body, ranged.env, under)
        if kind.condition:
            body = g.make(number, [body])
        elements = {*body.axes, *ranged.axes}
        algebra = Logarithms(g, self.state.full) if kind.logarithmic else Numbers(g)
        body = self.averaged(node, kind.total, ranged, body, env, algebra)
        if self.state.full:
            return body
        if oracle(node):
            self.state.sampled.setdefault(body.id, math.prod(a.size for a in elements))
        sampled = any(a.kind == "sample" for a in ranged.axes)
        if linear == under or self.state.again or not sampled or not body.varying:
            return body
        return self.estimates.tracked(node, body, env, kind.logarithmic)

    def ranged(self, node: ir.Reduce, env: Env, way: Way) -> Ranged:
        """Its binders made concrete."""
        return self.binders.ranged(node.binders, node.condition, env, way)

    def spelled_out(self, node: ir.Reduce) -> ir.Expr:
        """A reduction of a kind without operations of its own as a function of means."""
        if node not in self.spelled:
            form = reductions.of(node).by_means
            assert form is not None, f"no program can compute {node.kind}"
            self.spelled[node] = form.of(node, lambda body: E.over(node, body))
        return self.spelled[node]

    # ------------------------------------------------------------------------------- means and sums
    def averaged(
        self, node: ir.Reduce, total: bool, ranged: Ranged, body: Val, env: Env, algebra: Numbers
    ) -> Val:
        """One mean or sum after another, from the last binder to the first."""
        if ranged.related:
            if total:
                count = None
            else:
                count = self.cells.combinations(node, env)
            return (self.all_combined if self.state.full else self.some_combined)(
                ranged, body, count, algebra
            )
        for part in reversed(ranged.parts):
            if part.axis is not None and part.axis.kind == "chunk":
                plain = part.weight is None and part.segment is None
                if plain and (mean := algebra.swept(body, part.axis)) is not None:
                    if total:
                        body = algebra.times(part.count, mean)
                    else:
                        body = mean
                    continue
                body = gathered(self.state.graph, body, part.axis)
                part = replace(part, axis=body.attrs["onto"])
            body = self.over_part(total, body, part, algebra)
        return body

    def over_part(self, total: bool, body: Val, part: Part, algebra: Numbers) -> Val:
        """The mean or sum over one binder."""
        axis = part.axis
        if axis is None:
            return body
        if part.segment is not None:
            if part.weight is None:
                body = body
            else:
                body = algebra.times(part.weight, body)
            return algebra.segment(body, axis, part.segment, "sum" if total else "mean")
        if part.weight is None:
            mean = algebra.average(body, [axis])
            if total:
                return algebra.times(part.count, mean)
            return mean
        weighted = algebra.times(part.weight, body)
        if self.state.full:
            whole = algebra.total(weighted, [axis])
            if total:
                return whole
            return algebra.over(whole, part.count)
        mean = algebra.average(weighted, [axis])
        if total:
            return algebra.times(part.count, mean)
        if part.accept is None:
            return mean
        return algebra.over(mean, part.accept)

    def some_combined(self, ranged: Ranged, body: Val, count: Val | None, algebra: Numbers) -> Val:
        """In a step, where one binder's range depends on another of the same reduction: every
        combination weighs alike."""
        axes = set(ranged.axes)
        cells = [
            p for p in ranged.parts if p.segment is not None and not axes.intersection(p.segment.parents)
        ]
        if cells:
            parts = [p for p in ranged.parts if p.axis is not None]
        else:
            parts = combined(ranged)
        for weight in [*(p.weight for p in parts if p.weight is not None), *(p.count for p in parts)]:
            body = algebra.times(weight, body)
        if count is None or cells:
            body = body
        else:
            body = algebra.over(body, count)
        for part in reversed(parts):
            assert part.axis is not None
            if part in cells:  # all rows of the cells around: each belongs to its own
                body = self.over_part(True, body, replace(part, weight=None), algebra)
            else:
                body = algebra.average(body, [part.axis])
        if count is None or not cells:
            return body
        return algebra.over(body, count)

    def all_combined(self, ranged: Ranged, body: Val, count: Val | None, algebra: Numbers) -> Val:
        """The same in a full pass."""
        axes, parts = set(ranged.axes), combined(ranged)
        if nested := any(
            p.segment is not None and not axes.intersection(p.segment.parents) for p in ranged.parts
        ):
            parts = [p for p in ranged.parts if p.axis is not None]  # flat rows of flat rows, cell by cell
        for weight in [p.weight for p in parts if p.weight is not None]:
            body = algebra.times(weight, body)
        for part in reversed(parts):
            assert part.axis is not None
            if part.axis.kind == "chunk":
                others = [a for a in body.axes if a is not part.axis and a in ranged.axes]
                body = gathered(self.state.graph, algebra.total(body, others), part.axis)
                part = replace(part, axis=body.attrs["onto"])
            assert part.axis is not None
            if part.segment is not None and nested:
                body = self.over_part(True, body, replace(part, weight=None), algebra)
            else:
                body = algebra.total(body, [part.axis])
        for share in self.slots.shares(part.binder for part in parts):
            body = algebra.over(body, share)
        if count is None:
            return body
        return algebra.over(body, count)

    # ------------------------------------------------------------------------- all elements at once
    def complete(self, node: ir.Reduce, body: Val, ranged: Ranged, env: Env) -> Val:
        """What is neither a sum nor a mean, over complete axes."""
        g, lowered = self.state.graph, reductions.of(node).lowered
        size = math.prod(a.size for a in ranged.axes)
        if not self.state.full and size > TOGETHER:
            self.state.refuse(errors.all_in_every_step(node.kind, size, node.span))
        weights = [p.weight for p in ranged.parts if p.weight is not None]
        if lowered is not None and self.state.full and (plain_axes(ranged) is None or ranged.related):
            return lowered(
                g,
                lambda e: self.averaged(node, False, ranged, e, env, Numbers(g)),
                lambda mean: self.at(mean, ranged),
                body,
            )
        if lowered is not None:
            return lowered(g, lambda e: self.mean_of(e, ranged.axes, weights), lambda mean: mean, body)
        for part in ranged.parts:
            if part.axis is not None and part.axis.kind == "chunk":
                body = gathered(g, body, part.axis)
                weights = [
                    gathered(g, weight, part.axis) if part.axis in weight.axes else weight
                    for weight in weights
                ]
        axes = tuple(g.whole(a) if a.kind == "chunk" else a for a in ranged.axes)
        options = [self.lower(v, env, False) for v in node.options.values() if not isinstance(v, ir.Label)]
        mask = product(g, weights)
        if mask is None:
            masks = []
        else:
            masks = [mask]
        whole = {*body.axes, *axes, *(a for m in masks for a in m.axes)}
        if len(whole) > len(body.axes):
            body = g.make(spread, [body], axes=in_order(whole))
        return g.make(reduce, [body, *options, *masks], kind=node.kind, over=axes, masked=bool(masks))

    def at(self, mean: Val, ranged: Ranged) -> Val:
        """A mean over the elements of a reduction, for each of them: where they lie flat along an
        axis, that of their cell."""
        g = self.state.graph
        for part in ranged.parts:
            if part.segment is not None and part.axis is not None and part.segment.parents[0] in mean.axes:
                rows = g.make(chunk_of if part.axis.kind == "chunk" else arange, axis=part.axis)
                cell = self.state.take(part.segment.cells, rows, ())
                mean = g.make(pick, [mean, cell], over=part.segment.parents, fixed=(None,))
        return mean

    def mean_of(self, body: Val, axes: tuple[Axis, ...], weights: list[Val]) -> Val:
        """A mean over axes, of the elements that masks let through."""
        g, mask = self.state.graph, product(self.state.graph, weights)
        if mask is None:
            return g.average(body, axes)
        return g.apply("div", g.total(g.apply("mul", mask, body), axes), g.total(mask, axes))

    def coupled(self, node: ir.Reduce, env: Env) -> Val:
        """The worst of a family, a maximum or a tail mean, as the risks of the sampled members
        weighted by their q."""
        ranged = self.ranged(node, env, Way(body=node.body))
        slot, g, centres = ranged.env[node.binders[0]], self.state.graph, self.state.centres
        if (
            len(node.binders) > 1
            or env
            or ranged.parts[0].weight is not None
            or slot.members is None
            or slot.pos is None
        ):
            self.state.refuse(errors.not_one_family(node.kind, node.span))
        n = g.const(len(slot.members))
        (size,) = [self.lower(v, env, False) for v in node.options.values()] or [g.const(1.0)]
        option = reductions.of(node).option
        if option is None or option.counts:
            alpha = g.apply("div", size, n)
        else:
            alpha = size
        name = f"q{len(centres) + 1}"
        centres[name] = (slot.n,)
        body = self.lower(node.body, ranged.env, True)
        (part,) = selections.split(node.binders, node.condition)
        if slot.pos.static:
            everyone = slot.pos
        else:
            everyone = self.slots.all(part).ids
        share = len(slot.members) / slot.pos.axes[0].size
        return g.make(couple, [body, slot.pos, everyone, alpha], name=name, share=share)


def pays_in_slices(pairs: float, length: int) -> bool:
    """Whether a full pass over so many pairs goes through an outer axis of this length in slices.

    If one element of the axis has too many pairs itself, the reductions inside go in slices instead.
    """
    return DENSE < pairs <= DENSE * length


def keys_alone(node: ir.Reduce, binder: ir.Binder) -> list[ir.Expr] | None:
    """The expressions of an outer element that a reduction's rows have equal keys to; None where it
    depends on this element in another way."""
    parts = selections.split(node.binders, node.condition)
    elsewhere: list[ir.Expr] = [node.body, *node.options.values()]
    for part in parts:
        elsewhere += [*part.static, *part.masks, *(order.around for order in part.orders)]
        elsewhere += [ir.Element(binder=other) for other in part.excludes]
        elsewhere += [*getattr(part.binder.domain, "args", ())]
    if any(binder in ir.free_binders(expr) for expr in elsewhere if not isinstance(expr, ir.Label)):
        return None
    return [outer for part in parts for _, outer in part.keys if binder in ir.free_binders(outer)]


def plain_axes(ranged: Ranged) -> tuple[Axis, ...] | None:
    """The axes of a reduction's elements; None where some of them go through in slices, or lie flat."""
    sliced = any(
        part.axis is None or part.axis.kind == "chunk" or part.segment is not None for part in ranged.parts
    )
    if sliced:
        return None
    return ranged.axes


def combined(ranged: Ranged) -> list[Part]:
    """The binders along axes of their own; the others lie flat along one of them."""
    axes = set(ranged.axes)
    flat = {a for p in ranged.parts if p.segment is not None for a in p.segment.parents if a in axes}
    return [p for p in ranged.parts if p.axis is not None and p.axis not in flat]


def oracle(node: ir.Reduce) -> bool:
    """An expectation of rows or draws with none inside: its samples are what an oracle is asked for."""
    stochastic = any(isinstance(b.domain, ir.RowSet | ir.Distribution) for b in node.binders)
    return stochastic and not any(isinstance(n, ir.Reduce) for n in ir.walk(node.body))
