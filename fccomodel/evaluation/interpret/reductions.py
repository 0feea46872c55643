"""What a reduction makes of its elements: mean, max, cvar, ...; at once, or in one pass or two over blocks.

With e the elements and n their number (every combination of the binders' elements that satisfies the condition counts alike):
``mean``, ``E`` and ``prob``: sum e / n;  ``variance``: mean of (e - mean)^2;  ``logmeanexp``: theta log mean exp(e / theta);
``logsumexp``: log sum exp(e);
``pmean``: (mean e^p)^(1/p);  ``cvar``: the mean of the worst fraction ``tail``, the boundary element counted in part;
``topk``: the mean of the k largest (of all, where there are fewer).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from fccomodel.evaluation.axes import Named
from fccomodel.evaluation.interpret.spaces import Listing, ListingBlock, Product, ProductBlock, cells

Options = Mapping[str, float]
Block = ProductBlock | ListingBlock
MEANS = frozenset({"E", "mean", "prob"})
#: kinds with a value where there is no element
TOTAL = frozenset({"sum", "prod", "logsumexp"})
#: the largest of logarithms that are all -inf, so that differences to it are numbers
LEAST = -1e300


# ------------------------------------------------------------------------------------------------------------------ at once
def collapse(kind: str, whole: Product | ListingBlock, value: Named, options: Options) -> Named:
    """A reduction of elements that are all at hand; differentiable by torch itself."""
    full = whole.full(Named(value.data.to(torch.float64), value.axes))
    count = _fit(whole.count, full, value)
    if kind == "sum":
        result = whole.total(full)
    elif kind in MEANS:
        result = whole.total(full) / count
    elif kind == "variance":
        mean = whole.total(full) / count
        result = whole.total((full - whole.at(mean)).square()) / count
    elif kind in ("max", "min"):
        sign = 1.0 if kind == "max" else -1.0
        hit = (full.detach() == whole.at(sign * whole.top(sign * full.detach()))).to(full.dtype)
        result = whole.total(hit / whole.at(whole.total(hit)) * full)
    elif kind == "logmeanexp":
        theta = options["theta"]
        top = whole.top(full.detach()).clamp(min=LEAST)
        result = top + theta * (whole.total(((full - whole.at(top)) / theta).exp()) / count).log()
    elif kind == "logsumexp":
        top = whole.top(full.detach()).clamp(min=LEAST)
        result = top + whole.total((full - whole.at(top)).exp()).log()
    elif kind == "pmean":
        result = (whole.total(full ** options["p"]) / count) ** (1 / options["p"])
    elif kind == "prod":
        result = _product(whole, full)
    else:
        cell = cells(whole, full)
        weight = tail_weights(kind, full.detach().reshape(-1), cell, options).reshape(full.shape)
        result = whole.total(weight * full)
    return whole.finish(result)


def _fit(count: torch.Tensor, full: torch.Tensor, value: Named) -> torch.Tensor:
    """Counts with a dim of length 1 for every event dim."""
    return count.reshape(*count.shape, *(1 for _ in value.event)) if count.dim() else count


def _product(whole: Product | ListingBlock, full: torch.Tensor) -> torch.Tensor:
    """Products whose derivative holds at zeros too: e times the product of the others, from sums of logarithms."""
    zero = full.detach() == 0
    safe = torch.where(zero, torch.ones_like(full), full)
    rest = whole.total(safe.abs().log()).exp() * _signs(whole.total((safe.detach() < 0).to(full.dtype)))
    zeros = whole.total(zero.to(full.dtype))
    single = whole.total(torch.where(zero, full, torch.zeros_like(full)))  # the only zero factor, as a function
    return torch.where(zeros == 0, rest, torch.where(zeros == 1, rest.detach() * single, torch.zeros_like(rest)))


def _signs(negatives: torch.Tensor) -> torch.Tensor:
    return 1 - 2 * (negatives % 2)


def tail_weights(kind: str, elements: torch.Tensor, cell: torch.Tensor, options: Options) -> torch.Tensor:
    """q with q . e = cvar or topk in every cell: 1 / (tail n) or 1 / k for the largest until they sum to 1."""
    size = torch.bincount(cell)
    order = elements.argsort(descending=True, stable=True)
    order = order[cell[order].argsort(stable=True)]
    first = size.cumsum(0) - size
    rank = torch.arange(len(elements), dtype=elements.dtype) - first[cell[order]]
    count = size[cell[order]].to(elements.dtype)
    cap = 1 / (options["tail"] * count) if kind == "cvar" else 1 / count.clamp(max=options["k"])
    weights = torch.empty_like(elements)
    weights[order] = torch.minimum((1 - cap * rank).clamp(min=0), cap)
    return weights


# ----------------------------------------------------------------------------------------------------------- block by block
Body = Callable[[Block, Sequence[torch.Tensor]], Named]


@dataclass(eq=False, kw_only=True)
class Plan:
    """One reduction done block by block: ``body(block, pieces of the leaves)`` gives a block's elements."""

    kind: str
    space: Product | Listing
    size: int
    leaves: tuple[Named, ...]
    body: Body
    count: torch.Tensor
    event: tuple[int, ...]
    options: Options = field(default_factory=dict)
    kept: dict[str, Any] = field(default_factory=dict)

    # ---------------------------------------------------------------------------------------------------------- forward
    def forward(self, leaves: Sequence[torch.Tensor]) -> torch.Tensor:
        kept, options = self.kept, self.options
        count = self.count.reshape(*self.count.shape, *(1 for _ in self.event)) if self.count.dim() else self.count
        kept["count"] = count
        if self.kind == "sum":
            return self.total(leaves)
        if self.kind in MEANS:
            return self.total(leaves) / count
        if self.kind == "variance":
            kept["mean"] = self.total(leaves) / count
            return self.total(leaves, lambda e, at: (e - at(kept["mean"])).square()) / count
        if self.kind in ("max", "min"):
            sign = 1.0 if self.kind == "max" else -1.0
            kept["top"] = sign * self.top(leaves, sign)
            return kept["top"].clone()
        if self.kind == "logmeanexp":
            theta, top = options["theta"], self.top(leaves, 1.0).clamp(min=LEAST)
            total = self.total(leaves, lambda e, at: ((e - at(top)) / theta).exp())
            kept["y"] = top + theta * (total / count).log()
            return kept["y"].clone()
        if self.kind == "logsumexp":
            top = self.top(leaves, 1.0).clamp(min=LEAST)
            kept["y"] = top + self.total(leaves, lambda e, at: (e - at(top)).exp()).log()
            return kept["y"].clone()
        if self.kind == "pmean":
            kept["y"] = (self.total(leaves, lambda e, at: e ** options["p"]) / count) ** (1 / options["p"])
            return kept["y"].clone()
        if self.kind == "prod":
            kept["zeros"] = self.total(leaves, lambda e, at: (e == 0).to(e.dtype))
            negative = self.total(leaves, lambda e, at: (e < 0).to(e.dtype))
            logs = self.total(leaves, lambda e, at: torch.where(e == 0, torch.ones_like(e), e).abs().log())
            kept["rest"] = logs.exp() * _signs(negative)
            return torch.where(kept["zeros"] == 0, kept["rest"], torch.zeros_like(kept["rest"]))
        return self.tail(leaves)

    def blocks(self, leaves: Sequence[torch.Tensor]):
        named = [Named(data, leaf.axes) for data, leaf in zip(leaves, self.leaves, strict=True)]
        for block in self.space.blocks(self.size):
            yield block, [block.take(leaf) for leaf in named]

    def elements(self, leaves: Sequence[torch.Tensor]):
        """Every block with its elements."""
        for block, pieces in self.blocks(leaves):
            yield block, block.full(self.body(block, [piece.data for piece in pieces]))

    def total(self, leaves: Sequence[torch.Tensor], f: Callable[..., torch.Tensor] | None = None) -> torch.Tensor:
        result = torch.zeros((*self.space.shape, *self.event), dtype=torch.float64)
        for block, full in self.elements(leaves):
            block.add(result, full.to(torch.float64) if f is None else f(full, block.at))
        return result

    def top(self, leaves: Sequence[torch.Tensor], sign: float) -> torch.Tensor:
        result = torch.full((*self.space.shape, *self.event), -torch.inf, dtype=torch.float64)
        for block, full in self.elements(leaves):
            block.raise_to(result, sign * full)
        return result

    def tail(self, leaves: Sequence[torch.Tensor]) -> torch.Tensor:
        """cvar and topk: all elements are kept, since their order decides."""
        parts, places = [], []
        for block, full in self.elements(leaves):
            parts.append(full.reshape(-1).clone())
            places.append(cells(block, full))
        elements, cell = torch.cat(parts), torch.cat(places)
        weights = tail_weights(self.kind, elements, cell, self.options)
        self.kept["weights"] = weights.split([len(part) for part in parts])
        entries = int(torch.tensor(self.space.shape).prod())
        return torch.zeros(entries, dtype=torch.float64).index_add(0, cell, weights * elements).reshape(self.space.shape)

    # --------------------------------------------------------------------------------------------------------- backward
    def backward(
        self, leaves: Sequence[torch.Tensor], wanted: Sequence[bool], gradient: torch.Tensor
    ) -> list[torch.Tensor | None]:
        """The gradient of every wanted leaf: blocks are computed again, one at a time."""
        if self.kind in ("max", "min"):
            top = self.kept["top"]
            self.kept["ties"] = self.total(leaves, lambda e, at: (e == at(top)).to(e.dtype))
        if self.kind in MEANS:
            gradient = gradient / self.kept["count"]
        totals = [torch.zeros_like(leaf) if want else None for leaf, want in zip(leaves, wanted, strict=True)]
        for number, (block, pieces) in enumerate(self.blocks(leaves)):
            inputs = [piece.data.detach().requires_grad_(want) for piece, want in zip(pieces, wanted, strict=True)]
            with torch.enable_grad():
                full = block.full(self.body(block, inputs))
            if not full.requires_grad:
                continue
            weight = self.weight(block, full.detach(), number)
            outer = block.at(gradient).expand_as(full) if weight is None else block.at(gradient) * weight
            own = [piece for piece in inputs if piece.requires_grad]
            found = iter(torch.autograd.grad(full, own, outer, allow_unused=True))
            for total, leaf, piece in zip(totals, self.leaves, inputs, strict=True):
                if total is not None and (part := next(found)) is not None:
                    block.give(Named(total, leaf.axes), part.reshape(piece.shape))
        return totals

    def weight(self, block: Block, e: torch.Tensor, number: int) -> torch.Tensor | None:
        """The derivative of the result in each element; None for 1 (a mean has divided its gradient already)."""
        if self.kind == "sum" or self.kind in MEANS:
            return None
        kept, options, at = self.kept, self.options, block.at
        count = kept["count"]
        share = 1 / count if not count.dim() else at(torch.broadcast_to(1 / count, (*self.space.shape, *self.event)))
        if self.kind == "variance":
            return 2 * share * (e - at(kept["mean"]))
        if self.kind in ("max", "min"):
            return (e == at(kept["top"])).to(e.dtype) / at(kept["ties"])
        if self.kind == "logmeanexp":
            return share * ((e - at(kept["y"])) / options["theta"]).exp()
        if self.kind == "logsumexp":
            return (e - at(kept["y"])).exp()
        if self.kind == "pmean":
            y = at(kept["y"])
            return share * torch.where(y == 0, torch.zeros_like(y), y ** (1 - options["p"])) * e ** (options["p"] - 1)
        if self.kind == "prod":
            zero = e == 0
            others = at(kept["rest"]) / torch.where(zero, torch.ones_like(e), e)
            alone = at((kept["zeros"] == 1).to(e.dtype)) * zero + at((kept["zeros"] == 0).to(e.dtype)) * ~zero
            return others * alone
        return kept["weights"][number].reshape(e.shape)


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
    """A plan as one operation: no graph in the forward pass, blocks computed again in the backward pass."""

    @staticmethod
    def forward(ctx: Any, plan: Plan, *leaves: torch.Tensor) -> torch.Tensor:
        ctx.plan = plan
        ctx.save_for_backward(*leaves)
        with one_thread():
            return plan.forward(leaves)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        with one_thread():
            return (None, *ctx.plan.backward(ctx.saved_tensors, ctx.needs_input_grad[1:], gradient))


def stream(plan: Plan) -> Named:
    """The value of a plan, differentiable in its leaves (once)."""
    return plan.space.finish(_Blocks.apply(plan, *(leaf.data for leaf in plan.leaves)))
