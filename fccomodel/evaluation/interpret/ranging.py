"""Where a reduction goes: its binders' elements under its condition, as a product of axes or as a list
of combinations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from fccomodel.core import ir, memory
from fccomodel.core.diagnostics import refuse
from fccomodel.data import draw_counts, net_costs
from fccomodel.evaluation import errors
from fccomodel.evaluation.interpret.spaces import Listing, Product, Runs, lengths_of
from fccomodel.evaluation.sets import draws, elements, selections
from fccomodel.evaluation.sets.axes import Env, Named, new_axis

if TYPE_CHECKING:
    from fccomodel.evaluation.interpret.evaluator import Evaluator

#: Combinations that conditions on several binders may list before the last one.
MOST_LISTED = 1 << 26
#: Bytes that each of these takes: its positions along three axes, the run of the next binder, and
#: what both are made of.
LISTED_BYTES = 64


def space(
    evaluator: Evaluator, node: ir.Reduce, env: Env
) -> tuple[Product | Listing, dict[ir.Binder, Named]]:
    """Where a reduction goes, and what every binder stands for there."""
    parts = evaluator.parts(node)
    needed = {parent for part in parts for parent in part.parents}
    listed = [part for part in parts if part.parents or part.masks or part.binder in needed]
    inner, over = dict(env), dict[int, int]()
    for part in sorted(
        (p for p in parts if p not in listed), key=lambda p: isinstance(p.binder.domain, ir.Distribution)
    ):
        value = all_of(evaluator, part, node, inner, over)
        over |= {axis: value.length(axis) for axis in value.axes if axis not in lengths_of(env.values())}
        inner[part.binder] = value
    if listed:
        return listing(evaluator, node, listed, env, inner, over)
    kept = {axis: n for axis, n in evaluator.axes(node.body, inner).items() if axis not in over}
    return Product(over=tuple(sorted(over)), kept=tuple(sorted(kept)), lengths=kept | over), inner


def all_of(
    evaluator: Evaluator, part: selections.Selection, node: ir.Reduce, inner: Env, over: Mapping[int, int]
) -> Named:
    """A binder at all of its elements (its static condition applied), along a new axis; or at fixed draws."""
    binder, domain = part.binder, part.binder.domain
    if not isinstance(domain, ir.Distribution):
        key = (
            "all",
            id(node),
            id(binder),
        )  # the same each time: what depends on these elements alone is computed once
        if key not in evaluator.memo:
            rows = selections.index(evaluator.bound, part).rows
            evaluator.memo[key] = Named(evaluator.whole(domain, rows), (new_axis(),))
        return evaluator.memo[key]
    args = [evaluator.value(arg, inner) for arg in domain.args]
    event = math.prod(elements.shape(evaluator.bound, domain.shape))
    weight = net_costs.numbers_of_a_draw(evaluator.bound, binder, node.body, event)
    around = evaluator.axes(node.body, {b: value for b, value in inner.items() if b is not binder})
    number = draw_counts.count(evaluator.draws, math.prod(around.values()) * weight, math.prod(over.values()))
    evaluator.sampled[binder] = max(evaluator.sampled.get(binder, 0), number * math.prod(over.values()))
    return draws.sample(evaluator.bound, binder, args, number, evaluator.seed, tuple(over.items()))


def listing(
    evaluator: Evaluator,
    node: ir.Reduce,
    parts: Sequence[selections.Selection],
    env: Env,
    inner: dict[ir.Binder, Named],
    over: Mapping[int, int],
) -> tuple[Listing, dict[ir.Binder, Named]]:
    """The combinations that satisfy a condition: for each cell of the outer binders, the runs of each
    binder in turn."""
    outer = lengths_of(env.values())
    cells = tuple(sorted({axis for part in parts for b in part.parents if b in env for axis in env[b].axes}))
    if cells:
        places = np.indices([outer[axis] for axis in cells]).reshape(len(cells), -1)
    else:
        places = np.zeros((0, 1), dtype=np.int64)
    prefix = dict(zip(cells, places, strict=True))
    lengths = dict(outer) | dict(over)
    for number, part in enumerate(parts):
        runs, value = runs_of(evaluator, part, node, inner, prefix, lengths)
        inner[part.binder], last_axis = value, value.axes[-1]
        lengths[last_axis] = value.length(last_axis)
        kept = tuple(
            sorted(axis for axis in evaluator.axes(node.body, inner) if axis in outer and axis not in cells)
        )
        space = Listing(
            bound=evaluator.bound,
            env=inner,
            last=part.binder,
            cells=cells,
            over=tuple(sorted(over)),
            kept=kept,
            lengths=lengths,
            prefix=prefix,
            last_axis=last_axis,
            runs=runs,
            tests=part.masks,
        )
        if number < len(parts) - 1:
            needed = LISTED_BYTES * space.total_size
            left = LISTED_BYTES * MOST_LISTED if space.total_size > MOST_LISTED else memory.lacking(needed)
            if left is not None:
                error = errors.too_many_to_list(part.binder, space.total_size, needed, left, node.span)
                refuse(error, source=evaluator.bound.problem.source)
            prefix = {
                axis: index.numpy() for axis, index in replace(space, kept=(), over=()).whole().index.items()
            }
    return space, inner


def runs_of(
    evaluator: Evaluator,
    part: selections.Selection,
    node: ir.Reduce,
    inner: Env,
    prefix: Mapping[int, np.ndarray],
    lengths: Mapping[int, int],
) -> tuple[Runs, Named]:
    """One binder's run for each combination so far, and its elements along an own axis (only those
    that some run has)."""
    if prefix:
        total = len(next(iter(prefix.values())))
    else:
        total = 1
    if isinstance(part.binder.domain, ir.Distribution):
        value = all_of(evaluator, part, node, inner, {})
        n = value.length(value.axes[-1])
        return Runs(
            start=np.zeros(total, dtype=np.int64), size=np.full(total, n), skip=None, order=np.arange(n)
        ), value
    flat = new_axis()

    def along(value: Named) -> Named:
        """The value at the combinations of the prefix, along the flat axis."""
        index = tuple(torch.from_numpy(prefix[axis]) for axis in value.axes)
        if index:
            return Named(value.data[index], (flat,))
        return value

    index = selections.index(evaluator.bound, part)
    start, size, skip = index.locate({parent: along(inner[parent]) for parent in part.parents})
    first, count = (np.array(np.broadcast_to(array.data.numpy(), (total,))) for array in (start, size))
    rows, order = met(evaluator, part, index, first, count)
    if skip is None:
        left_out = None
    else:
        left_out = np.array(np.broadcast_to(skip.data.numpy(), (total,)))
    return Runs(start=first, size=count, skip=left_out, order=order), Named(
        evaluator.whole(part.binder.domain, rows), (new_axis(),)
    )


def met(
    evaluator: Evaluator,
    part: selections.Selection,
    index: selections.Index,
    first: np.ndarray,
    count: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The elements that some run has, in order, and where each of the index's stands among them, -1
    for others."""
    n, domain = len(index.rows), part.binder.domain
    filled = np.flatnonzero(count)
    filled = filled[np.argsort(first[filled], kind="stable")]
    reached = np.maximum.accumulate(np.append(0, first[filled] + count[filled]))
    if n == elements.extent(evaluator.bound, domain) == reached[-1] and (first[filled] <= reached[:-1]).all():
        return elements.ids(evaluator.bound, domain), index.rows
    change = np.zeros(n + 1, dtype=np.int64)
    np.add.at(change, first, count > 0)
    np.add.at(change, first + count, -(count > 0).astype(np.int64))
    used = np.cumsum(change[:-1]) > 0
    rows = np.sort(index.rows[used])
    order = np.full(n, -1, dtype=np.int64)
    order[used] = np.searchsorted(rows, index.rows[used])
    return rows, order
