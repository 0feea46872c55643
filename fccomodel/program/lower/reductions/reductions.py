"""Lowers reductions: means and sums over samples or over all elements, and others over all elements."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from fccomodel.core import ir
from fccomodel.evaluation.sets import realising, selections
from fccomodel.library import reductions
from fccomodel.library.reductions.expectation import E
from fccomodel.normal_form.reformulations.largest_of_many import TOGETHER
from fccomodel.program import errors
from fccomodel.program.lower.binders.binders import Binders
from fccomodel.program.lower.leaves.cells import Cells, keyed
from fccomodel.program.lower.leaves.slots import Slots
from fccomodel.program.lower.records import Ranged, ReducedBinder, Way
from fccomodel.program.lower.reductions.algebra import Logarithms, Numbers, gathered, product
from fccomodel.program.lower.reductions.estimates import Estimates
from fccomodel.program.lower.reductions.separated import Separated
from fccomodel.program.lower.reductions.sizes import PairCounts
from fccomodel.program.lower.state import Env, Linear, Lower, State
from fccomodel.program.operations import Axis, Val, in_order
from fccomodel.program.operations.entrywise import number, spread
from fccomodel.program.operations.estimates import couple
from fccomodel.program.operations.indexing import pick
from fccomodel.program.operations.reductions import reduce, reduce_by_cell
from fccomodel.program.operations.sources import arange
from fccomodel.program.operations.sources import chunk as chunk_of

#: Largest number of pairs of a full pass that is not computed in slices of its outer binder.
DENSE = 1 << 21
#: Smallest mean number of outer elements per key for which a reduction is computed once per key.
SHARED_BY = 2


class Reductions:
    """Lowers reductions by the properties of their kinds."""

    def __init__(
        self,
        state: State,
        slots: Slots,
        cells: Cells,
        binders: Binders,
        separated: Separated,
        sizes: PairCounts,
        estimates: Estimates,
        lower: Lower,
    ):
        self.state, self.slots, self.cells, self.binders = state, slots, cells, binders
        self.separated, self.sizes, self.estimates, self.lower = separated, sizes, estimates, lower
        self.spelled: dict[ir.Reduce, ir.Expr] = {}

    def value(self, node: ir.Reduce, env: Env, linear: Linear) -> Val:
        """A reduction. In a step, under a nonlinear function, it is the estimate u of the reduction."""
        state = self.state
        if state.stable and linear is not True:
            log = state.logarithms.logged(node)
            if log is not None and not reductions.of(node).logarithmic:
                return state.graph.apply("exp", self.lower(log, env, False))
        form = self.separated.form(node)
        if form is not None:
            return self.lower(form, env, linear)
        value = self.separated.by_runs(node, env)
        if value is None:
            value = self.by_keys(node, env, linear)
        if value is not None:
            return value
        if not state.full:
            return self.reduced(node, env, linear, False)
        around = [env[binder] for binder in state.free(node) if binder in env]
        in_a_slice = any(axis.kind == "chunk" for slot in around for axis in slot.ids.axes)
        pairs = self.sizes.pairs(node, self.around(node, env), node.binders[0])
        chunk = not in_a_slice and pairs > DENSE
        if chunk and not state.thinning.nests:
            with state.thinning.over(pairs):
                return self.reduced(node, env, linear, chunk)
        return self.reduced(node, env, linear, chunk)

    def around(self, node: ir.Reduce, env: Env) -> dict[ir.Binder, int]:
        """The lengths of the axes of outer binders, by which values of a complete reduction are laid out."""
        if reductions.of(node).program is None:
            return {}
        outer = [binder for binder in self.state.free(node) if binder in env]
        return {binder: math.prod(axis.size for axis in env[binder].ids.axes) for binder in outer}

    def by_keys(self, node: ir.Reduce, env: Env, linear: Linear) -> Val | None:
        """A reduction computed once for each distinct key of an outer element, in a full pass.

        The rows are those with the keys of the outer element, on which the reduction depends in no other
        way. None for other reductions, and if few outer elements share a key.
        """
        state = self.state
        outer = [binder for binder in state.free(node) if binder in env]
        if not state.full or len(outer) != 1 or not selections.listed(outer[0]):
            return None
        binder = outer[0]
        slot = env[binder]
        if slot.members is None:
            return None
        keys = keys_alone(node, binder)
        if keys is None:
            return None
        codes = realising.key_codes(state.bound, binder, keys, slot.members)
        _, first, key_of_member = np.unique(codes, return_index=True, return_inverse=True)
        if SHARED_BY * len(first) > len(slot.members):
            return None
        rows = state.ship(state.unique(f"{binder.name}_keys"), slot.members[first])
        one_of_each_key = self.slots.listed(selections.Selection(binder=binder), rows)
        value = self.lower(node, {binder: one_of_each_key}, linear)
        axes = [axis for axis in value.axes if axis.name.startswith(binder.name) and axis.size == len(first)]
        if not value.axes:
            return value
        if len(axes) != 1:
            return None
        place = np.zeros(state.total(binder), dtype=np.int64)
        place[slot.members] = key_of_member.reshape(-1)
        at = state.cells(state.unique(f"{binder.name}_key"), place, [slot.ids])
        return state.graph.make(pick, [value, at], over=tuple(axes), fixed=(None,))

    def reduced(self, node: ir.Reduce, env: Env, linear: Linear, chunk: bool) -> Val:
        """A reduction over the elements of its binders.

        chunk   whether the elements of the first binder are taken in slices
        """
        kind, g = reductions.of(node), self.state.graph
        if self.state.coupled and not self.state.full and kind.coupling:
            return self.coupled(node, env)
        if not (kind.linear or kind.logarithmic):
            if kind.lowered is None and kind.program is None:
                return self.lower(self.by_means(node), env, linear)
            way = Way(
                body=node.body,
                inner=self.state.full and kind.sampled,
                chunk=chunk,
                whole=True,
                dense=kind.lowered is None or not self.state.full,
                total=kind.total,
                runs=True,
            )
            by_cell = self.by_cell(node, env, way)
            if by_cell is not None:
                return by_cell
            ranged = self.ranged(node, env, way)
            return self.complete(node, self.lower(node.body, ranged.env, False), ranged, env)
        way = Way(body=node.body, inner=True, chunk=chunk, total=kind.total, runs=True)
        ranged = self.ranged(node, env, way)
        body_is_linear: Linear = "log" if kind.logarithmic else True
        body = self.lower(node.body, ranged.env, body_is_linear)
        if kind.condition:
            body = g.make(number, [body])
        elements = {*body.axes, *ranged.axes}
        algebra = Logarithms(g, self.state.full) if kind.logarithmic else Numbers(g)
        body = self.averaged(node, kind.total, ranged, body, env, algebra)
        if self.state.full:
            return body
        if asks_oracle(node):
            self.state.sampled.setdefault(body.id, math.prod(axis.size for axis in elements))
        sampled = any(axis.kind == "sample" for axis in ranged.axes)
        if linear == body_is_linear or self.state.again or not sampled or not body.varying:
            return body
        return self.estimates.tracked(node, body, env, kind.logarithmic)

    def ranged(self, node: ir.Reduce, env: Env, way: Way) -> Ranged:
        """The slots of a reduction's binders."""
        return self.binders.ranged(node.binders, node.condition, env, way)

    def by_means(self, node: ir.Reduce) -> ir.Expr:
        """A reduction of a kind without operations of its own, as a function of means."""
        if node not in self.spelled:
            form = reductions.of(node).by_means
            assert form is not None, f"no program can compute {node.kind}"
            self.spelled[node] = form.of(node, lambda body: E.over(node, body))
        return self.spelled[node]

    # ------------------------------------------------------------------------------- means and sums
    def averaged(
        self, node: ir.Reduce, total: bool, ranged: Ranged, body: Val, env: Env, algebra: Numbers
    ) -> Val:
        """The mean (``total``: the sum) over all binders, from the last binder to the first."""
        if ranged.related:
            count = None
            if not total:
                count = self.cells.combinations(node, env)
            if self.state.full:
                return self.all_combined(ranged, body, count, algebra)
            return self.some_combined(ranged, body, count, algebra)
        for part in reversed(ranged.parts):
            if part.axis is not None and part.axis.kind == "chunk":
                if part.weight is None and part.segment is None:
                    mean = algebra.swept(body, part.axis)
                    if mean is not None:
                        body = algebra.times(part.count, mean) if total else mean
                        continue
                body = gathered(self.state.graph, body, part.axis)
                part = replace(part, axis=body.attrs["onto"])
            body = self.over_part(total, body, part, algebra)
        return body

    def over_part(self, total: bool, body: Val, part: ReducedBinder, algebra: Numbers) -> Val:
        """The mean (``total``: the sum) over one binder."""
        axis = part.axis
        if axis is None:
            return body
        if part.segment is not None:
            if part.weight is not None:
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
        """The mean over all combinations of sampled elements, if one binder's range depends on another.

        count   the number of combinations; None for the sum

        Every combination has the same weight.
        """
        of_outer_cells = parts_of_outer_cells(ranged)
        if of_outer_cells:
            parts = [part for part in ranged.parts if part.axis is not None]
        else:
            parts = with_own_axis(ranged)
        for part in parts:
            if part.weight is not None:
                body = algebra.times(part.weight, body)
        for part in parts:
            body = algebra.times(part.count, body)
        if count is not None and not of_outer_cells:
            body = algebra.over(body, count)
        for part in reversed(parts):
            assert part.axis is not None
            if part in of_outer_cells:  # every outer cell takes its own rows
                body = self.over_part(True, body, replace(part, weight=None), algebra)
            else:
                body = algebra.average(body, [part.axis])
        if count is not None and of_outer_cells:
            return algebra.over(body, count)
        return body

    def all_combined(self, ranged: Ranged, body: Val, count: Val | None, algebra: Numbers) -> Val:
        """The mean over all combinations of elements, if one binder's range depends on another.

        count   the number of combinations; None for the sum
        """
        nested = bool(parts_of_outer_cells(ranged))
        if nested:  # flat rows of flat rows, cell by cell
            parts = [part for part in ranged.parts if part.axis is not None]
        else:
            parts = with_own_axis(ranged)
        for part in parts:
            if part.weight is not None:
                body = algebra.times(part.weight, body)
        for part in reversed(parts):
            assert part.axis is not None
            if part.axis.kind == "chunk":
                others = [axis for axis in body.axes if axis is not part.axis and axis in ranged.axes]
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
        """A reduction that is neither a sum nor a mean, over all elements."""
        g, lowered = self.state.graph, reductions.of(node).lowered
        size = math.prod(axis.size for axis in ranged.axes)
        if not self.state.full and size > TOGETHER:
            self.state.refuse(errors.all_in_every_step(node.kind, size, node.span))
        weights = [part.weight for part in ranged.parts if part.weight is not None]
        if lowered is not None and self.state.full and (not has_plain_axes(ranged) or ranged.related):
            return lowered(
                g,
                lambda value: self.averaged(node, False, ranged, value, env, Numbers(g)),
                lambda mean: self.at(mean, ranged),
                body,
            )
        if lowered is not None:
            return lowered(
                g, lambda value: self.mean_of(value, ranged.axes, weights), lambda mean: mean, body
            )
        for part in ranged.parts:
            if part.axis is not None and part.axis.kind == "chunk":
                body = gathered(g, body, part.axis)
                for k, weight in enumerate(weights):
                    if part.axis in weight.axes:
                        weights[k] = gathered(g, weight, part.axis)
        axes = tuple(g.whole(axis) if axis.kind == "chunk" else axis for axis in ranged.axes)
        options = [self.lower(v, env, False) for v in node.options.values() if not isinstance(v, ir.Label)]
        mask = product(g, weights)
        masks = [] if mask is None else [mask]
        all_axes = {*body.axes, *axes, *(axis for value in (*masks, *options) for axis in value.axes)}
        if len(all_axes) > len(body.axes):
            body = g.make(spread, [body], axes=in_order(all_axes))
        return g.make(reduce, [body, *options, *masks], kind=node.kind, over=axes, masked=bool(masks))

    def by_cell(self, node: ir.Reduce, env: Env, way: Way) -> Val | None:
        """A reduction in a full pass whose rows lie flat, cell after cell.

        None unless keys of outer elements alone decide the rows of every binder, and a product of axes
        would be too large or would not go in slices.
        """
        state, kind = self.state, reductions.of(node)
        sels = selections.split(node.binders, node.condition)
        outer = {binder for binder in state.free(node) if binder in env}
        if not state.full or kind.program is None or node.shape or not all(map(keyed, sels)):
            return None
        if any(set(sel.parents) != outer for sel in sels):
            return None
        in_slices = way.chunk and len(sels) == 1
        if not in_slices and not self.sizes.spread_out(sels):
            return None
        way = replace(way, chunk=in_slices, dense=False, runs=False)
        if self.binders.passes.segments.cells_of(sels[0], env, way) is None:
            return None
        ranged = self.ranged(node, env, way)
        return self.of_cells(node, self.lower(node.body, ranged.env, False), ranged, env)

    def of_cells(self, node: ir.Reduce, body: Val, ranged: Ranged, env: Env) -> Val:
        """A reduction of rows that all lie flat."""
        g, state = self.state.graph, self.state
        outermost, innermost = ranged.parts[0], ranged.parts[-1]
        assert outermost.segment is not None and innermost.axis is not None
        cells = np.arange(innermost.axis.size)
        for part in reversed(ranged.parts):
            assert part.segment is not None
            cells = np.asarray(state.data[part.segment.cells])[cells]
        count = math.prod(axis.size for axis in outermost.segment.parents)
        size = np.bincount(cells, minlength=count)
        stem = state.unique(f"{innermost.binder.name}_cells")
        axis = innermost.axis
        if axis.kind == "chunk":
            body = gathered(g, body, axis)
            axis = body.attrs["onto"]
        if body.axes != (axis,):
            body = g.make(spread, [body], axes=(axis,))
        options = [self.lower(v, env, False) for v in node.options.values() if not isinstance(v, ir.Label)]
        return g.make(
            reduce_by_cell,
            [body, *options],
            kind=node.kind,
            axis=axis,
            first=state.ship(f"{stem}_first", np.cumsum(size) - size),
            size=state.ship(f"{stem}_size", size),
            parents=outermost.segment.parents,
        )

    def at(self, mean: Val, ranged: Ranged) -> Val:
        """A mean over a reduction's elements, at each of these elements.

        Elements laid out flat take the mean of their cell.
        """
        g = self.state.graph
        for part in ranged.parts:
            if part.segment is not None and part.axis is not None and part.segment.parents[0] in mean.axes:
                rows = g.make(chunk_of if part.axis.kind == "chunk" else arange, axis=part.axis)
                cell = self.state.take(part.segment.cells, rows, ())
                mean = g.make(pick, [mean, cell], over=part.segment.parents, fixed=(None,))
        return mean

    def mean_of(self, body: Val, axes: tuple[Axis, ...], weights: list[Val]) -> Val:
        """The mean over axes, of the elements that masks accept."""
        g = self.state.graph
        mask = product(g, weights)
        if mask is None:
            return g.average(body, axes)
        return g.apply("div", g.total(g.apply("mul", mask, body), axes), g.total(mask, axes))

    def coupled(self, node: ir.Reduce, env: Env) -> Val:
        """The worst of a family (a maximum or a tail mean) as the risks of sampled members, weighted by q."""
        ranged = self.ranged(node, env, Way(body=node.body))
        slot, g, centres = ranged.env[node.binders[0]], self.state.graph, self.state.centres
        one_family = len(node.binders) == 1 and not env and ranged.parts[0].weight is None
        if not one_family or slot.members is None or slot.pos is None:
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
        (selection,) = selections.split(node.binders, node.condition)
        if slot.pos.static:
            all_members = slot.pos
        else:
            all_members = self.slots.all(selection).ids
        share = len(slot.members) / slot.pos.axes[0].size
        return g.make(couple, [body, slot.pos, all_members, alpha], name=name, share=share)


