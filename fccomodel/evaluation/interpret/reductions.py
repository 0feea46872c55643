"""The value of a reduction of given elements, all at once or in one or two passes over blocks.

Every combination of the binders' elements that satisfies the condition has equal weight. A kind of
reduction (``fccomodel.library.reductions``) defines the value and its derivative in each element;
this module passes the elements to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from fccomodel.evaluation.interpret.spaces import Listing, ListingBlock, Product, ProductBlock, cells
from fccomodel.evaluation.kernels.pulled import directional, pulled
from fccomodel.evaluation.sets.axes import Named, spread
from fccomodel.library.reductions import BlockOfElements, Reduction, Slope

Options = Mapping[str, float]
Block = ProductBlock | ListingBlock
Function = Callable[[torch.Tensor, BlockOfElements], torch.Tensor]


# ------------------------------------------------------------------------------------------ at once
@dataclass(eq=False, kw_only=True)
class AtOnce:
    """Elements that are all in memory (see ``library.reductions.Elements``).

    whole  the space, or the only block of it
    full   the elements, with a dim for every axis of the space
    count  the number of elements of each entry of the result
    event  shape of one element
    kept   results of the kind of reduction that its derivative needs
    """

    whole: Product | ListingBlock
    full: torch.Tensor
    count: torch.Tensor
    event: tuple[int, ...]
    kept: dict[str, Any] = field(default_factory=dict)

    @property
    def here(self) -> BlockOfElements:
        """The lookups at all elements."""
        return BlockOfElements(at=self.whole.at, part=lambda listed: listed.reshape(self.full.shape))

    def total(self, f: Function | None = None) -> torch.Tensor:
        """The sum of f over the elements."""
        if f is None:
            return self.whole.total(self.full)
        return self.whole.total(f(self.full, self.here))

    def top(self, sign: float = 1.0) -> torch.Tensor:
        """The largest of ``sign`` times the elements."""
        return self.whole.top(sign * self.full.detach())

    def listed(self) -> tuple[torch.Tensor, torch.Tensor]:
        """All elements as one vector, and the cell of each."""
        return self.full.detach().reshape(-1), cells(self.whole, self.full)

    def gathered(self, values: torch.Tensor, entry: torch.Tensor) -> torch.Tensor:
        """The sum of each cell's values, which are listed as by ``listed``."""
        return self.whole.total(values.reshape(self.full.shape))

    def share(self, here: BlockOfElements) -> torch.Tensor:
        """The weight of each element in a mean."""
        if isinstance(self.whole, Product):
            shape = self.whole.shape
        else:
            shape = self.whole.space.shape
        return _share(self.count, (*shape, *self.event), here)


def collapse(kind: Reduction, whole: Product | ListingBlock, value: Named, options: Options) -> Named:
    """A reduction of elements that are all in memory; torch differentiates it."""
    full = whole.full(Named(value.data.to(torch.float64), value.axes))
    count = _fit(whole.count, value.event)
    elements = AtOnce(whole=whole, full=full, count=count, event=value.event)
    if kind.kinked:
        return whole.finish(_weighted_sum(kind, elements, options))
    return whole.finish(kind.value(elements, options))


def by_entry(value: Named, space: Product | Listing) -> torch.Tensor:
    """A value for each entry of a reduction's result, as one vector in their order."""
    axes = space.kept if isinstance(space, Product) else (*space.kept, *space.cells)
    order = sorted(range(len(value.axes)), key=lambda k: axes.index(value.axes[k]))
    arranged = Named(value.data.permute(order), tuple(value.axes[k] for k in order))
    lengths = [space.lengths[axis] for axis in axes]
    return spread(arranged, axes).detach().to(torch.float64).expand(lengths).reshape(-1)


def _weighted_sum(kind: Reduction, elements: AtOnce, options: Options) -> torch.Tensor:
    """The sum of the elements times their weights, which are constant between the kinks."""
    fixed = replace(elements, full=elements.full.detach())
    slope = kind.slope(fixed, kind.value(fixed, options), options)
    assert slope.weight is not None
    return elements.whole.total(slope.weight(fixed.full, fixed.here) * elements.full)


