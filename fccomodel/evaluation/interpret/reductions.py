"""What a reduction makes of its elements: at once, or in one pass or two over blocks.

Every combination of the binders' elements that satisfies the condition counts alike. What the value
is, and its derivative in each element, is the kind's own (``fccomodel.library.reductions``); here
is where its elements come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from fccomodel.evaluation.interpret.spaces import Listing, ListingBlock, Product, ProductBlock, cells
from fccomodel.evaluation.kernels.pulled import directional, pulled
from fccomodel.evaluation.sets.axes import Named
from fccomodel.library.reductions import Here, Reduction, Slope

Options = Mapping[str, float]
Block = ProductBlock | ListingBlock
Of = Callable[[torch.Tensor, Here], torch.Tensor]


# ------------------------------------------------------------------------------------------ at once
@dataclass(eq=False, kw_only=True)
class AtOnce:
    """Elements that are all at hand (see ``library.reductions.Elements``): ``full`` has a dim for
    every axis of the space."""

    whole: Product | ListingBlock
    full: torch.Tensor
    count: torch.Tensor
    event: tuple[int, ...]
    kept: dict[str, Any] = field(default_factory=dict)

    @property
    def here(self) -> Here:
        """The lookups at all elements."""
        return Here(at=self.whole.at, part=lambda listed: listed.reshape(self.full.shape))

    def total(self, f: Of | None = None) -> torch.Tensor:
        """The sum of f over the elements."""
        return self.whole.total(self.full if f is None else f(self.full, self.here))

    def top(self, sign: float = 1.0) -> torch.Tensor:
        """The largest of sign times the elements."""
        return self.whole.top(sign * self.full.detach())

    def listed(self) -> tuple[torch.Tensor, torch.Tensor]:
        """All elements as one vector, and the cell of each."""
        return self.full.detach().reshape(-1), cells(self.whole, self.full)

    def gathered(self, values: torch.Tensor, entry: torch.Tensor) -> torch.Tensor:
        """The sum of listed values in their cells."""
        return self.whole.total(values.reshape(self.full.shape))

    def share(self, here: Here) -> torch.Tensor:
        """The weight of each element in a mean."""
        space = self.whole if isinstance(self.whole, Product) else self.whole.space
        return _share(self.count, (*space.shape, *self.event), here)


def collapse(kind: Reduction, whole: Product | ListingBlock, value: Named, options: Options) -> Named:
    """A reduction of elements that are all at hand; differentiable by torch itself."""
    full = whole.full(Named(value.data.to(torch.float64), value.axes))
    elements = AtOnce(whole=whole, full=full, count=_fit(whole.count, value.event), event=value.event)
    return whole.finish(_weighed(kind, elements, options) if kind.kinked else kind.value(elements, options))


def _weighed(kind: Reduction, elements: AtOnce, options: Options) -> torch.Tensor:
    """The elements by their weights, which do not change between the kinks."""
    fixed = replace(elements, full=elements.full.detach())
    slope = kind.slope(fixed, kind.value(fixed, options), options)
    assert slope.weight is not None
    return elements.whole.total(slope.weight(fixed.full, fixed.here) * elements.full)


def _fit(count: torch.Tensor, event: Sequence[int]) -> torch.Tensor:
    """Counts with a dim of length 1 for every event dim."""
    if count.dim():
        return count.reshape(*count.shape, *(1 for _ in event))
    return count


def _share(count: torch.Tensor, shape: Sequence[int], here: Here) -> torch.Tensor:
    """1 over the number of elements, for each element there."""
    if count.dim():
        return here.at(torch.broadcast_to(1 / count, tuple(shape)))
    return 1 / count


# ----------------------------------------------------------------------------------- block by block
Body = Callable[[Block, Sequence[torch.Tensor]], Named]


@dataclass(eq=False, kw_only=True)
class Blocks:
    """Elements met in passes over blocks (see ``library.reductions.Elements``): ``body(block, pieces
    of the leaves)`` gives a block's own."""

    space: Product | Listing
    size: int
    leaves: tuple[Named, ...]
    body: Body
    count: torch.Tensor
    event: tuple[int, ...]
    kept: dict[str, Any] = field(default_factory=dict)
    at: Sequence[torch.Tensor] = ()

    def blocks(self) -> Iterator[tuple[Block, list[Named]]]:
        """Every block with the pieces of the leaves there."""
        named = [Named(data, leaf.axes) for data, leaf in zip(self.at, self.leaves, strict=True)]
        for block in self.space.blocks(self.size):
            yield block, [block.take(leaf) for leaf in named]

    def elements(self) -> Iterator[tuple[Block, torch.Tensor]]:
        """Every block with its elements."""
        for block, pieces in self.blocks():
            yield block, block.full(self.body(block, [piece.data for piece in pieces]))

    def total(self, f: Of | None = None) -> torch.Tensor:
        """The sum of f over the elements, block by block."""
        result = torch.zeros((*self.space.shape, *self.event), dtype=torch.float64)
        for block, full in self.elements():
            block.add(
                result, full.to(torch.float64) if f is None else f(full, Here(at=block.at, part=_unlisted))
            )
        return result

    def top(self, sign: float = 1.0) -> torch.Tensor:
        """The largest of sign times the elements, block by block."""
        result = torch.full((*self.space.shape, *self.event), -torch.inf, dtype=torch.float64)
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
        """The sum of listed values in their cells."""
        entries = int(torch.tensor(self.space.shape).prod())
        return torch.zeros(entries, dtype=torch.float64).index_add(0, entry, values).reshape(self.space.shape)

    def share(self, here: Here) -> torch.Tensor:
        """The weight of each element in a mean."""
        return _share(self.count, (*self.space.shape, *self.event), here)


