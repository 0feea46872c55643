"""A net's outputs at many rows, in the precision of its flat parameters, in little memory."""

from __future__ import annotations

from typing import Any

import torch

#: Rows that a net sees at once.
ROWS = 4096


def net_apply(module: torch.nn.Module, weights: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """A net at rows (n, *input), (n, *output); ``weights`` are its parameters, flat, in the order of ``named_parameters``."""
    named, start = {}, 0
    for name, parameter in module.named_parameters():
        named[name] = weights[start : start + parameter.numel()].reshape(parameter.shape)
        start += parameter.numel()
    buffers = {n: b.to(weights.dtype) if b.is_floating_point() else b for n, b in module.named_buffers()}
    return torch.func.functional_call(module, {**buffers, **named}, (rows,))


class NetRows(torch.autograd.Function):
    """A net at many rows: some at a time, without a graph; computed again for the gradient."""

    @staticmethod
    def forward(ctx: Any, module: torch.nn.Module, weights: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        ctx.module = module
        ctx.save_for_backward(weights, rows)
        return torch.cat([net_apply(module, weights, part) for part in rows.split(ROWS)])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[None, torch.Tensor, torch.Tensor | None]:
        weights, rows = ctx.saved_tensors
        leaf = weights.detach().requires_grad_(True)
        total = torch.zeros_like(weights)
        parts: list[torch.Tensor] = []
        for part, outer in zip(rows.split(ROWS), gradient.split(ROWS), strict=True):
            part = part.detach().requires_grad_(ctx.needs_input_grad[2])
            with torch.enable_grad():
                value = (net_apply(ctx.module, leaf, part) * outer).sum()
            gradients = torch.autograd.grad(value, [leaf, part] if part.requires_grad else [leaf])
            total += gradients[0]
            parts += gradients[1:]
        return None, total, torch.cat(parts) if parts else None