def _fit(count: torch.Tensor, event: Sequence[int]) -> torch.Tensor:
    """Counts with a dim of length 1 for every event dim."""
    if count.dim():
        return count.reshape(*count.shape, *(1 for _ in event))
    return count


def _share(count: torch.Tensor, shape: Sequence[int], here: BlockOfElements) -> torch.Tensor:
    """For each element, 1 over the number of elements of its cell."""
    if count.dim():
        return here.at(torch.broadcast_to(1 / count, tuple(shape)))
    return 1 / count


# ----------------------------------------------------------------------------------- block by block
Body = Callable[[Block, Sequence[torch.Tensor]], Named]


@dataclass(eq=False, kw_only=True)
class ElementsInBlocks:
    """Elements computed in passes over blocks (see ``library.reductions.Elements``).

    space   the space of the elements
    size    largest number of combinations of a block
    leaves  values that the elements depend on, computed before the blocks
    body    gives a block's elements from the block and the parts of the leaves that belong to it
    count   the number of elements of each entry of the result
    event   shape of one element
    kept    results of the kind of reduction that its derivative needs
    at      the data of the leaves at the present point
    """

    space: Product | Listing
    size: int
    leaves: tuple[Named, ...]
    body: Body
    count: torch.Tensor
    event: tuple[int, ...]
    kept: dict[str, Any] = field(default_factory=dict)
    at: Sequence[torch.Tensor] = ()

    def blocks(self) -> Iterator[tuple[Block, list[Named]]]:
        """Every block with the parts of the leaves that belong to it."""
        pairs = zip(self.at, self.leaves, strict=True)
        named = [Named(data, leaf.axes) for data, leaf in pairs]
        for block in self.space.blocks(self.size):
            yield block, [block.take(leaf) for leaf in named]

    def elements(self) -> Iterator[tuple[Block, torch.Tensor]]:
        """Every block with its elements."""
        for block, pieces in self.blocks():
            yield block, block.full(self.body(block, [piece.data for piece in pieces]))

    def total(self, f: Function | None = None) -> torch.Tensor:
        """The sum of f over the elements, block by block."""
        result = torch.zeros((*self.space.shape, *self.event), dtype=torch.float64)
        for block, full in self.elements():
            if f is None:
                values = full.to(torch.float64)
            else:
                values = f(full, BlockOfElements(at=block.at, part=_unlisted))
            block.add(result, values)
        return result

    def top(self, sign: float = 1.0) -> torch.Tensor:
        """The largest of ``sign`` times the elements, block by block."""
        shape = (*self.space.shape, *self.event)
        result = torch.full(shape, -torch.inf, dtype=torch.float64)
        for block, full in self.elements():
            block.raise_to(result, sign * full)
        return result

    def listed(self) -> tuple[torch.Tensor, torch.Tensor]:
        """All elements as one vector, and the cell of each."""
        parts, places = [], []
        for block, full in self.elements():
            parts.append(full.reshape(-1).clone())
            places.append(cells(block, full))
        return torch.cat(parts), torch.cat(places)

    def gathered(self, values: torch.Tensor, entry: torch.Tensor) -> torch.Tensor:
        """The sum of each cell's values, which are listed as by ``listed``."""
        entries = int(torch.tensor(self.space.shape).prod())
        sums = torch.zeros(entries, dtype=torch.float64).index_add(0, entry, values)
        return sums.reshape(self.space.shape)

    def share(self, here: BlockOfElements) -> torch.Tensor:
        """The weight of each element in a mean."""
        return _share(self.count, (*self.space.shape, *self.event), here)


def _unlisted(listed: torch.Tensor) -> torch.Tensor:
    raise AssertionError("elements are listed once, for the derivative")


