"""Means over slices of a full pass, value and gradient in one sweep. The emitter copies it."""

from __future__ import annotations

import torch


class Sweep(torch.autograd.Function):
    """The sum of numbers over slices as one operation, whose gradient is known once its value is: one
    slice at a time is held."""

    @staticmethod
    def forward(ctx, over, parts, *inputs):
        """The sum over the parts; its gradients are computed on the way."""
        held = [
            x.detach().requires_grad_(wanted)
            for x, wanted in zip(inputs, ctx.needs_input_grad[2:], strict=True)
        ]
        varying = [x for x in held if x.requires_grad]
        total, gradients = inputs[0].new_zeros(()), [torch.zeros_like(x) for x in varying]
        for part in parts:
            with torch.enable_grad():
                value = over(part, *held).sum()
            total += value.detach()
            if value.requires_grad:
                found = torch.autograd.grad(value, varying, allow_unused=True)
                for gradient, more in zip(gradients, found, strict=True):
                    if more is not None:
                        gradient += more
        ctx.save_for_backward(*gradients)
        return total

    @staticmethod
    def backward(ctx, adjoint):
        """The adjoint times the gradients computed before."""
        gradients = iter(ctx.saved_tensors)
        return (
            None,
            None,
            *(adjoint * next(gradients) if wanted else None for wanted in ctx.needs_input_grad[2:]),
        )


def swept(over, parts, *inputs):
    """The sum of the numbers that ``over(part, *inputs)`` gives, over all parts; where it is
    differentiated by the inputs, value and gradient in one sweep."""
    if torch.is_grad_enabled() and any(x.requires_grad for x in inputs):
        return Sweep.apply(over, parts, *inputs)
    return sum(over(part, *inputs).sum() for part in parts)
