"""Spaces, over whose elements a reduction goes, and blocks, which are pieces of a space.

A *space* is a product of axes, or a list of the combinations that satisfy a condition. It knows the
axes that are reduced, and it sums and broadcasts between the body's axes and the result's axes. A
*block* is a piece of a space that is small enough to hold all of its elements at once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import torch

from fccomodel.core import ir
from fccomodel.data.bound import Bound
from fccomodel.evaluation.sets.axes import Named, new_axis, spread
from fccomodel.evaluation.sets.realising import Conditions

Slices = Mapping[int, tuple[int, int]]


# --------------------------------------------------------------------------------- products of axes
@dataclass(frozen=True, eq=False, kw_only=True)
class Product:
    """Every combination of positions along some axes.

    over     the axes that are reduced
    kept     the axes that the result has
    lengths  the length of every axis
    """

    over: tuple[int, ...]
    kept: tuple[int, ...]
    lengths: Mapping[int, int]

    @property
    def axes(self) -> tuple[int, ...]:
        """The reduced axes and the axes of the result, in order."""
        return tuple(sorted((*self.over, *self.kept)))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a result without its event dims."""
        return tuple(self.lengths[axis] for axis in self.kept)

    @property
    def count(self) -> torch.Tensor:
        """The number of elements that go into each entry of a result."""
        elements = math.prod(self.lengths[axis] for axis in self.over)
        return torch.tensor(elements, dtype=torch.float64)

    def full(self, value: Named) -> torch.Tensor:
        """A body's value, expanded along every axis to the axis's length."""
        lengths = [self.lengths[axis] for axis in self.axes]
        return spread(value, self.axes).expand((*lengths, *value.event))

    def dims(self) -> tuple[int, ...]:
        """The dims of the reduced axes."""
        return tuple(k for k, axis in enumerate(self.axes) if axis in self.over)

    def total(self, full: torch.Tensor) -> torch.Tensor:
        """Sums over the reduced axes."""
        if self.over:
            return full.sum(self.dims())
        return full

    def top(self, full: torch.Tensor) -> torch.Tensor:
        """Maxima over the reduced axes."""
        if self.over:
            return full.amax(self.dims())
        return full

    def at(self, result: torch.Tensor) -> torch.Tensor:
        """A result spread over the reduced axes again."""
        for dim in self.dims():
            result = result.unsqueeze(dim)
        return result

    def finish(self, result: torch.Tensor) -> Named:
        """The result with the names of its axes."""
        return Named(result, self.kept)

    # --------------------------------------------------------------------------------------- blocks
    def blocks(self, size: int) -> Iterator[ProductBlock]:
        """Blocks of at most ``size`` combinations each; the first axes of the layout are cut first."""
        room = max(1, size)
        ranges: dict[int, list[tuple[int, int]]] = {}
        for axis in reversed(self.axes):
            length = self.lengths[axis]
            step = max(1, min(length, room))
            starts = range(0, length, step)
            ranges[axis] = [(low, min(low + step, length)) for low in starts]
            room = max(1, room // step)
        for combination in itertools.product(*(ranges[axis] for axis in self.axes)):
            yield self.block(dict(zip(self.axes, combination, strict=True)))

    def block(self, slices: Slices) -> ProductBlock:
        """The block of some slices."""
        return ProductBlock(space=self, slices=slices)


@dataclass(frozen=True, eq=False, kw_only=True)
class ProductBlock:
    """A range of positions along every axis, as (first, last + 1)."""

    space: Product
    slices: Slices

    def take(self, value: Named) -> Named:
        """The part of a value that belongs to this block."""
        data = value.data
        for dim, axis in enumerate(value.axes):
            if axis in self.slices:
                low, high = self.slices[axis]
                data = data.narrow(dim, low, high - low)
        return Named(data, value.axes)

    def place(self, axes: tuple[int, ...]) -> tuple[int, ...]:
        """The axes of ``take(value)`` for a value with these axes."""
        return axes

    def give(self, total: Named, piece: torch.Tensor) -> None:
        """Add a piece, with the layout of ``take(total)``, to the total."""
        self.take(total).data.add_(piece)

    def full(self, value: Named) -> torch.Tensor:
        """The value with all axes of the block."""
        ranges = [self.slices[axis] for axis in self.space.axes]
        lengths = [high - low for low, high in ranges]
        return spread(value, self.space.axes).expand((*lengths, *value.event))

    def at(self, result: torch.Tensor) -> torch.Tensor:
        """The part of a result that belongs to the block, spread over the reduced axes."""
        part = self.take(Named(result, self.space.kept))
        return self.space.at(part.data)

    def only(self, values: torch.Tensor, other: float = 0.0) -> torch.Tensor:
        """The values at elements, and ``other`` at combinations that are not elements."""
        return values

    def add(self, total: torch.Tensor, full: torch.Tensor) -> None:
        """Add the sums over this block's elements to a result."""
        part = self.take(Named(total, self.space.kept)).data
        part.add_(self.space.total(self.only(full)))

    def raise_to(self, total: torch.Tensor, full: torch.Tensor) -> None:
        """Raise a result to the maxima of this block's elements."""
        part = self.take(Named(total, self.space.kept)).data
        largest = self.space.top(self.only(full, -torch.inf))
        torch.maximum(part, largest, out=part)


@dataclass(frozen=True, eq=False, kw_only=True)
class Dense(Product):
    """A product with a mask of the combinations that are elements. It has most of the rows, for each cell
    of an axis.
    """

    cell: int
    last_axis: int
    start: torch.Tensor
    size: torch.Tensor
    skip: torch.Tensor
    place: torch.Tensor

    def block(self, slices: Slices) -> ProductBlock:
        """The block of some slices."""
        return DenseBlock(space=self, slices=slices)

    def inside(self, slices: Slices) -> Named:
        """True at the combinations of a piece that are elements."""
        cells = slice(*slices[self.cell])
        rows = slice(*slices[self.last_axis])
        offset = self.place[:, rows] - self.start[cells]
        in_run = (offset >= 0) & (offset < self.size[cells])
        elements = in_run & (offset != self.skip[cells])
        if self.cell < self.last_axis:
            return Named(elements, (self.cell, self.last_axis))
        return Named(elements.T, (self.last_axis, self.cell))


@dataclass(frozen=True, eq=False, kw_only=True)
class DenseBlock(ProductBlock):
    """A range of positions along every axis; only some combinations are elements."""

    space: Dense

    @cached_property
    def mask(self) -> torch.Tensor:
        """True at the combinations that are elements."""
        return spread(self.space.inside(self.slices), self.space.axes)

    def only(self, values: torch.Tensor, other: float = 0.0) -> torch.Tensor:
        """The values at elements, and ``other`` at combinations that are not elements."""
        event_dims = values.dim() - self.mask.dim()
        mask = self.mask.reshape(*self.mask.shape, *([1] * event_dims))
        return torch.where(mask, values, other)


# ---------------------------------------------------------------------------- lists of combinations
@dataclass(frozen=True, eq=False, kw_only=True)
class Runs:
    """The runs of one binder, one run for each combination of the elements of earlier binders.

    start  position of a run's first element in ``order``
    size   number of elements of a run
    skip   offset of the element that a run leaves out, negative if none; None if no run leaves one out
    order  the position on the binder's own axis of each element that a run may contain
    """

    start: np.ndarray
    size: np.ndarray
    skip: np.ndarray | None
    order: np.ndarray


@dataclass(frozen=True, eq=False, kw_only=True)
class Listing:
    """Combinations that satisfy a condition, along one new axis ``flat``.

    bound      the bound problem
    env        the values of all binders
    last       the last binder
    cells      axes of the condition's outer binders; each of their combinations is a cell of the result
    over       further axes, which are reduced as a product
    kept       axes of the result besides ``cells``
    lengths    the length of every axis
    prefix     positions along the merged axes for each combination of the earlier binders
    last_axis  axis of the last binder, whose positions come from ``runs``
    runs       the last binder's run for each combination of the earlier binders
    tests      conditions to evaluate for each combination, in ``env``
    parents    the merged axes that the last binder's run and the tests depend on
    flat       the axis that replaces the merged axes, which are the axes of all binders of the condition
    """

    bound: Bound
    env: Mapping[ir.Binder, Named]
    last: ir.Binder
    cells: tuple[int, ...]
    over: tuple[int, ...]
    kept: tuple[int, ...]
    lengths: Mapping[int, int]
    prefix: Mapping[int, np.ndarray]
    last_axis: int
    runs: Runs
    tests: tuple[ir.Expr, ...] = ()
    parents: tuple[int, ...] = ()
    flat: int = field(default_factory=new_axis)

    @property
    def merged(self) -> frozenset[int]:
        """The axes that the list replaces."""
        return frozenset((*self.prefix, self.last_axis))

    @property
    def entries(self) -> int:
        """The number of cells."""
        return math.prod(self.lengths[axis] for axis in self.cells)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a result while it is computed: the ``kept`` axes, then all cells as one dim."""
        return (*(self.lengths[axis] for axis in self.kept), self.entries)

    @property
    def total_size(self) -> int:
        """The number of combinations before the tests."""
        return int(self.runs.size.sum())

    @property
    def alone(self) -> bool:
        """Whether it lists elements of one binder, and all elements of every run."""
        return not self.tests and self.runs.skip is None and set(self.prefix) == set(self.cells)

    @property
    def dense(self) -> Dense | None:
        """This space as a product with a mask, or None if it has none."""
        if self.tests or len(self.cells) != 1 or set(self.prefix) != set(self.cells):
            return None
        runs = self.runs
        n = self.lengths[self.last_axis]
        (cell,) = self.cells
        if 2 * self.total_size < n * self.entries or (runs.order < 0).any():
            return None
        place = np.empty(n, dtype=np.int64)
        place[runs.order] = np.arange(n)
        if runs.skip is None:
            left_out = np.full_like(runs.start, -1)
        else:
            left_out = runs.skip
        return Dense(
            over=tuple(sorted((*self.over, self.last_axis))),
            kept=tuple(sorted((*self.kept, cell))),
            lengths=self.lengths,
            cell=cell,
            last_axis=self.last_axis,
            start=_column(runs.start),
            size=_column(runs.size),
            skip=_column(left_out),
            place=torch.from_numpy(place)[None],
        )

    def distinct(self) -> tuple[Listing, torch.Tensor]:
        """A listing with each different run once, as the cells of a new axis.

        The second value is the number of the run that each of the present cells has.
        """
        start, size = self.runs.start, self.runs.size
        code = start * (size.max(initial=0) + 1) + size
        _, first, run_of_cell = np.unique(code, return_index=True, return_inverse=True)
        axis, count = new_axis(), len(first)
        runs = Runs(start=start[first], size=size[first], skip=None, order=self.runs.order)
        listing = replace(
            self,
            cells=(axis,),
            lengths={**self.lengths, axis: count},
            prefix={axis: np.arange(count)},
            runs=runs,
            flat=new_axis(),
        )
        return listing, torch.from_numpy(run_of_cell.reshape(-1))

    def finish(self, result: torch.Tensor) -> Named:
        """A result with the cells as axes again."""
        event = result.shape[len(self.shape) :]
        lengths = [self.lengths[axis] for axis in self.cells]
        result = result.reshape((*self.shape[:-1], *lengths, *event))
        axes = (*self.kept, *self.cells)
        order = sorted(range(len(axes)), key=lambda k: axes[k])
        result = result.permute((*order, *range(len(axes), result.dim())))
        return Named(result, tuple(axes[k] for k in order))

    def blocks(self, size: int) -> Iterator[ListingBlock]:
        """Blocks of at most ``size`` combinations each, in order."""
        axes = (*self.kept, *self.over)
        times = math.prod(self.lengths[axis] for axis in axes)
        size = max(1, size // max(1, times))
        ends = torch.from_numpy(self.runs.size).cumsum(0)
        for low in range(0, self.total_size, size):
            high = min(low + size, self.total_size)
            block = self.make(self._positions(ends, low, high))
            if self.tests:
                passed = self._tested(block)
                places_left = {axis: places[passed] for axis, places in block.index.items()}
                block = self.make(places_left)
            yield block

    def _positions(self, ends: torch.Tensor, low: int, high: int) -> dict[int, torch.Tensor]:
        """The positions along every merged axis of combinations ``low`` to ``high``.

        Combinations are counted through all runs, of which ``ends`` are the ends; the skipped ones are
        left out of the result.
        """
        runs = self.runs
        sizes, start, order = map(torch.from_numpy, (runs.size, runs.start, runs.order))
        starts = ends - sizes
        first_and_last = torch.tensor([low, high - 1])
        first, last = torch.searchsorted(ends, first_and_last, right=True).tolist()
        here = slice(first, last + 1)
        inside = ends[here].clamp(max=high) - starts[here].clamp(min=low)
        run = torch.arange(first, last + 1).repeat_interleave(inside)
        offset = torch.arange(low, high) - starts[run]
        if runs.skip is not None:
            not_skipped = offset != torch.from_numpy(runs.skip)[run]
            run, offset = run[not_skipped], offset[not_skipped]
        index = {axis: torch.from_numpy(places)[run] for axis, places in self.prefix.items()}
        index[self.last_axis] = order[start[run] + offset]
        return index

    def _tested(self, block: ListingBlock) -> torch.Tensor:
        """True at the combinations of a block that pass all tests."""
        passed = torch.ones(len(block.cell), dtype=torch.bool)
        env = {binder: block.take(value) for binder, value in self.env.items()}
        for test in self.tests:
            passed &= Conditions(self.bound).value(test, env).data.bool()
        return passed

    def whole(self) -> ListingBlock:
        """All combinations as one block."""
        blocks = list(self.blocks(1 << 62))
        if blocks:
            return blocks[0]
        no_places = {axis: torch.zeros(0, dtype=torch.int64) for axis in self.merged}
        return self.make(no_places)

    def counts(self, size: int) -> torch.Tensor:
        """The number of elements that go into each cell."""
        if self.tests and set(self.parents) < set(self.prefix):
            return self._counts_by_join(size)
        if self.tests:
            total = torch.zeros(self.entries, dtype=torch.float64)
            for block in self.blocks(size):
                total += block.count
            return total
        times = math.prod(self.lengths[axis] for axis in self.over)
        sizes = self.runs.size
        if self.runs.skip is not None:
            sizes = sizes - ((self.runs.skip >= 0) & (self.runs.skip < sizes))
        number = torch.from_numpy(sizes).to(torch.float64)
        if set(self.prefix) != set(self.cells):
            number = torch.bincount(self._cells(self.prefix), weights=number, minlength=self.entries)
        return times * number

    def _counts_by_join(self, size: int) -> torch.Tensor:
        """``counts`` if the last binder's elements depend on some of the earlier binders alone.

        They are counted once for each combination of these, and not for each combination of all.
        """
        code = np.zeros(len(self.runs.size), dtype=np.int64)
        for axis in self.parents:
            code = code * self.lengths[axis] + self.prefix[axis]
        _, first, number = np.unique(code, return_index=True, return_inverse=True)
        runs, skip, cell = self.runs, self.runs.skip, new_axis()
        once = replace(
            self,
            cells=(cell,),
            lengths={**self.lengths, cell: len(first)},
            prefix={cell: np.arange(len(first)), **{a: self.prefix[a][first] for a in self.parents}},
            runs=Runs(
                start=runs.start[first],
                size=runs.size[first],
                skip=None if skip is None else skip[first],
                order=runs.order,
            ),
            parents=(cell, *self.parents),
            flat=new_axis(),
        )
        weights = once.counts(size)[torch.from_numpy(number.reshape(-1))]
        return torch.bincount(self._cells(self.prefix), weights=weights, minlength=self.entries)

    def _cells(self, places: Mapping[int, np.ndarray]) -> torch.Tensor:
        """The cell of each combination of the earlier binders, from its positions along the merged axes."""
        cell = np.zeros(len(self.runs.size), dtype=np.int64)
        for axis in self.cells:
            cell = cell * self.lengths[axis] + places[axis]
        return torch.from_numpy(cell)

    def make(self, index: Mapping[int, torch.Tensor]) -> ListingBlock:
        """The block of the combinations with some positions along the merged axes."""
        cell = torch.zeros(len(index[self.last_axis]), dtype=torch.int64)
        for axis in self.cells:
            cell = cell * self.lengths[axis] + index[axis]
        return ListingBlock(space=self, index=index, cell=cell)


@dataclass(frozen=True, eq=False, kw_only=True)
class ListingBlock:
    """Some combinations of a listing.

    index  the position of each combination along each merged axis
    cell   the cell of each combination
    """

    space: Listing
    index: Mapping[int, torch.Tensor]
    cell: torch.Tensor

    def take(self, value: Named) -> Named:
        """The value at these combinations, along the flat axis."""
        merged = [axis for axis in value.axes if axis in self.space.merged]
        if not merged:
            return value
        if len(merged) == 1:
            dim = value.axes.index(merged[0])
            data = value.data.index_select(dim, self.index[merged[0]])
            last = len(value.axes) - 1
            return Named(data.movedim(dim, last), self.place(value.axes))
        first = [k for k, axis in enumerate(value.axes) if axis in self.space.merged]
        rest = [k for k, axis in enumerate(value.axes) if axis not in self.space.merged]
        event_dims = range(len(value.axes), value.data.dim())
        data = value.data.permute((*first, *rest, *event_dims))
        data = data[tuple(self.index[axis] for axis in merged)]
        return Named(data.movedim(0, len(rest)), self.place(value.axes))

    def place(self, axes: tuple[int, ...]) -> tuple[int, ...]:
        """The axes of ``take(value)`` for a value with these axes."""
        merged = self.space.merged.intersection(axes)
        if merged:
            return (*(axis for axis in axes if axis not in merged), self.space.flat)
        return axes

    def give(self, total: Named, piece: torch.Tensor) -> None:
        """Add a piece to a total along its own axes."""
        merged = [axis for axis in total.axes if axis in self.space.merged]
        if not merged:
            total.data.add_(piece)
            return
        assert len(merged) == 1
        dim = total.axes.index(merged[0])
        rows = piece.movedim(len(total.axes) - 1, dim)
        total.data.index_add_(dim, self.index[merged[0]], rows)

    def full(self, value: Named) -> torch.Tensor:
        """The value with all axes of the block."""
        axes = self.axes()
        lengths = [self.space.lengths.get(axis, len(self.cell)) for axis in axes]
        return spread(value, axes).expand((*lengths, *value.event))

    def only(self, values: torch.Tensor, other: float = 0.0) -> torch.Tensor:
        """The values; every combination of a listing is an element."""
        return values

    def axes(self) -> tuple[int, ...]:
        """The axes that are not merged, in order, and the flat axis."""
        return (*sorted((*self.space.kept, *self.space.over)), self.space.flat)

    def _over(self) -> tuple[int, ...]:
        """The dims of the reduced axes other than the flat one."""
        return tuple(k for k, axis in enumerate(self.axes()) if axis in self.space.over)

    def _summed(self, full: torch.Tensor) -> torch.Tensor:
        """The sums over the reduced axes other than the flat one."""
        if self._over():
            return full.sum(self._over())
        return full

    def _largest(self, full: torch.Tensor) -> torch.Tensor:
        """The maxima over the reduced axes other than the flat one."""
        if self._over():
            return full.amax(self._over())
        return full

    def at(self, result: torch.Tensor) -> torch.Tensor:
        """The result at each combination's cell."""
        result = result.index_select(len(self.space.kept), self.cell)
        for dim in self._over():
            result = result.unsqueeze(dim)
        return result

    def add(self, total: torch.Tensor, full: torch.Tensor) -> None:
        """Add each value to its cell."""
        total.index_add_(len(self.space.kept), self.cell, self._summed(full))

    def raise_to(self, total: torch.Tensor, full: torch.Tensor) -> None:
        """Raise each cell to the largest of its values."""
        part = self._largest(full)
        dim = len(self.space.kept)
        total.scatter_reduce_(dim, self._spread(part, dim), part, "amax")

    def _spread(self, part: torch.Tensor, dim: int) -> torch.Tensor:
        """The cells as an index of the shape of ``part``, along one of its dims."""
        shape = [1] * part.dim()
        shape[dim] = -1
        return self.cell.reshape(shape).expand(part.shape)

    # ----------------------------------------------- the whole listing as one block, differentiable
    def total(self, full: torch.Tensor) -> torch.Tensor:
        """The sum of each cell's values."""
        part = self._summed(full)
        dim = len(self.space.kept)
        shape = (*part.shape[:dim], self.space.entries, *part.shape[dim + 1 :])
        zero = part.new_zeros(shape)
        return zero.index_add(dim, self.cell, part)

    def top(self, full: torch.Tensor) -> torch.Tensor:
        """The largest of each cell's values, and -inf for a cell without values."""
        part = self._largest(full)
        dim = len(self.space.kept)
        shape = (*part.shape[:dim], self.space.entries, *part.shape[dim + 1 :])
        low = part.new_full(shape, -torch.inf)
        return low.scatter_reduce(dim, self._spread(part, dim), part, "amax")

    @property
    def count(self) -> torch.Tensor:
        """The number of elements in each cell."""
        times = math.prod(self.space.lengths[axis] for axis in self.space.over)
        return times * torch.bincount(self.cell, minlength=self.space.entries).to(torch.float64)

    def finish(self, result: torch.Tensor) -> Named:
        """The result with the cells as axes again."""
        return self.space.finish(result)


def cells(block: Product | ProductBlock | ListingBlock, full: torch.Tensor) -> torch.Tensor:
    """For each element of a block, the number of its entry in the flattened result, as one vector."""
    if isinstance(block, Product):
        shape = block.shape
    else:
        shape = block.space.shape
    numbers = torch.arange(math.prod(shape)).reshape(shape)
    return block.at(numbers).expand(full.shape).reshape(-1)


def _column(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(array))[:, None]


def lengths_of(values: Iterable[Named]) -> dict[int, int]:
    """The length of every axis of some values."""
    return {axis: value.length(axis) for value in values for axis in value.axes}
