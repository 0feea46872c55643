"""A net's outputs at many rows, in the precision of its flat parameters, in little memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from fccomodel.evaluation.kernels.pulled import directional, pulled

#: Rows that a net sees at once.
ROWS = 4096


def net_apply(module: torch.nn.Module, weights: torch.Tensor, *rows: torch.Tensor) -> torch.Tensor:
    """A net at rows (n, *input) of each of its inputs, (n, *output).

    ``weights`` are its parameters, flat, in the order of ``named_parameters``.
    """
    named = {}
    start = 0
    for name, parameter in module.named_parameters():
        end = start + parameter.numel()
        named[name] = weights[start:end].reshape(parameter.shape)
        start = end
    buffers = {}
    for name, buffer in module.named_buffers():
        buffers[name] = buffer.to(weights.dtype) if buffer.is_floating_point() else buffer
    return torch.func.functional_call(module, {**buffers, **named}, rows)


class NetRows(torch.autograd.Function):
    """A net at many rows: ``size`` at a time, without a graph; computed again for the gradient."""

    @staticmethod
    def forward(
        ctx: Any,
        module: torch.nn.Module,
        size: int,
        known: torch.Tensor | None,
        weights: torch.Tensor,
        *rows: torch.Tensor,
    ) -> torch.Tensor:
        """The outputs of all rows, some rows at a time, unless they are ``known``."""
        ctx.again = _Again(module, size)
        ctx.save_for_backward(weights, *rows)
        if known is not None:
            return known.clone()
        parts = zip(*(one.split(size) for one in rows), strict=True)
        return torch.cat([net_apply(module, weights, *part) for part in parts])

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """The gradients of weights and rows, some rows at a time."""
        return (None, None, None, *pulled(ctx.again, ctx, gradient, first=3))


@dataclass(frozen=True)
class _Again:
    """The derivatives of the outputs in the parameters and in the rows, ``size`` rows at once."""

    module: torch.nn.Module
    size: int

    def pull(
        self, x: Sequence[torch.Tensor], wanted: Sequence[bool], gradient: torch.Tensor
    ) -> list[torch.Tensor | None]:
        """The gradients that an adjoint of the outputs gives."""
        gradients: list[torch.Tensor | None] = []
        for leaf, is_wanted in zip(x, wanted, strict=True):
            gradients.append(torch.zeros_like(leaf) if is_wanted else None)
        of_weights, *of_rows = gradients
        start = 0
        for inputs, value in self._parts(x, wanted):
            piece = slice(start, start + len(value))
            varying = [tensor for tensor in inputs if tensor.requires_grad]
            with torch.enable_grad():  # a number: grad of a vector's product loads all of sympy
                product = (value * gradient[piece]).sum()
            slopes = iter(torch.autograd.grad(product, varying))
            if of_weights is not None:
                of_weights += next(slopes)
            for of_input in of_rows:
                if of_input is not None:
                    of_input[piece].copy_(next(slopes))
            start = piece.stop
        return gradients

    def push(self, x: Sequence[torch.Tensor], along: Sequence[torch.Tensor | None]) -> torch.Tensor:
        """The derivative of the outputs along directions."""
        of_weights, *rows = along
        start, derivatives = 0, []
        for inputs, value in self._parts(x, [direction is not None for direction in along]):
            piece = slice(start, start + len(value))
            of_rows = [None if part is None else part[piece] for part in rows]
            with torch.enable_grad():
                derivatives.append(directional(value, inputs, [of_weights, *of_rows]))
            start = piece.stop
        return torch.cat(derivatives)

    def _parts(
        self, x: Sequence[torch.Tensor], wanted: Sequence[bool]
    ) -> Iterator[tuple[tuple[torch.Tensor, ...], torch.Tensor]]:
        """The parameters with some rows of each input at a time, and the outputs there with their graph."""
        leaf = x[0].detach().requires_grad_(wanted[0])
        blocks = [one.split(self.size) for one in x[1:]]
        for rows in zip(*blocks, strict=True):
            parts = [part.detach() for part in rows]
            for part, want in zip(parts, wanted[1:], strict=True):
                if want:
                    part.requires_grad_()
            with torch.enable_grad():
                value = net_apply(self.module, leaf, *parts)
            yield (leaf, *parts), value
