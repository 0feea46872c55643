"""``X w`` for many rows of data: its gradient reads only the rows that have one."""

from __future__ import annotations

from typing import Any

import torch

#: Rows from which on a sparse gradient is looked for.
ROWS = 1 << 13


class RowScores(torch.autograd.Function):
    """(n, d) data times (d,) variables; the gradient ``X' g`` skips the rows where g is 0 (one group's
    loss, say)."""

    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """The products of the rows with the weights."""
        ctx.save_for_backward(rows)
        return rows @ weights

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[None, torch.Tensor]:
        """The weighted sum of the rows; rows are constant."""
        (rows,) = ctx.saved_tensors
        if gradient.requires_grad:  # it is differentiated again
            return None, gradient @ rows
        if torch._C._functorch.is_legacy_batchedtensor(
            gradient
        ):  # many at once: one product of matrices, not one of each
            return None, torch.mm(gradient.unsqueeze(0), rows).squeeze(0)
        used = gradient.nonzero().squeeze(-1)
        if len(used) * 8 < len(gradient):
            return None, gradient[used] @ rows[used]
        return None, gradient @ rows


def product(rows: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """``rows @ weights``."""
    if (
        rows.dim() == 2
        and weights.dim() == 1
        and len(rows) >= ROWS
        and weights.requires_grad
        and not rows.requires_grad
    ):
        return RowScores.apply(rows, weights)
    return rows @ weights
