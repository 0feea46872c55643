"""Derivatives of many values: the entries of Jacobians, and vector-Jacobian products for many vectors
in one sweep."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch

Array = np.ndarray
#: Of so few functions, each is differentiated by itself.
FEW = 8
#: The places of a matrix's entries that are not 0, and these: rows, columns, entries
Entries = tuple[Array, Array, Array]


def jacobian(output: torch.Tensor, inputs: Sequence[torch.Tensor]) -> list[Entries]:
    """The derivatives of each entry of ``output`` (1-D) in each entry of the inputs, by input.

    Where every entry of the inputs is in one entry of the output alone, three gradients find them all.
    """
    nothing = (np.zeros(0, dtype=int), np.zeros(0, dtype=int), np.zeros(0))
    if not output.requires_grad or not inputs:
        return [nothing] * len(inputs)

    def gradient(weights: Array) -> list[Array]:
        """The gradient of a weighted sum of the outputs, for each input."""
        total = (output * torch.from_numpy(weights)).sum()
        gradients = torch.autograd.grad(total, inputs, retain_graph=True, allow_unused=True)
        return [
            np.zeros(x.numel()) if g is None else g.numpy().ravel()
            for g, x in zip(gradients, inputs, strict=True)
        ]

    count = len(output)
    if count > FEW and (found := _by_owner(gradient, count)) is not None:
        return found
    entries: list[list[Entries]] = [[] for _ in inputs]
    for row in range(count):
        for mine, g in zip(entries, gradient((np.arange(count) == row).astype(float)), strict=True):
            if len(columns := np.flatnonzero(g)):
                mine.append((np.full(len(columns), row), columns, g[columns]))
    joined = []
    for mine in entries:
        joined.append(tuple(map(np.concatenate, zip(*mine, strict=True))) if mine else nothing)
    return joined  # type: ignore[return-value]


def _by_owner(gradient: Callable[[Array], list[Array]], count: int) -> list[Entries] | None:
    """With weights r and r (k + 1), the quotient tells which entry k an input is in; other weights,
    whether in that one alone."""
    random = np.random.default_rng(0)
    r, other = random.uniform(0.5, 1.5, (2, count))
    found: list[Entries] = []
    for plain, ranked, again in zip(
        gradient(r), gradient(r * np.arange(1, count + 1)), gradient(other), strict=True
    ):
        columns = np.flatnonzero((plain != 0) | (ranked != 0) | (again != 0))
        with np.errstate(divide="ignore", invalid="ignore"):
            rows = (
                np.rint(np.nan_to_num(ranked[columns] / plain[columns], nan=-1.0, posinf=-1.0, neginf=-1.0))
                - 1
            )
        if ((rows < 0) | (rows >= count)).any():
            return None
        rows = rows.astype(int)
        derivatives = plain[columns] / r[rows]
        if (np.abs(again[columns] - other[rows] * derivatives) > 1e-9 * np.abs(derivatives)).any():
            return None
        found.append((rows, columns, derivatives))
    return found


def jacobian_of_rows(terms: torch.Tensor, inputs: Sequence[torch.Tensor]) -> list[Entries]:
    """``jacobian`` of a matrix, row after row: by columns, where an entry of the inputs is in several
    columns of one row."""
    rows, columns = terms.shape
    flat = terms.reshape(-1)
    if columns == 1 or len(flat) <= FEW or rows <= columns or not terms.requires_grad or not inputs:
        return jacobian(flat, inputs)
    by_column = [jacobian(column, inputs) for column in terms.unbind(1)]
    found: list[Entries] = []
    for j in range(len(inputs)):
        at = np.concatenate([entries[j][0] * columns + k for k, entries in enumerate(by_column)])
        found.append(
            (at, np.concatenate([e[j][1] for e in by_column]), np.concatenate([e[j][2] for e in by_column]))
        )
    return found


def by_row(entries: Entries) -> Iterator[tuple[int, Array, Array]]:
    """Each row that has entries: its number, their columns, and they."""
    rows, columns, values = entries
    order = np.argsort(rows, kind="stable")
    found, starts = np.unique(rows[order], return_index=True)
    ends = np.append(starts, len(order))
    for row, first, last in zip(found.tolist(), ends[:-1], ends[1:], strict=True):
        places = order[first:last]
        yield row, columns[places], values[places]


def vector_products(
    values: Sequence[torch.Tensor], leaves: Sequence[torch.Tensor], vectors: Sequence[torch.Tensor]
) -> tuple[torch.Tensor | None, ...]:
    """For each leaf (vectors, *leaf), the sum over values of v'd value / d leaf for every v along the
    first dim of ``vectors``; None where there is none. The graph is kept.

    ``torch.autograd.grad`` gives the same, but compares shapes by a module that loads sympy first,
    half a second of a process. Raises RuntimeError for operations that are not done for many at
    once.
    """
    try:
        from torch._vmap_internals import _vmap
        from torch.autograd.graph import _engine_run_backward
    except ImportError:  # another version of torch
        return torch.autograd.grad(
            values, leaves, vectors, retain_graph=True, allow_unused=True, is_grads_batched=True
        )

    def one(parts: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor | None, ...]:
        """The products with one vector."""
        return _engine_run_backward(
            tuple(values), parts, True, False, tuple(leaves), True, accumulate_grad=False
        )

    return tuple(_vmap(one, 0, 0, allow_none_pass_through=True)(tuple(vectors)))