def _unlisted(listed: torch.Tensor) -> torch.Tensor:
    raise AssertionError("elements are listed once, for the derivative")


@dataclass(eq=False, kw_only=True)
class Streamed(Blocks):
    """One reduction done block by block."""

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
        """The gradient of every wanted leaf: blocks are computed again, one at a time."""
        slope = self._slope(x)
        if slope.over is not None:
            gradient = gradient / slope.over
        totals = [torch.zeros_like(leaf) if want else None for leaf, want in zip(x, wanted, strict=True)]
        for block, inputs, full, first in self._again(wanted):
            if not full.requires_grad:
                continue
            outer = self._weights(slope, block, full.detach(), first) * block.at(gradient)
            varying = [piece for piece in inputs if piece.requires_grad]
            with torch.enable_grad():
                whole = (full * block.only(outer.expand_as(full))).sum()
            gradients = iter(torch.autograd.grad(whole, varying, allow_unused=True))
            for total, leaf, piece in zip(totals, self.leaves, inputs, strict=True):
                if total is not None and (part := next(gradients)) is not None:
                    block.give(Named(total, leaf.axes), part.reshape(piece.shape))
        return totals

    def push(self, x: Sequence[torch.Tensor], along: Sequence[torch.Tensor | None]) -> torch.Tensor:
        """The derivative along directions of the leaves."""
        slope = self._slope(x)
        named = [
            None if way is None else Named(way, leaf.axes)
            for way, leaf in zip(along, self.leaves, strict=True)
        ]
        total = torch.zeros((*self.space.shape, *self.event), dtype=torch.float64)
        for block, inputs, full, first in self._again([way is not None for way in along]):
            ways = [None if way is None else block.take(way).data for way in named]
            with torch.enable_grad():
                moved = directional(full, inputs, ways)
            block.add(total, (self._weights(slope, block, full.detach(), first) * moved).to(torch.float64))
        if slope.over is None:
            return total
        return total / slope.over

    def _slope(self, leaves: Sequence[torch.Tensor]) -> Slope:
        self.at = leaves
        return self.kind.slope(self, self.kept["value"], self.options)

    def _again(self, wanted: Sequence[bool]) -> Iterator[tuple[Block, list[torch.Tensor], torch.Tensor, int]]:
        """Every block with its pieces of the leaves, its elements with their graph, and the number of
        the first of all."""
        first = 0
        for block, pieces in self.blocks():
            inputs = [
                piece.data.detach().requires_grad_(want) for piece, want in zip(pieces, wanted, strict=True)
            ]
            with torch.enable_grad():
                full = block.full(self.body(block, inputs))
            yield block, inputs, full, first
            first += full.numel()

    @staticmethod
    def _weights(slope: Slope, block: Block, e: torch.Tensor, first: int) -> torch.Tensor:
        """The derivative in a block's elements, ``first`` of all being the first of them; the cells'
        own factor apart."""
        if slope.weight is None:
            return torch.ones((), dtype=e.dtype)
        return slope.weight(
            e, Here(at=block.at, part=lambda listed: listed[first : first + e.numel()].reshape(e.shape))
        )


@contextmanager
def one_thread() -> Iterator[None]:
    """Blocks that fit the cache are done by one thread: two cost more than they give, much more on a
    busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class _Blocks(torch.autograd.Function):
    """A streamed reduction as one operation: no graph in the forward pass, blocks computed again in
    the backward pass."""

    @staticmethod
    def forward(ctx: Any, streamed: Streamed, *leaves: torch.Tensor) -> torch.Tensor:
        """The value without a graph; leaves are saved."""
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
    """The value of a reduction done block by block, differentiable in its leaves (see ``pulled``)."""
    return streamed.space.finish(_Blocks.apply(streamed, *(leaf.data for leaf in streamed.leaves)))
