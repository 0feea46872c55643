"""``X w`` for many rows of data: its gradient reads only the rows that have one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch

#: Rows from which on a sparse gradient is looked for.
ROWS = 1 << 13


class Scores(torch.autograd.Function):
    """(n, d) data times (d,) variables; the gradient ``X' g`` skips the rows where g is 0 (one group's
    loss, say)."""

    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(rows)
        return rows @ weights

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[None, torch.Tensor]:
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


class Company(Protocol):
    """Others that take a share of the rows: ``has`` says of which rows, columns of a table as they are."""

    def has(self, rows: torch.Tensor) -> bool: ...

    def products(self, rows: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """``rows @ weights``."""

    def sums(self, weights: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """``weights @ rows``."""


_company: list[Company] = []


@contextmanager
def in_company(of: Company) -> Iterator[None]:
    """Products of rows that others have too are made together with them."""
    _company.append(of)
    try:
        yield
    finally:
        _company.remove(of)


class Shared(torch.autograd.Function):
    """``Scores``, and again its derivative, made by several."""

    @staticmethod
    def forward(ctx: Any, company: Company, rows: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        ctx.company, ctx.rows = company, rows
        return company.products(rows, weights.detach())

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[None, None, torch.Tensor]:
        alone = torch._C._functorch.is_batchedtensor(gradient)
        return None, None, gradient @ ctx.rows if alone else SharedSums.apply(ctx.company, gradient, ctx.rows)


class SharedSums(torch.autograd.Function):
    """The derivative of ``Shared``, linear in what it is given."""

    @staticmethod
    def forward(ctx: Any, company: Company, gradient: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        ctx.company, ctx.rows = company, rows
        return company.sums(gradient.detach(), rows)

    @staticmethod
    def backward(ctx: Any, slope: torch.Tensor) -> tuple[None, torch.Tensor, None]:
        alone = torch._C._functorch.is_batchedtensor(slope)
        return None, slope @ ctx.rows.mT if alone else Shared.apply(ctx.company, ctx.rows, slope), None


def product(rows: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """``rows @ weights``."""
    if _company and weights.dim() == 1 and not rows.requires_grad and _company[-1].has(rows):
        return Shared.apply(_company[-1], rows, weights)
    if (
        rows.dim() == 2
        and weights.dim() == 1
        and len(rows) >= ROWS
        and weights.requires_grad
        and not rows.requires_grad
    ):
        return Scores.apply(rows, weights)
    return rows @ weights
