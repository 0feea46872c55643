"""Where a reduction goes: a product of axes, or a list of the combinations that satisfy a condition;
whole, or block by block.

A *space* knows the environment in which the body is evaluated, the axes that are reduced, and how
to sum and to broadcast between the body's axes and the result's. A *block* is a piece of a space
small enough to hold all of its elements at once.
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
from fccomodel.evaluation.sets.selections import Conditions

Slices = Mapping[int, tuple[int, int]]


# --------------------------------------------------------------------------------- products of axes
@dataclass(frozen=True, eq=False, kw_only=True)
class Product:
    """Every combination of the reduced axes ``over`` with the ``kept`` ones; ``lengths`` of all of them."""

    over: tuple[int, ...]
    kept: tuple[int, ...]
    lengths: Mapping[int, int]

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes that are summed and those that stay, in order."""
        return tuple(sorted((*self.over, *self.kept)))

    @property
    def shape(self) -> tuple[int, ...]:
        """Of a result, without event dims."""
        return tuple(self.lengths[axis] for axis in self.kept)

    @property
    def count(self) -> torch.Tensor:
        """The number of elements that go into each entry of a result."""
        return torch.tensor(math.prod(self.lengths[axis] for axis in self.over), dtype=torch.float64)

    def full(self, value: Named) -> torch.Tensor:
        """A body's value with every axis at its length."""
        return spread(value, self.axes).expand((*(self.lengths[axis] for axis in self.axes), *value.event))

    def dims(self) -> tuple[int, ...]:
        """The positions of the summed axes."""
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
        """The result along the axes that stay."""
        return Named(result, self.kept)

    # --------------------------------------------------------------------------------------- blocks
    def blocks(self, size: int) -> Iterator[ProductBlock]:
        """Pieces with at most ``size`` combinations (an axis later in layout is cut last)."""
        steps, room = {}, max(1, size)
        for axis in reversed(self.axes):
            steps[axis] = max(1, min(self.lengths[axis], room))
            room = max(1, room // steps[axis])
        ranges = [
            [(low, min(low + steps[a], self.lengths[a])) for low in range(0, self.lengths[a], steps[a])]
            for a in self.axes
        ]
        for combination in itertools.product(*ranges):
            yield self.block(dict(zip(self.axes, combination, strict=True)))

    def block(self, slices: Slices) -> ProductBlock:
        """A piece."""
        return ProductBlock(space=self, slices=slices)


@dataclass(frozen=True, eq=False, kw_only=True)
class ProductBlock:
    """A range of every axis."""

    space: Product
    slices: Slices

    def take(self, value: Named) -> Named:
        """What a value is in this block."""
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
        """Add a piece, laid out as ``take(total)``, to the whole."""
        self.take(total).data.add_(piece)

    def full(self, value: Named) -> torch.Tensor:
        """The value with all axes of the block."""
        lengths = [high - low for low, high in (self.slices[axis] for axis in self.space.axes)]
        return spread(value, self.space.axes).expand((*lengths, *value.event))

    def at(self, result: torch.Tensor) -> torch.Tensor:
        """The part of a result that lies in the block, with all axes."""
        return self.space.at(self.take(Named(result, self.space.kept)).data)

    def only(self, values: torch.Tensor, other: float = 0.0) -> torch.Tensor:
        """Values of the elements, and another number for combinations that are none."""
        return values

    def add(self, total: torch.Tensor, full: torch.Tensor) -> None:
        """Add the sums over this block's elements to a result."""
        self.take(Named(total, self.space.kept)).data.add_(self.space.total(self.only(full)))

    def raise_to(self, total: torch.Tensor, full: torch.Tensor) -> None:
        """Raise a result to the maxima of this block's elements."""
        part = self.take(Named(total, self.space.kept)).data
        torch.maximum(part, self.space.top(self.only(full, -torch.inf)), out=part)


@dataclass(frozen=True, eq=False, kw_only=True)
class Dense(Product):
    """Runs that have most of the rows, for each cell of an axis: a product whose other combinations
    count for nothing.

    start, size, skip   of each cell's run (a column)
    place               where each row stands in the
                        runs' order (a row)
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
        """Which combinations of a piece are elements."""
        cells, rows = (slice(*slices[axis]) for axis in (self.cell, self.last_axis))
        offset = self.place[:, rows] - self.start[cells]
        found = (offset >= 0) & (offset < self.size[cells]) & (offset != self.skip[cells])
        across = self.cell < self.last_axis
        return Named(found if across else found.T, tuple(sorted((self.cell, self.last_axis))))


@dataclass(frozen=True, eq=False, kw_only=True)
class DenseBlock(ProductBlock):
    """A range of every axis, where only some combinations are elements."""

    space: Dense

    @cached_property
    def mask(self) -> torch.Tensor:
        """Which combinations belong to the set."""
        return spread(self.space.inside(self.slices), self.space.axes)

    def only(self, values: torch.Tensor, other: float = 0.0) -> torch.Tensor:
        """The values where the mask holds, elsewhere another number."""
        mask = self.mask.reshape(*self.mask.shape, *(1 for _ in range(values.dim() - self.mask.dim())))
        return torch.where(mask, values, other)


# ---------------------------------------------------------------------------- lists of combinations
@dataclass(frozen=True, eq=False, kw_only=True)
class Runs:
    """The last binder's runs, one per combination of what comes before it: ``start .. start + size``
    without ``skip``.

    order   the position on the binder's own axis of each element that a run may contain
    """

    start: np.ndarray
    size: np.ndarray
    skip: np.ndarray | None
    order: np.ndarray


@dataclass(frozen=True, eq=False, kw_only=True)
class Listing:
    """Combinations that satisfy a condition, along one new axis ``flat``.

    prefix     for each combination of the earlier binders, positions along the merged axes
    merged     the axes that ``flat`` replaces: those of the condition's outer binders (``cells``) and of
               its own
    last_axis  axis of the last binder, whose positions come from ``runs``
    tests      conditions to evaluate for each combination, in ``env``
    over       further axes, which are reduced as a product
    kept       axes of the result besides ``cells``
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
        """Of a result while it is made: ``kept`` axes, then the cells as one dim."""
        return (*(self.lengths[axis] for axis in self.kept), self.entries)

    @property
    def total_size(self) -> int:
        """How many combinations there are, tests left out."""
        return int(self.runs.size.sum())

    @property
    def alone(self) -> bool:
        """It lists the elements of one binder, in runs that nothing else cuts."""
        return not self.tests and self.runs.skip is None and set(self.prefix) == set(self.cells)

    @property
    def dense(self) -> Dense | None:
        """The same as a product, where the runs of one axis of cells have at least half of the
        combinations."""
        if self.tests or len(self.cells) != 1 or set(self.prefix) != set(self.cells):
            return None
        n, (cell,), runs = self.lengths[self.last_axis], self.cells, self.runs
        if 2 * self.total_size < n * self.entries or (runs.order < 0).any():
            return None
        place = np.empty(n, dtype=np.int64)
        place[runs.order] = np.arange(n)
        if runs.skip is None:
            left_out = np.full_like(runs.start, -1)
        else:
            left_out = runs.skip
        start, size, skip = (
            torch.from_numpy(np.ascontiguousarray(x))[:, None] for x in (runs.start, runs.size, left_out)
        )
        return Dense(
            over=tuple(sorted((*self.over, self.last_axis))),
            kept=tuple(sorted((*self.kept, cell))),
            lengths=self.lengths,
            cell=cell,
            last_axis=self.last_axis,
            start=start,
            size=size,
            skip=skip,
            place=torch.from_numpy(place)[None],
        )

    def distinct(self) -> tuple[Listing, torch.Tensor]:
        """The same with every different run once, as the cells of a new axis; and which of them each
        cell has."""
        start, size = self.runs.start, self.runs.size
        number = start * (size.max(initial=0) + 1) + size
        _, first, which = np.unique(number, return_index=True, return_inverse=True)
        axis, count = new_axis(), len(first)
        runs = Runs(start=start[first], size=size[first], skip=None, order=self.runs.order)
        lengths = {**self.lengths, axis: count}
        listing = replace(
            self, cells=(axis,), lengths=lengths, prefix={axis: np.arange(count)}, runs=runs, flat=new_axis()
        )
        return listing, torch.from_numpy(which.reshape(-1))

    def finish(self, result: torch.Tensor) -> Named:
        """A result with the cells as axes again."""
        event = result.shape[len(self.shape) :]
        result = result.reshape((*self.shape[:-1], *(self.lengths[axis] for axis in self.cells), *event))
        axes = (*self.kept, *self.cells)
        order = sorted(range(len(axes)), key=lambda k: axes[k])
        return Named(result.permute((*order, *range(len(axes), result.dim()))), tuple(axes[k] for k in order))

    def blocks(self, size: int) -> Iterator[ListingBlock]:
        """Pieces with at most ``size`` combinations, in order."""
        runs = self.runs
        sizes, start, order = map(torch.from_numpy, (runs.size, runs.start, runs.order))
        ends = sizes.cumsum(0)
        size = max(1, size // max(1, math.prod(self.lengths[axis] for axis in (*self.kept, *self.over))))
        for low in range(0, int(ends[-1]) if len(ends) else 0, size):
            high = min(low + size, int(ends[-1]))
            first, last = torch.searchsorted(ends, torch.tensor([low, high - 1]), right=True).tolist()
            here = slice(first, last + 1)
            inside = ends[here].clamp(max=high) - (ends[here] - sizes[here]).clamp(min=low)
            before = torch.arange(first, last + 1).repeat_interleave(inside)
            offset = torch.arange(low, high) - (ends - sizes)[before]
            if runs.skip is not None:
                keep = offset != torch.from_numpy(runs.skip)[before]
                before, offset = before[keep], offset[keep]
            index = {axis: torch.from_numpy(places)[before] for axis, places in self.prefix.items()}
            index[self.last_axis] = order[start[before] + offset]
            block = self.make(index)
            if self.tests:
                keep_tensor = torch.ones(len(before), dtype=torch.bool)
                env = {binder: block.take(value) for binder, value in self.env.items()}
                for test in self.tests:
                    keep_tensor &= Conditions(self.bound).value(test, env).data.bool()
                block = self.make({axis: places[keep_tensor] for axis, places in index.items()})
            yield block

    def whole(self) -> ListingBlock:
        """All combinations as one block."""
        blocks = list(self.blocks(1 << 62))
        if blocks:
            return blocks[0]
        return self.make({axis: torch.zeros(0, dtype=torch.int64) for axis in self.merged})

    def counts(self, size: int) -> torch.Tensor:
        """The number of elements that go into each cell."""
        times = math.prod(self.lengths[axis] for axis in self.over)
        if not self.tests:
            skipped = (
                0 if self.runs.skip is None else (self.runs.skip >= 0) & (self.runs.skip < self.runs.size)
            )
            number = torch.from_numpy(self.runs.size - skipped).to(torch.float64)
            if set(self.prefix) != set(self.cells):
                number = torch.bincount(self._cells(self.prefix), weights=number, minlength=self.entries)
            return times * number
        total = torch.zeros(self.entries, dtype=torch.float64)
        for block in self.blocks(size):
            total += block.count
        return total

    def _cells(self, places: Mapping[int, np.ndarray]) -> torch.Tensor:
        """The cell of each combination of the earlier binders, by its positions along the merged axes."""
        cell = np.zeros(len(self.runs.size), dtype=np.int64)
        for axis in self.cells:
            cell = cell * self.lengths[axis] + places[axis]
        return torch.from_numpy(cell)

    def make(self, index: Mapping[int, torch.Tensor]) -> ListingBlock:
        """The block of listed combinations."""
        cell = torch.zeros(len(index[self.last_axis]), dtype=torch.int64)
        for axis in self.cells:
            cell = cell * self.lengths[axis] + index[axis]
        return ListingBlock(space=self, index=index, cell=cell)


@dataclass(frozen=True, eq=False, kw_only=True)
class ListingBlock:
    """Some of the combinations: positions along each merged axis, and the cell that each belongs to."""

    space: Listing
    index: Mapping[int, torch.Tensor]
    cell: torch.Tensor

    def take(self, value: Named) -> Named:
        """What a value is for these combinations, along the flat axis."""
        merged = [axis for axis in value.axes if axis in self.space.merged]
        if not merged:
            return value
        if len(merged) == 1:
            dim = value.axes.index(merged[0])
            data = value.data.index_select(dim, self.index[merged[0]]).movedim(dim, len(value.axes) - 1)
        else:
            rest = [k for k, axis in enumerate(value.axes) if axis not in self.space.merged]
            first = [k for k, axis in enumerate(value.axes) if axis in self.space.merged]
            tail = range(len(value.axes), value.data.dim())
            data = value.data.permute((*first, *rest, *tail))[
                tuple(self.index[axis] for axis in merged)
            ].movedim(0, len(rest))
        return Named(data, self.place(value.axes))

    def place(self, axes: tuple[int, ...]) -> tuple[int, ...]:
        """The axes after the merged ones became the flat one."""
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
        total.data.index_add_(dim, self.index[merged[0]], piece.movedim(len(total.axes) - 1, dim))

    def full(self, value: Named) -> torch.Tensor:
        """The value with all axes of the block."""
        axes = self.axes()
        lengths = [self.space.lengths.get(axis, len(self.cell)) for axis in axes]
        return spread(value, axes).expand((*lengths, *value.event))

    def only(self, values: torch.Tensor, other: float = 0.0) -> torch.Tensor:
        """The values: the list holds only what belongs to the set."""
        return values

    def axes(self) -> tuple[int, ...]:
        """The axes that were not merged, in order, and the flat axis."""
        return (*sorted((*self.space.kept, *self.space.over)), self.space.flat)

    def _over(self) -> tuple[int, ...]:
        return tuple(k for k, axis in enumerate(self.axes()) if axis in self.space.over)

    def at(self, result: torch.Tensor) -> torch.Tensor:
        """The result of each listed combination's cell."""
        result = result.index_select(len(self.space.kept), self.cell)
        for dim in self._over():
            result = result.unsqueeze(dim)
        return result

    def add(self, total: torch.Tensor, full: torch.Tensor) -> None:
        """Add values to the cells that they belong to."""
        total.index_add_(len(self.space.kept), self.cell, full.sum(self._over()) if self._over() else full)

    def raise_to(self, total: torch.Tensor, full: torch.Tensor) -> None:
        """Raise each cell to the largest of its values."""
        if self._over():
            part = full.amax(self._over())
        else:
            part = full
        dim = len(self.space.kept)
        total.scatter_reduce_(dim, self._spread(part, dim), part, "amax")

    def _spread(self, part: torch.Tensor, dim: int) -> torch.Tensor:
        """The cells as an index of the shape of ``part``."""
        return self.cell.reshape([-1 if k == dim else 1 for k in range(part.dim())]).expand(part.shape)

    # ----------------------------------------------- the whole listing as one block, differentiable
    def total(self, full: torch.Tensor) -> torch.Tensor:
        """Sums by cell."""
        if self._over():
            part = full.sum(self._over())
        else:
            part = full
        dim = len(self.space.kept)
        zero = part.new_zeros((*part.shape[:dim], self.space.entries, *part.shape[dim + 1 :]))
        return zero.index_add(dim, self.cell, part)

    def top(self, full: torch.Tensor) -> torch.Tensor:
        """Maxima by cell (-inf where there are none)."""
        if self._over():
            part = full.amax(self._over())
        else:
            part = full
        dim = len(self.space.kept)
        low = part.new_full((*part.shape[:dim], self.space.entries, *part.shape[dim + 1 :]), -torch.inf)
        return low.scatter_reduce(dim, self._spread(part, dim), part, "amax")

    @property
    def count(self) -> torch.Tensor:
        """The number of elements in each cell."""
        times = math.prod(self.space.lengths[axis] for axis in self.space.over)
        return times * torch.bincount(self.cell, minlength=self.space.entries).to(torch.float64)

    def finish(self, result: torch.Tensor) -> Named:
        """The result along the axes that stay."""
        return self.space.finish(result)


def cells(block: Product | ProductBlock | ListingBlock, full: torch.Tensor) -> torch.Tensor:
    """The entry of the (flattened) result that each element of a block belongs to, flattened."""
    space = block if isinstance(block, Product) else block.space
    numbers = torch.arange(math.prod(space.shape)).reshape(space.shape)
    return block.at(numbers).expand(full.shape).reshape(-1)


def lengths_of(values: Iterable[Named]) -> dict[int, int]:
    """The length of every axis of some values."""
    return {axis: value.length(axis) for value in values for axis in value.axes}
