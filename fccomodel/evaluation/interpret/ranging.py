"""The space of a reduction: its binders' elements that satisfy its condition.

It is a product of axes or a list of combinations (see ``spaces``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from fccomodel.core import ir, memory
from fccomodel.core.diagnostics import refuse
from fccomodel.data import draw_counts, net_costs
from fccomodel.evaluation import errors
from fccomodel.evaluation.interpret.spaces import Listing, Product, Runs, lengths_of
from fccomodel.evaluation.memory import remember
from fccomodel.evaluation.sets import draws, elements, realising, selections
from fccomodel.evaluation.sets.axes import Env, Named, new_axis

if TYPE_CHECKING:
    from fccomodel.evaluation.interpret.evaluator import Evaluator

#: Combinations that conditions on several binders may list before the last one.
MOST_LISTED = 1 << 26
#: Bytes that each of these combinations takes: its positions along three axes, the next binder's run,
#: and the arrays from which both are computed.
LISTED_BYTES = 64
#: Combinations up to which the runs of a list without outer elements are kept for further evaluations.
MOST_KEPT = 1 << 22


def space(
    evaluator: Evaluator, node: ir.Reduce, env: Env
) -> tuple[Product | Listing, dict[ir.Binder, Named]]:
    """The space of a reduction, and an environment with the elements of its binders.

    Binders whose condition depends on other binders are listed; the others are axes of their own, data
    before distributions.
    """
    parts = evaluator.parts(node)
    parents = {parent for part in parts for parent in part.parents}
    listed = [part for part in parts if part.parents or part.masks or part.binder in parents]
    free = [part for part in parts if part not in listed]
    free.sort(key=lambda part: isinstance(part.binder.domain, ir.Distribution))
    outer = lengths_of(env.values())
    inner = dict(env)
    over: dict[int, int] = {}
    for part in free:
        value = all_of(evaluator, part, node, inner, over)
        over |= {axis: value.length(axis) for axis in value.axes if axis not in outer}
        inner[part.binder] = value
    if listed:
        return listing(evaluator, node, listed, env, inner, over)
    lengths = evaluator.axes_of_elements(node, inner)
    staying = {axis: n for axis, n in lengths.items() if axis not in over}
    axes_over = tuple(sorted(over))
    axes_staying = tuple(sorted(staying))
    product = Product(over=axes_over, kept=axes_staying, lengths=staying | over)
    return product, inner


def all_of(
    evaluator: Evaluator, part: selections.Selection, node: ir.Reduce, inner: Env, over: Mapping[int, int]
) -> Named:
    """All elements of a binder that satisfy its static condition, along a new axis, or fixed draws."""
    binder, domain = part.binder, part.binder.domain
    if not isinstance(domain, ir.Distribution):
        # One value for all calls: then values of expressions in these elements are computed once.
        key = ("all", id(node), id(binder))
        if key not in evaluator.memo:
            rows = realising.index(evaluator.bound, part).rows
            evaluator.memo[key] = Named(evaluator.whole(domain, rows), (new_axis(),))
        return evaluator.memo[key]
    args = [evaluator.value(arg, inner) for arg in domain.args]
    event = math.prod(elements.shape(evaluator.bound, domain.shape))
    weight = net_costs.numbers_of_a_draw(evaluator.bound, binder, node.body, event)
    others = {b: value for b, value in inner.items() if b is not binder}
    around = evaluator.axes(node.body, others)
    beside = math.prod(over.values())
    numbers_of_each = math.prod(around.values()) * weight
    number = draw_counts.count(evaluator.draws, numbers_of_each, beside)
    sampled_before = evaluator.sampled.get(binder, 0)
    evaluator.sampled[binder] = max(sampled_before, number * beside)
    axes = tuple(over.items())
    return draws.sample(evaluator.bound, binder, args, number, evaluator.seed, axes)


def listing(
    evaluator: Evaluator,
    node: ir.Reduce,
    parts: Sequence[selections.Selection],
    env: Env,
    inner: dict[ir.Binder, Named],
    over: Mapping[int, int],
) -> tuple[Listing, dict[ir.Binder, Named]]:
    """The combinations that satisfy a condition, as runs of each binder in turn.

    They start from the cells, which are the combinations of the outer binders in the condition.
    """
    outer = lengths_of(env.values())
    outer_parents = {b for part in parts for b in part.parents if b in env}
    cells = tuple(sorted({axis for b in outer_parents for axis in env[b].axes}))
    if cells:
        cell_lengths = [outer[axis] for axis in cells]
        places = np.indices(cell_lengths).reshape(len(cells), -1)
    else:
        places = np.zeros((0, 1), dtype=np.int64)
    prefix = dict(zip(cells, places, strict=True))
    lengths = dict(outer) | dict(over)
    alone = not outer_parents and not any(isinstance(part.binder.domain, ir.Distribution) for part in parts)
    for number, part in enumerate(parts):
        make = partial(runs_of, evaluator, part, node, inner, prefix, lengths)
        runs, value = _kept(evaluator, alone, ("runs", node.binders, node.condition, number), prefix, make)
        inner[part.binder] = value
        last_axis = value.axes[-1]
        lengths[last_axis] = value.length(last_axis)
        body_axes = evaluator.axes_of_elements(node, inner)
        space = Listing(
            bound=evaluator.bound,
            env=inner,
            last=part.binder,
            cells=cells,
            over=tuple(sorted(over)),
            kept=tuple(sorted(axis for axis in body_axes if axis in outer and axis not in cells)),
            lengths=lengths,
            prefix=prefix,
            last_axis=last_axis,
            runs=runs,
            tests=part.masks,
            parents=tuple(sorted({axis for b in part.parents for axis in inner[b].axes})),
        )
        if number < len(parts) - 1:
            _demand_room_to_list(evaluator, node, space)
            prefix = _kept(
                evaluator,
                alone and space.total_size <= MOST_KEPT,
                ("prefix", node.binders, node.condition, number),
                prefix,
                partial(_combined, space),
            )
    return space, inner


def _combined(space: Listing) -> dict[int, np.ndarray]:
    """The positions along the merged axes for each combination of a list."""
    combinations = replace(space, kept=(), over=()).whole()
    return {axis: index.numpy() for axis, index in combinations.index.items()}


def _kept(
    evaluator: Evaluator, alone: bool, key: Any, prefix: Mapping[int, np.ndarray], make: Callable[[], Any]
) -> Any:
    """The result of ``make()``, remembered for the data if nothing around the reduction enters it
    (``alone``) and the combinations are few enough."""
    if not alone or any(len(places) > MOST_KEPT for places in prefix.values()):
        return make()
    return remember(evaluator.bound, key, make)


def _demand_room_to_list(evaluator: Evaluator, node: ir.Reduce, space: Listing) -> None:
    """Raise an error if the combinations so far are too many to list."""
    needed = LISTED_BYTES * space.total_size
    if space.total_size > MOST_LISTED:
        left: float | None = LISTED_BYTES * MOST_LISTED
    else:
        left = memory.lacking(needed)
    if left is not None:
        error = errors.too_many_to_list(space.last, space.total_size, needed, left, node.span)
        refuse(error, source=evaluator.bound.problem.source)


def runs_of(
    evaluator: Evaluator,
    part: selections.Selection,
    node: ir.Reduce,
    inner: Env,
    prefix: Mapping[int, np.ndarray],
    lengths: Mapping[int, int],
) -> tuple[Runs, Named]:
    """One binder's run for each combination of ``prefix``, and the elements in these runs on a new axis."""
    if prefix:
        total = len(next(iter(prefix.values())))
    else:
        total = 1
    if isinstance(part.binder.domain, ir.Distribution):
        value = all_of(evaluator, part, node, inner, {})
        n = value.length(value.axes[-1])
        start_at = np.zeros(total, dtype=np.int64)
        runs = Runs(start=start_at, size=np.full(total, n), skip=None, order=np.arange(n))
        return runs, value
    flat = new_axis()

    def along(value: Named) -> Named:
        """The value at the combinations of the prefix, along the flat axis."""
        index = tuple(torch.from_numpy(prefix[axis]) for axis in value.axes)
        if index:
            return Named(value.data[index], (flat,))
        return value

    def array(value: Named) -> np.ndarray:
        """The value for each combination."""
        return np.array(np.broadcast_to(value.data.numpy(), (total,)))

    index = realising.index(evaluator.bound, part)
    parents = {parent: along(inner[parent]) for parent in part.parents}
    start, size, skip = index.locate(parents)
    first, count = array(start), array(size)
    left_out = None
    if skip is not None:
        left_out = array(skip)
    rows, order = _elements_of_runs(evaluator, part, index, first, count)
    runs = Runs(start=first, size=count, skip=left_out, order=order)
    return runs, Named(evaluator.whole(part.binder.domain, rows), (new_axis(),))


def _elements_of_runs(
    evaluator: Evaluator,
    part: selections.Selection,
    index: realising.SortedIndex,
    first: np.ndarray,
    count: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The elements that are in some run, in order, and the position of each entry of the index among them.

    The position is -1 for entries that are in no run.
    """
    n, domain = len(index.rows), part.binder.domain
    filled = np.flatnonzero(count)
    filled = filled[np.argsort(first[filled], kind="stable")]
    reached = np.maximum.accumulate(np.append(0, first[filled] + count[filled]))
    without_gaps = bool((first[filled] <= reached[:-1]).all())
    if n == elements.extent(evaluator.bound, domain) == reached[-1] and without_gaps:
        return elements.ids(evaluator.bound, domain), index.rows
    change = np.zeros(n + 1, dtype=np.int64)
    np.add.at(change, first, count > 0)
    np.add.at(change, first + count, -(count > 0).astype(np.int64))
    used = np.cumsum(change[:-1]) > 0
    rows = np.sort(index.rows[used])
    order = np.full(n, -1, dtype=np.int64)
    order[used] = np.searchsorted(rows, index.rows[used])
    return rows, order
