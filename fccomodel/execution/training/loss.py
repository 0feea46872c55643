"""The loss of a batch: a scalar with a known value and known derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from fccomodel.core.diagnostics import refuse
from fccomodel.core.source import Source
from fccomodel.execution.training.errors import criterion as errors


def loss_of(
    value: torch.Tensor,
    inputs: Sequence[torch.Tensor],
    adjoints: Sequence[torch.Tensor],
    source: Source,
) -> torch.Tensor:
    """A scalar with this value, whose derivative by each input is the adjoint at its place.

    The adjoints are numbers: F0826 is raised if the loss is differentiated twice.
    """
    loss: torch.Tensor = _Loss.apply(value, tuple(adjoints), source, *inputs)
    return loss


class _Loss(torch.autograd.Function):
    """The node of a loss."""

    @staticmethod
    def forward(
        ctx: Any,
        value: torch.Tensor,
        adjoints: tuple[torch.Tensor, ...],
        source: Source,
        *inputs: torch.Tensor,
    ) -> torch.Tensor:
        """The value; the adjoints are kept, and the type of each input's gradient."""
        ctx.adjoints, ctx.source = adjoints, source
        ctx.types = [tensor.dtype for tensor in inputs]
        return value.clone()

    @staticmethod
    def backward(ctx: Any, outer: torch.Tensor) -> Any:
        """The adjoints times the derivative of what the loss is part of."""
        wanted = ctx.needs_input_grad[3:]
        gradients: list[torch.Tensor | None] = []
        for adjoint, kind, asked in zip(ctx.adjoints, ctx.types, wanted, strict=True):
            gradient = None
            if asked:
                gradient = (adjoint * outer).to(kind)
            gradients.append(gradient)
        if torch.is_grad_enabled():
            gradients = [None if g is None else _once(g, ctx.source) for g in gradients]
        return None, None, None, *gradients


def _once(gradient: torch.Tensor, source: Source) -> torch.Tensor:
    """The gradient, which raises F0826 if it is differentiated in turn."""
    once: torch.Tensor = _Once.apply(gradient.detach().requires_grad_(), source)
    return once


class _Once(torch.autograd.Function):
    """The identity, without a derivative."""

    @staticmethod
    def forward(ctx: Any, gradient: torch.Tensor, source: Source) -> torch.Tensor:
        """The gradient as it is; the text of the model is kept, for the error."""
        ctx.source = source
        return gradient.clone()

    @staticmethod
    def backward(ctx: Any, outer: torch.Tensor) -> Any:
        """Raises F0826."""
        refuse(errors.criterion_second_derivative(), source=ctx.source)
