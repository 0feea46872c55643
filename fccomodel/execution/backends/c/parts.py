"""Operations without a loop of their own, written with operations that have one.

The formulas that steps need are here; torch has the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import torch

aten = torch.ops.aten


def stacked(arrays: list[torch.Tensor], dim: int = 0) -> torch.Tensor:
    """The arrays side by side along a new dim."""
    return torch.cat([x.unsqueeze(dim) for x in arrays], dim)


def softmax(x: torch.Tensor, dim: int, _: bool) -> torch.Tensor:
    """exp(x) divided by its sum."""
    raised = (x - x.amax(dim, keepdim=True)).exp()
    return raised / raised.sum(dim, keepdim=True)


def log_softmax(x: torch.Tensor, dim: int, _: bool) -> torch.Tensor:
    """The logarithm of ``softmax``."""
    below = x - x.amax(dim, keepdim=True)
    return below - below.exp().sum(dim, keepdim=True).log()


def logaddexp(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """log(e^x + e^y); an infinity if both are the same one."""
    top, low = torch.maximum(x, y), torch.minimum(x, y)
    both_infinite = (top == low) & (top.abs() == math.inf)
    return torch.where(both_infinite, top, top + (low - top).exp().log1p())


def index_add(
    x: torch.Tensor, dim: int, index: torch.Tensor, y: torch.Tensor, alpha: float = 1
) -> torch.Tensor:
    """Add rows of y to the rows of x that ``index`` names, in place."""
    if dim:
        into, rows = (x.transpose(0, dim), y.transpose(0, dim))
    else:
        into, rows = (x, y)
    into.index_put_((index,), rows * alpha if alpha != 1 else rows, accumulate=True)
    return x


def layer_norm(
    x: torch.Tensor, shape: list[int], weight: Any, bias: Any, eps: float
) -> tuple[torch.Tensor, ...]:
    """x less the mean and divided by the deviation of the last dims; mean and inverse deviation."""
    dims = list(range(-len(shape), 0))
    mean = x.mean(dims, keepdim=True)
    apart = x - mean
    over = (apart.square().mean(dims, keepdim=True) + eps).rsqrt()
    if weight is None:
        scaled = apart * over
    else:
        scaled = apart * over * weight
    return scaled if bias is None else scaled + bias, mean, over


#: The formulas, by the operation.
OWN: Mapping[Any, Callable] = {
    aten._unsafe_view.default: lambda x, size: x.view(size),
    aten.sum.default: lambda x, dtype=None: aten.sum.dim_IntList(x, list(range(x.dim())), dtype=dtype),
    aten.stack.default: stacked,
    aten._softmax.default: softmax,
    aten._log_softmax.default: log_softmax,
    aten.logaddexp.default: logaddexp,
    aten.native_layer_norm.default: layer_norm,
    aten.isfinite.default: lambda x: x.abs() < math.inf,
    aten.index_add_.default: index_add,
    aten.index_add.default: lambda x, *rest, **given: index_add(x.clone(), *rest, **given),
}


@cache
def torchs() -> Mapping[Any, Callable]:
    """Torch's formulas. They load its compiler, which takes a second; so the common ones are in ``OWN``."""
    from torch import _decomp

    return {**_decomp.decomposition_table, **_decomp.core_aten_decompositions()}


def part_of(operation: Any, has_loop: Callable[[Any], bool]) -> Callable | None:
    """The formula of an operation by others, or None to keep it."""
    if operation in OWN:
        return OWN[operation]
    if has_loop(operation):
        return None
    return torchs().get(operation, operation.decompose)
