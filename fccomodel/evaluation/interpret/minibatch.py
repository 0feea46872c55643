"""Values with large reductions estimated from random elements, at a cost independent of the data's size."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from fccomodel.core import ir
from fccomodel.data.bound import Bound
from fccomodel.evaluation.interpret.evaluator import Evaluator
from fccomodel.evaluation.interpret.reductions import collapse
from fccomodel.evaluation.interpret.spaces import Product, lengths_of
from fccomodel.evaluation.sets import draws, realising, selections
from fccomodel.evaluation.sets.axes import Env, Named, new_axis, spread, union
from fccomodel.evaluation.sets.elements import ids
from fccomodel.library import reductions
from fccomodel.library.reductions.mean import MEAN

TRIES = 32  # redraws of an element that fails a condition; after that the last draw is used


class Minibatch(Evaluator):
    """An evaluator whose reductions over more than ``batch`` elements use ``batch`` random ones.

    The seed alone decides which elements are drawn, whatever the point. The value of a mean over no
    elements is NaN.
    """

    def __init__(self, bound: Bound, point: Mapping[str, torch.Tensor], *, batch: int, seed: int = 0):
        super().__init__(bound, point, seed=seed)
        self.batch = batch

    def reduce(self, node: ir.Reduce, env: Env) -> Named:
        """The value of a reduction, from random elements if it has many."""
        kind = reductions.of(node)
        if not kind.sampled or not self._many(node):
            return super().reduce(node, env)
        inner, axis, count = self.drawn(node, env)
        value = self.value(node.body, inner)
        lengths = lengths_of([value, count]) | self.axes_of_elements(node, env)
        axes_left = tuple(sorted(lengths.keys() - {axis}))
        lengths[axis] = self.batch
        space = Product(over=(axis,), kept=axes_left, lengths=lengths)
        if kind.total:
            kind = MEAN
        mean = collapse(kind, space, value, self.options(node, space, env))
        return self.scaled(node, mean, count)

    def scaled(self, node: ir.Reduce, value: Named, count: Named) -> Named:
        """The value of a reduction over ``count`` elements, estimated by its value over the drawn ones.

        For a sum, ``value`` is the mean over the drawn elements. A mean over no elements is NaN.
        """
        axes = union([value, count])
        data = spread(value, axes)
        number = spread(count, axes, len(value.event))
        if reductions.of(node).total:
            return Named(data * number, axes)
        undefined = data.new_tensor(math.nan)
        return Named(data.where(number > 0, undefined), axes)

    def drawn(self, node: ir.Reduce, env: Env) -> tuple[dict[ir.Binder, Named], int, Named]:
        """An environment with drawn elements of the binders, their axis, and the number of all elements."""
        inner = dict(env)
        axis = new_axis()
        counts = [Named(torch.ones((), dtype=torch.float64))]
        for part in self.parts(node):
            inner = dict(inner)  # values are remembered by their environment, which must not change
            seed = draws.stream(self.bound, part.binder, self.seed)
            rng = torch.Generator().manual_seed(seed)
            inner[part.binder], count = self._elements(part, inner, axis, rng)
            counts.append(count)
            if part.masks:
                self._redraw(part, inner, axis, rng)
        axes = union(counts)
        product: Any = math.prod(spread(count, axes) for count in counts)  # type: ignore[arg-type]
        return inner, axis, Named(product, axes)

    def _redraw(
        self,
        part: selections.Selection,
        inner: dict[ir.Binder, Named],
        axis: int,
        rng: torch.Generator,
    ) -> None:
        """Draw elements that fail their condition again, at most ``TRIES`` times."""
        for _ in range(TRIES):
            passed = self._passed(part, dict(inner))
            if bool(passed.data.all()):
                return
            before = inner[part.binder]
            again, _ = self._elements(part, inner, axis, rng)
            axes = union([passed, again, before])
            keep = spread(passed, axes)
            event_dims = [1] * len(again.event)
            keep = keep.reshape((*keep.shape, *event_dims))
            data = torch.where(keep, spread(before, axes), spread(again, axes))
            inner[part.binder] = Named(data, axes)

    def _elements(
        self, part: selections.Selection, env: Env, axis: int, rng: torch.Generator
    ) -> tuple[Named, Named]:
        """One draw per position of ``axis``, and the number of elements (1 for a distribution)."""
        domain = part.binder.domain
        if isinstance(domain, ir.Distribution):
            args = [self.value(arg, env) for arg in domain.args]
            seed = int(torch.randint(1 << 31, (), generator=rng))
            sample = draws.sample(self.bound, part.binder, args, self.batch, seed)
            one = Named(torch.ones((), dtype=torch.float64))
            return Named(sample.data, (*sample.axes[:-1], axis)), one
        index = realising.index(self.bound, part)
        start, size, skip = index.locate(env)
        located = [start, size]
        room = size
        if skip is not None:
            located.append(skip)
            room = _less_one(size, skip)
        axes = tuple(sorted({*union(located), axis}))
        lengths = {**lengths_of(located), axis: self.batch}
        shape = tuple(lengths[a] for a in axes)
        uniform = torch.rand(shape, generator=rng, dtype=torch.float64)
        number = spread(room, axes)
        last = (number - 1).clamp(min=0)
        offset = (uniform * number).long().clamp(min=0).minimum(last)
        if skip is not None:
            left_out = spread(skip, axes)
            after = (left_out >= 0) & (offset >= left_out)
            offset = offset + after.long()
        rows = torch.from_numpy(index.rows)
        if not len(rows):
            zero = Named(torch.zeros((), dtype=torch.float64))
            return Named(torch.zeros_like(offset), axes), zero
        place = (spread(start, axes) + offset).clamp(max=len(rows) - 1)
        has_row = Named(room.data.to(torch.float64), room.axes)
        return Named(rows[place], axes), has_row

    def _passed(self, part: selections.Selection, env: Env) -> Named:
        """Whether each drawn element satisfies the conditions that are tested one by one."""
        passed = [self.value(mask, env) for mask in part.masks]
        axes = union(passed)
        tests = torch.broadcast_tensors(*(spread(v, axes).bool() for v in passed))
        return Named(torch.stack(tests).all(0), axes)

    def _many(self, node: ir.Reduce) -> bool:
        """Whether a reduction has more elements than are drawn, and can be drawn from.

        Sets of vectors, and distributions that depend on another draw, cannot be drawn from.
        """
        total = 1.0
        for binder in node.binders:
            domain = binder.domain
            if isinstance(domain, ir.VectorSet):
                return False
            if isinstance(domain, ir.Distribution):
                outer = {other for arg in domain.args for other in ir.free_binders(arg)}
                if not outer.isdisjoint(node.binders):
                    return False
                total = math.inf
            else:
                total *= len(ids(self.bound, domain))
        return total > self.batch


def _less_one(size: Named, skip: Named) -> Named:
    """The size of runs without the skipped element."""
    axes = union([size, skip])
    skips = spread(skip, axes) >= 0
    return Named(spread(size, axes) - skips.long(), axes)