def pays_in_slices(pairs: float, length: int) -> bool:
    """Whether a full pass over this many pairs should take slices of an outer axis of this length."""
    return DENSE < pairs <= DENSE * length


def keys_alone(node: ir.Reduce, binder: ir.Binder) -> list[ir.Expr] | None:
    """The keys of an outer element by which a reduction's rows are chosen.

    None if the reduction depends on the element in any other way.
    """
    parts = selections.split(node.binders, node.condition)
    others: list[ir.Expr] = [node.body, *node.options.values()]
    for part in parts:
        others += [*part.static, *part.masks, *(order.around for order in part.orders)]
        others += [ir.Element(binder=excluded) for excluded in part.excludes]
        others += [*getattr(part.binder.domain, "args", ())]
    for expr in others:
        if not isinstance(expr, ir.Label) and binder in ir.free_binders(expr):
            return None
    return [outer for part in parts for _, outer in part.keys if binder in ir.free_binders(outer)]


def has_plain_axes(ranged: Ranged) -> bool:
    """Whether every binder has an axis of its own, neither in slices nor with rows laid out flat."""
    for part in ranged.parts:
        if part.axis is None or part.axis.kind == "chunk" or part.segment is not None:
            return False
    return True


def parts_of_outer_cells(ranged: Ranged) -> list[ReducedBinder]:
    """The binders whose rows are laid out flat by cells of outer binders alone."""
    axes = set(ranged.axes)
    return [
        part
        for part in ranged.parts
        if part.segment is not None and not axes.intersection(part.segment.parents)
    ]


def with_own_axis(ranged: Ranged) -> list[ReducedBinder]:
    """The binders along axes of their own, without those along whose axes flat rows have cells."""
    axes = set(ranged.axes)
    cell_axes: set[Axis] = set()
    for part in ranged.parts:
        if part.segment is not None:
            cell_axes |= axes.intersection(part.segment.parents)
    return [part for part in ranged.parts if part.axis is not None and part.axis not in cell_axes]


def asks_oracle(node: ir.Reduce) -> bool:
    """Whether an expectation over rows or draws has none inside, so that its samples are oracle calls."""
    stochastic = any(isinstance(b.domain, ir.RowSet | ir.Distribution) for b in node.binders)
    return stochastic and not any(isinstance(n, ir.Reduce) for n in ir.walk(node.body))
