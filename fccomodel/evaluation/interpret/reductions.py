"""What a reduction makes of its elements: at once, or in one pass or two over blocks.

Every combination of the binders' elements that satisfies the condition counts alike. What the value is, and its derivative in
each element, is the kind's own (``fccomodel.library.reductions``); here is where its elements come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from fccomodel.evaluation.axes import Named
from fccomodel.evaluation.interpret.spaces import Listing, ListingBlock, Product, ProductBlock, cells
from fccomodel.library.reductions import Here, Reduction, Slope

Options = Mapping[str, float]
Block = ProductBlock | ListingBlock
Of = Callable[[torch.Tensor, Here], torch.Tensor]


# ------------------------------------------------------------------------------------------------------------------ at once
@dataclass(eq=False, kw_only=True)
class AtOnce:
    """Elements that are all at hand (see ``library.reductions.Elements``): ``full`` has a dim for every axis of the space."""

    whole: Product | ListingBlock
    full: torch.Tensor
    count: torch.Tensor
    event: tuple[int, ...]
    kept: dict[str, Any] = field(default_factory=dict)

    @property
    def here(self) -> Here:
        return Here(at=self.whole.at, part=lambda listed: listed.reshape(self.full.shape))

    def total(self, f: Of | None = None) -> torch.Tensor:
        return self.whole.total(self.full if f is None else f(self.full, self.here))

    def top(self, sign: float = 1.0) -> torch.Tensor:
        return self.whole.top(sign * self.full.detach())

    def listed(self) -> tuple[torch.Tensor, torch.Tensor]:
        return self.full.detach().reshape(-1), cells(self.whole, self.full)

    def gathered(self, values: torch.Tensor, entry: torch.Tensor) -> torch.Tensor:
        return self.whole.total(values.reshape(self.full.shape))

    def share(self, here: Here) -> torch.Tensor:
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
    return count.reshape(*count.shape, *(1 for _ in event)) if count.dim() else count


def _share(count: torch.Tensor, shape: Sequence[int], here: Here) -> torch.Tensor:
    """1 over the number of elements, for each element there."""
    return here.at(torch.broadcast_to(1 / count, tuple(shape))) if count.dim() else 1 / count


# ----------------------------------------------------------------------------------------------------------- block by block
Body = Callable[[Block, Sequence[torch.Tensor]], Named]


@dataclass(eq=False, kw_only=True)
class Blocks:
    """Elements met in passes over blocks (see ``library.reductions.Elements``): ``body(block, pieces of the leaves)`` gives a
    block's own."""

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
        result = torch.zeros((*self.space.shape, *self.event), dtype=torch.float64)
        for block, full in self.elements():
            block.add(result, full.to(torch.float64) if f is None else f(full, Here(at=block.at, part=_unlisted)))
        return result

    def top(self, sign: float = 1.0) -> torch.Tensor:
        result = torch.full((*self.space.shape, *self.event), -torch.inf, dtype=torch.float64)
        for block, full in self.elements():
            block.raise_to(result, sign * full)
        return result

    def listed(self) -> tuple[torch.Tensor, torch.Tensor]:
        parts, places = [], []
        for block, full in self.elements():
            parts.append(full.reshape(-1).clone())
            places.append(cells(block, full))
        return torch.cat(parts), torch.cat(places)

    def gathered(self, values: torch.Tensor, entry: torch.Tensor) -> torch.Tensor:
        entries = int(torch.tensor(self.space.shape).prod())
        return torch.zeros(entries, dtype=torch.float64).index_add(0, entry, values).reshape(self.space.shape)

    def share(self, here: Here) -> torch.Tensor:
        return _share(self.count, (*self.space.shape, *self.event), here)


def _unlisted(listed: torch.Tensor) -> torch.Tensor:
    raise AssertionError("elements are listed once, for the derivative")


@dataclass(eq=False, kw_only=True)
class Streamed(Blocks):
    """One reduction done block by block."""

    kind: Reduction
    options: Options = field(default_factory=dict)

    def forward(self, leaves: Sequence[torch.Tensor]) -> torch.Tensor:
        self.at, self.count = leaves, _fit(self.count, self.event)
        self.kept["value"] = self.kind.value(self, self.options)
        return self.kept["value"].clone()

    def backward(
        self, leaves: Sequence[torch.Tensor], wanted: Sequence[bool], gradient: torch.Tensor
    ) -> list[torch.Tensor | None]:
        """The gradient of every wanted leaf: blocks are computed again, one at a time."""
        self.at = leaves
        slope = self.kind.slope(self, self.kept["value"], self.options)
        if slope.over is not None:
            gradient = gradient / slope.over
        totals = [torch.zeros_like(leaf) if want else None for leaf, want in zip(leaves, wanted, strict=True)]
        first = 0
        for block, pieces in self.blocks():
            inputs = [piece.data.detach().requires_grad_(want) for piece, want in zip(pieces, wanted, strict=True)]
            with torch.enable_grad():
                full = block.full(self.body(block, inputs))
            first, start = first + full.numel(), first
            if not full.requires_grad:
                continue
            outer = self._pulled(slope, gradient, block, full.detach(), start)
            varying = [piece for piece in inputs if piece.requires_grad]
            with torch.enable_grad():
                whole = (full * outer).sum()
            gradients = iter(torch.autograd.grad(whole, varying, allow_unused=True))
            for total, leaf, piece in zip(totals, self.leaves, inputs, strict=True):
                if total is not None and (part := next(gradients)) is not None:
                    block.give(Named(total, leaf.axes), part.reshape(piece.shape))
        return totals

    @staticmethod
    def _pulled(slope: Slope, gradient: torch.Tensor, block: Block, e: torch.Tensor, first: int) -> torch.Tensor:
        """The gradient of a block's elements, ``first`` of all being the first of them."""
        outer = block.at(gradient)
        if slope.weight is None:
            return block.only(outer.expand_as(e))
        part = Here(at=block.at, part=lambda listed: listed[first : first + e.numel()].reshape(e.shape))
        return block.only(outer * slope.weight(e, part))


@contextmanager
def one_thread() -> Iterator[None]:
    """Blocks that fit the cache are done by one thread: two cost more than they give, much more on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class _Blocks(torch.autograd.Function):
    """A streamed reduction as one operation: no graph in the forward pass, blocks computed again in the backward pass."""

    @staticmethod
    def forward(ctx: Any, streamed: Streamed, *leaves: torch.Tensor) -> torch.Tensor:
        ctx.streamed = streamed
        ctx.save_for_backward(*leaves)
        with one_thread():
            return streamed.forward(leaves)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        with one_thread():
            return (None, *ctx.streamed.backward(ctx.saved_tensors, ctx.needs_input_grad[1:], gradient))


def stream(streamed: Streamed) -> Named:
    """The value of a reduction done block by block, differentiable in its leaves (once)."""
    return streamed.space.finish(_Blocks.apply(streamed, *(leaf.data for leaf in streamed.leaves)))
