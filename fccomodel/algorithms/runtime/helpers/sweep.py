"""Passes over all rows in slices, with one slice in memory at a time. The emitter copies it."""

from __future__ import annotations

import torch


class Sweep(torch.autograd.Function):
    """The sum of numbers over slices as one operation of autograd. It computes its gradient together with
    its value, so that one slice at a time is in memory.
    """

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
    """The sum of the numbers ``over(part, *inputs)`` over all parts. If it is differentiated with respect
    to the inputs, one sweep computes value and gradient.
    """
    if torch.is_grad_enabled() and any(x.requires_grad for x in inputs):
        return Sweep.apply(over, parts, *inputs)
    return sum(over(part, *inputs).sum() for part in parts)


def held_apart(inputs, wanted):
    """Copies of the inputs for derivatives, and those copies that are ``wanted``."""
    copies = [x.detach().requires_grad_(asked) for x, asked in zip(inputs, wanted, strict=True)]
    return copies, [x for x in copies if x.requires_grad]


def slice_values(over, parts, dim, held, along):
    """The values of each slice with their graph, and the entries of ``along`` at their places."""
    start = 0
    for part in parts:
        with torch.enable_grad():
            value = over(part, *held)
        yield value, along.narrow(dim, start, value.shape[dim])
        start += value.shape[dim]


class Slices(torch.autograd.Function):
    """The values of slices one after another along a dim. The gradient computes each slice again.

    It has derivatives of first order, and products of these with vectors.
    """

    @staticmethod
    def forward(ctx, over, parts, dim, *inputs):
        """The values of all slices."""
        ctx.over, ctx.parts, ctx.dim = over, parts, dim
        ctx.save_for_backward(*inputs)
        return torch.cat([over(part, *inputs) for part in parts], dim)

    @staticmethod
    def backward(ctx, adjoint):
        """The adjoint times the derivatives of all slices."""
        over, parts, dim, wanted = ctx.over, ctx.parts, ctx.dim, ctx.needs_input_grad[3:]
        if torch.is_grad_enabled():
            gradients = SlicesPulled.apply(over, parts, dim, wanted, adjoint, *ctx.saved_tensors)
        else:
            gradients = pulled_through(over, parts, dim, wanted, adjoint, ctx.saved_tensors)
        found = iter(gradients)
        return None, None, None, *(next(found) if asked else None for asked in wanted)


def pulled_back(value, varying, adjoint):
    """The adjoint times the derivatives of a value by some inputs, None by those that it does not use.

    ``grad(value, varying, adjoint)`` would load sympy, which takes a third of a second.
    """
    with torch.enable_grad():
        total = (value * adjoint).sum()
    try:
        return torch.autograd.grad(total, varying, allow_unused=True)
    except RuntimeError:  # many adjoints at once, by vmap
        return torch.autograd.grad(value, varying, adjoint, allow_unused=True)


def pulled_through(over, parts, dim, wanted, adjoint, inputs):
    """The adjoint of all slices times their derivatives, for each input that is ``wanted``."""
    held, varying = held_apart(inputs, wanted)
    gradients = [torch.zeros_like(x) for x in varying]
    for value, piece in slice_values(over, parts, dim, held, adjoint):
        if value.requires_grad:
            found = pulled_back(value, varying, piece)
            pairs = zip(gradients, found, strict=True)
            gradients = [total if more is None else total + more for total, more in pairs]
    return tuple(gradients)


class SlicesPulled(torch.autograd.Function):
    """``pulled_through`` as an operation of autograd. It is linear in the adjoint; its derivative is the
    product of the slices' derivatives with a vector.
    """

    @staticmethod
    def forward(ctx, over, parts, dim, wanted, adjoint, *inputs):
        """The gradients by the wanted inputs."""
        ctx.over, ctx.parts, ctx.dim, ctx.wanted = over, parts, dim, wanted
        ctx.save_for_backward(adjoint, *inputs)
        return pulled_through(over, parts, dim, wanted, adjoint, inputs)

    @staticmethod
    def backward(ctx, *ways):
        """The derivatives of all slices along the ``ways`` of the inputs."""
        adjoint, *inputs = ctx.saved_tensors
        held, varying = held_apart(inputs, ctx.wanted)
        along = []
        for value, piece in slice_values(ctx.over, ctx.parts, ctx.dim, held, adjoint):
            moved = torch.zeros_like(value)
            if value.requires_grad:
                weights = torch.zeros_like(piece).requires_grad_()
                with torch.enable_grad():
                    total = (value * weights).sum()
                    back = torch.autograd.grad(total, varying, create_graph=True, allow_unused=True)
                    pairs = [(g, way) for g, way in zip(back, ways, strict=True) if g is not None]
                    product = sum((g * way).sum() for g, way in pairs)
                moved = torch.autograd.grad(product, weights)[0]
            along.append(moved.detach())
        return None, None, None, None, torch.cat(along, ctx.dim), *(None for _ in inputs)


def sliced(over, parts, dim, *inputs):
    """The values ``over(part, *inputs)`` of all parts, one after another along a dim. If they are
    differentiated, the graph of one part at a time is in memory.
    """
    if torch.is_grad_enabled() and any(x.requires_grad for x in inputs):
        return Slices.apply(over, parts, dim, *inputs)
    return torch.cat([over(part, *inputs) for part in parts], dim)
