"""Operations that are computed block by block, with gradients that can be differentiated again.

The gradient J' g of such an operation is computed anew from its inputs, without a graph. It is
linear in g, so its derivative there is the product J v, which is computed in the same way:
directional derivatives by reverse differentiation twice. In the inputs the gradient is not
differentiated: its derivatives there are NaN, never 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch


class TensorFunction(Protocol):
    """A function y of tensors x, not of their graphs."""

    def pull(
        self, x: Sequence[torch.Tensor], wanted: Sequence[bool], gradient: torch.Tensor
    ) -> Sequence[torch.Tensor | None]:
        """``J' gradient`` by input, None where it is not wanted."""

    def push(self, x: Sequence[torch.Tensor], along: Sequence[torch.Tensor | None]) -> torch.Tensor:
        """``J along``; None stands for 0."""


def pulled(
    operation: TensorFunction, ctx: Any, gradient: torch.Tensor, first: int
) -> tuple[torch.Tensor | None, ...]:
    """The gradient in the saved inputs of an ``autograd.Function``, the ``first`` of its arguments
    being others."""
    needs_gradient = ctx.needs_input_grad[first:]
    if gradient.requires_grad and torch.is_grad_enabled():
        return _Pulled.apply(operation, needs_gradient, gradient, *ctx.saved_tensors)
    with torch.no_grad():
        return tuple(operation.pull(ctx.saved_tensors, needs_gradient, gradient))


class _Pulled(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, operation: TensorFunction, wanted: Sequence[bool], gradient: torch.Tensor, *x: torch.Tensor
    ) -> Any:
        """The gradients that the operation pulls back."""
        ctx.operation = operation
        ctx.save_for_backward(*x)
        return tuple(operation.pull(x, wanted, gradient))

    @staticmethod
    def backward(ctx: Any, *along: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        """The derivatives of these gradients."""
        if any(part is not None and torch._C._functorch.is_batchedtensor(part) for part in along):
            raise RuntimeError("one direction at a time")
        x = ctx.saved_tensors
        with torch.no_grad():
            if ctx.needs_input_grad[2]:
                derivative = ctx.operation.push(x, along)
            else:
                derivative = None
        unknown = [
            torch.full_like(part, torch.nan) if is_wanted else None
            for part, is_wanted in zip(x, ctx.needs_input_grad[3:], strict=True)
        ]
        return None, None, derivative, *unknown


def directional(
    value: torch.Tensor, inputs: Sequence[torch.Tensor], along: Sequence[torch.Tensor | None]
) -> torch.Tensor:
    """The derivative of a value with a graph along directions of its inputs; None stands for 0."""
    outer = torch.zeros_like(value, requires_grad=True)
    pairs = zip(inputs, along, strict=True)
    varying = [(x, way) for x, way in pairs if x.requires_grad and way is not None]
    if not varying or not value.requires_grad:
        return torch.zeros_like(value)
    with torch.enable_grad():
        whole = (value * outer).sum()
    slopes = torch.autograd.grad(whole, [x for x, _ in varying], create_graph=True, allow_unused=True)
    used = [
        (g, way) for g, (_, way) in zip(slopes, varying, strict=True) if g is not None and g.requires_grad
    ]
    if not used:
        return torch.zeros_like(value)
    products = [(g * way).sum() for g, way in used]
    total = torch.stack(products).sum()
    (derivative,) = torch.autograd.grad(total, outer, allow_unused=True)
    if derivative is None:
        return torch.zeros_like(value)
    return derivative.detach()
