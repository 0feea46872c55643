"""Derivatives of many values: the entries of Jacobians, and vector-Jacobian products for many vectors.

Each gradient is one sweep of automatic differentiation over the whole graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch

Array = np.ndarray
#: Up to this number of functions, each has a gradient of its own.
ONE_BY_ONE = 8
#: Largest relative difference of two values of one derivative.
SAME = 1e-9
#: The entries of a sparse matrix: their rows, their columns, and their values.
Entries = tuple[Array, Array, Array]


def jacobian(output: torch.Tensor, inputs: Sequence[torch.Tensor]) -> list[Entries]:
    """The derivatives of each entry of ``output`` (1-D) in each entry of the inputs, by input.

    Three gradients are enough if each entry of the inputs influences only one entry of the output.
    Otherwise there is one gradient for each entry of the output.
    """
    no_places, no_values = np.zeros(0, dtype=int), np.zeros(0)
    empty = (no_places, no_places, no_values)
    if not output.requires_grad or not inputs:
        return [empty] * len(inputs)

    def gradient(weights: Array) -> list[Array]:
        """The gradient of a weighted sum of the outputs, for each input."""
        total = (output * torch.from_numpy(weights)).sum()
        gradients = torch.autograd.grad(total, inputs, retain_graph=True, allow_unused=True)
        arrays = []
        for derivative, leaf in zip(gradients, inputs, strict=True):
            if derivative is None:
                arrays.append(np.zeros(leaf.numel()))
            else:
                arrays.append(derivative.numpy().ravel())
        return arrays

    count = len(output)
    if count > ONE_BY_ONE:
        by_owner = _by_owner(gradient, count)
        if by_owner is not None:
            return by_owner
    parts: list[list[Entries]] = [[] for _ in inputs]
    for row in range(count):
        unit = (np.arange(count) == row).astype(float)
        for of_input, derivative in zip(parts, gradient(unit), strict=True):
            columns = np.flatnonzero(derivative)
            if len(columns):
                of_input.append((np.full(len(columns), row), columns, derivative[columns]))
    return [_joined(of_input) if of_input else empty for of_input in parts]


def _joined(parts: Sequence[Entries]) -> Entries:
    """The entries of several parts, one after the other."""
    rows, columns, values = zip(*parts, strict=True)
    return np.concatenate(rows), np.concatenate(columns), np.concatenate(values)


def _by_owner(gradient: Callable[[Array], list[Array]], count: int) -> list[Entries] | None:
    """The Jacobian from three gradients; None if an input influences several outputs.

    Let input x influence output k alone, with derivative g. A gradient with weights r gives r_k g, one
    with weights r_j (j + 1) gives r_k (k + 1) g, and their quotient is k + 1. Other random weights
    confirm that no further output depends on x.
    """
    random = np.random.default_rng(0)
    weights, other_weights = random.uniform(0.5, 1.5, (2, count))
    plain = gradient(weights)
    ranked = gradient(weights * np.arange(1, count + 1))
    confirming = gradient(other_weights)
    jacobians: list[Entries] = []
    for first, second, third in zip(plain, ranked, confirming, strict=True):
        columns = np.flatnonzero((first != 0) | (second != 0) | (third != 0))
        with np.errstate(divide="ignore", invalid="ignore"):
            quotient = second[columns] / first[columns]
        finite = np.nan_to_num(quotient, nan=-1.0, posinf=-1.0, neginf=-1.0)
        owner = np.rint(finite) - 1
        if ((owner < 0) | (owner >= count)).any():
            return None
        rows = owner.astype(int)
        derivatives = first[columns] / weights[rows]
        error = np.abs(third[columns] - other_weights[rows] * derivatives)
        if (error > SAME * np.abs(derivatives)).any():
            return None
        jacobians.append((rows, columns, derivatives))
    return jacobians


def jacobian_of_rows(terms: torch.Tensor, inputs: Sequence[torch.Tensor]) -> list[Entries]:
    """``jacobian`` of a matrix with many rows, flattened row after row.

    It is computed column by column, since an input may influence several columns of one row.
    """
    rows, columns = terms.shape
    flat = terms.reshape(-1)
    is_few = columns == 1 or len(flat) <= ONE_BY_ONE or rows <= columns
    if is_few or not terms.requires_grad or not inputs:
        return jacobian(flat, inputs)
    by_column = [jacobian(column, inputs) for column in terms.unbind(1)]
    jacobians: list[Entries] = []
    for j in range(len(inputs)):
        parts = []
        for k, of_column in enumerate(by_column):
            row, place, values = of_column[j]
            parts.append((row * columns + k, place, values))
        jacobians.append(_joined(parts))
    return jacobians


def by_row(entries: Entries) -> Iterator[tuple[int, Array, Array]]:
    """For each row that has entries: its number, and the columns and the values of its entries."""
    rows, columns, values = entries
    order = np.argsort(rows, kind="stable")
    distinct_rows, starts = np.unique(rows[order], return_index=True)
    ends = np.append(starts, len(order))
    ranges = zip(distinct_rows.tolist(), ends[:-1], ends[1:], strict=True)
    for row, first, last in ranges:
        places = order[first:last]
        yield row, columns[places], values[places]


def vector_products(
    values: Sequence[torch.Tensor], leaves: Sequence[torch.Tensor], vectors: Sequence[torch.Tensor]
) -> tuple[torch.Tensor | None, ...]:
    """The sums over values of v'd value / d leaf, for every v along the first dim of ``vectors``.

    Each leaf has a result of shape (vectors, *leaf), or None if no value depends on it. The graph is
    kept. ``torch.autograd.grad`` gives the same, but compares shapes by a module that loads sympy
    first, which takes half a second of a process. Raises RuntimeError for operations that cannot be
    done for many vectors at once.
    """
    try:
        from torch._vmap_internals import _vmap
        from torch.autograd.graph import _engine_run_backward
    except ImportError:  # another version of torch
        return torch.autograd.grad(
            values, leaves, vectors, retain_graph=True, allow_unused=True, is_grads_batched=True
        )

    def product(parts: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor | None, ...]:
        """The products with one vector."""
        keep_graph = True
        create_graph = False
        allow_unreachable = True
        return _engine_run_backward(
            tuple(values),
            parts,
            keep_graph,
            create_graph,
            tuple(leaves),
            allow_unreachable,
            accumulate_grad=False,
        )

    for_all = _vmap(product, 0, 0, allow_none_pass_through=True)
    return tuple(for_all(tuple(vectors)))