@dataclass(eq=False, kw_only=True)
class Streamed(ElementsInBlocks):
    """A reduction that is computed block by block, with its kind and the kind's options."""

    kind: Reduction
    options: Options = field(default_factory=dict)

    def forward(self, leaves: Sequence[torch.Tensor]) -> torch.Tensor:
        """The value of the reduction, block by block."""
        self.at, self.count = leaves, _fit(self.count, self.event)
        self.kept["value"] = self.kind.value(self, self.options)
        return self.kept["value"].clone()

    def pull(
        self, x: Sequence[torch.Tensor], wanted: Sequence[bool], gradient: torch.Tensor
    ) -> list[torch.Tensor | None]:
        """The gradient of every wanted leaf; every block is computed again."""
        slope = self._slope(x)
        if slope.over is not None:
            gradient = gradient / slope.over
        totals: list[torch.Tensor | None] = [None] * len(x)
        for k, leaf in enumerate(x):
            if wanted[k]:
                totals[k] = torch.zeros_like(leaf)
        for block, inputs, full, first in self._again(wanted):
            if not full.requires_grad:
                continue
            outer = self._weights(slope, block, full.detach(), first) * block.at(gradient)
            varying = [piece for piece in inputs if piece.requires_grad]
            with torch.enable_grad():
                whole = (full * block.only(outer.expand_as(full))).sum()
            gradients = iter(torch.autograd.grad(whole, varying, allow_unused=True))
            for total, leaf_value, piece in zip(totals, self.leaves, inputs, strict=True):
                if total is not None and (part := next(gradients)) is not None:
                    block.give(Named(total, leaf_value.axes), part.reshape(piece.shape))
        return totals

    def push(self, x: Sequence[torch.Tensor], along: Sequence[torch.Tensor | None]) -> torch.Tensor:
        """The derivative along given directions of the leaves (None for a leaf that does not move)."""
        slope = self._slope(x)
        total = torch.zeros((*self.space.shape, *self.event), dtype=torch.float64)
        for block, inputs, full, first in self._again([direction is not None for direction in along]):
            directions: list[torch.Tensor | None] = [None] * len(along)
            for k, direction in enumerate(along):
                if direction is not None:
                    directions[k] = block.take(Named(direction, self.leaves[k].axes)).data
            with torch.enable_grad():
                change = directional(full, inputs, directions)
            weights = self._weights(slope, block, full.detach(), first)
            block.add(total, (weights * change).to(torch.float64))
        if slope.over is None:
            return total
        return total / slope.over

    def _slope(self, leaves: Sequence[torch.Tensor]) -> Slope:
        """The derivative in the elements at some leaves."""
        self.at = leaves
        return self.kind.slope(self, self.kept["value"], self.options)

    def _again(self, wanted: Sequence[bool]) -> Iterator[tuple[Block, list[torch.Tensor], torch.Tensor, int]]:
        """Every block, its parts of the leaves, its elements with their graph, and the number of the first.

        The elements of all blocks are numbered in order.
        """
        first = 0
        for block, pieces in self.blocks():
            pairs = zip(pieces, wanted, strict=True)
            inputs = [piece.data.detach().requires_grad_(want) for piece, want in pairs]
            with torch.enable_grad():
                full = block.full(self.body(block, inputs))
            yield block, inputs, full, first
            first += full.numel()

    @staticmethod
    def _weights(slope: Slope, block: Block, e: torch.Tensor, first: int) -> torch.Tensor:
        """The derivative in a block's elements e, without the factor of each cell.

        ``first`` is the number of the block's first element among all elements.
        """
        if slope.weight is None:
            return torch.ones((), dtype=e.dtype)

        def part(listed: torch.Tensor) -> torch.Tensor:
            """The entries of a list of all elements that belong to the block."""
            return listed[first : first + e.numel()].reshape(e.shape)

        return slope.weight(e, BlockOfElements(at=block.at, part=part))


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit torch to one thread; for blocks that fit the cache, two threads cost more than they save."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class _Blocks(torch.autograd.Function):
    """A streamed reduction as one operation of torch.

    The forward pass makes no graph; the backward pass computes the blocks again.
    """

    @staticmethod
    def forward(ctx: Any, streamed: Streamed, *leaves: torch.Tensor) -> torch.Tensor:
        """The value without a graph; the leaves are saved for the backward pass."""
        ctx.streamed = streamed
        ctx.save_for_backward(*leaves)
        with one_thread():
            return streamed.forward(leaves)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """The gradients of the leaves, block by block."""
        with one_thread():
            return (None, *pulled(ctx.streamed, ctx, gradient, first=1))


def stream(streamed: Streamed) -> Named:
    """The value of a reduction that is computed block by block, differentiable in its leaves."""
    leaves = [leaf.data for leaf in streamed.leaves]
    return streamed.space.finish(_Blocks.apply(streamed, *leaves))
