"""Vector-Jacobian products for many vectors in one sweep."""

from __future__ import annotations

from collections.abc import Sequence

import torch


def pulled(
    values: Sequence[torch.Tensor], leaves: Sequence[torch.Tensor], vectors: Sequence[torch.Tensor]
) -> tuple[torch.Tensor | None, ...]:
    """For each leaf (vectors, *leaf), the sum over values of v'd value / d leaf for every v along the first dim of ``vectors``;
    None where there is none. The graph is kept.

    ``torch.autograd.grad`` gives the same, but compares shapes by a module that loads sympy first, half a second of a process.
    Raises RuntimeError for operations that are not done for many at once.
    """
    try:
        from torch._vmap_internals import _vmap
        from torch.autograd.graph import _engine_run_backward
    except ImportError:  # another version of torch
        return torch.autograd.grad(values, leaves, vectors, retain_graph=True, allow_unused=True, is_grads_batched=True)

    def one(parts: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor | None, ...]:
        return _engine_run_backward(tuple(values), parts, True, False, tuple(leaves), True, accumulate_grad=False)

    return tuple(_vmap(one, 0, 0, allow_none_pass_through=True)(tuple(vectors)))
