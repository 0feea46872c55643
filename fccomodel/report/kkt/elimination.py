"""A symmetric matrix that is eliminated level by level: every node has few neighbours on later levels,
which are neighbours of each other, so that nothing is filled in (T. Davis, Direct Methods for
Sparse Linear Systems, 2006, chapter 4)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

Array = np.ndarray
NONE = -1


class Elimination:
    """The pattern of such a matrix: ``later[k]`` are the neighbours of node k on later levels,
    ``NONE`` where there are fewer."""

    def __init__(self, later: Array, level: Array):
        self.later, self.size = later, len(level)
        self.levels = [np.flatnonzero(level == value) for value in np.unique(level)]
        self.updates = [[*self._updates(nodes, level)] for nodes in self.levels]

    def _updates(self, nodes: Array, level: Array) -> Iterator[tuple[int, int, Array, Array, Array]]:
        """Two slots, which of the nodes have both, and the entry that their product goes to: its node
        and slot, which is the number of slots on the diagonal."""
        later, width = self.later[nodes], self.later.shape[1]
        for i in range(width):
            for j in range(i, width):
                both = np.flatnonzero((later[:, i] != NONE) & (later[:, j] != NONE))
                if not len(both):
                    continue
                first, second = later[both, i], later[both, j]
                swapped = level[first] > level[second]
                first, second = np.where(swapped, second, first), np.where(swapped, first, second)
                if i < j:
                    slot = np.argmax(self.later[first] == second[:, None], axis=1)
                else:
                    slot = np.full(len(both), width)
                yield i, j, both, first, slot

    def factored(self, diagonal: Array, beside: Array) -> Factored:
        """Of the matrix with this diagonal and these entries beside it, at the slots of ``later``;
        LinAlgError where rounding changes the sign of a pivot."""
        entries, sign = np.column_stack([beside, diagonal]), np.sign(diagonal)
        for nodes, updates in zip(self.levels, self.updates, strict=True):
            if (entries[nodes, -1] * sign[nodes] <= 0).any():
                raise np.linalg.LinAlgError
            for i, j, both, first, slot in updates:
                at = nodes[both]
                np.subtract.at(entries, (first, slot), entries[at, i] * entries[at, j] / entries[at, -1])
        return Factored(self, entries)


class Factored:
    """The matrix after elimination."""

    def __init__(self, pattern: Elimination, entries: Array):
        self.pattern, self.pivots = pattern, torch.from_numpy(entries[:, -1:].copy())
        self.steps = [[*self._steps(nodes, entries)] for nodes in pattern.levels]

    def _steps(
        self, nodes: Array, entries: Array
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
        for slot, column in enumerate(self.pattern.later[nodes].T):
            if len(used := nodes[column != NONE]):
                rates = entries[used, slot] / entries[used, -1]
                yield (
                    torch.from_numpy(used),
                    torch.from_numpy(column[column != NONE]),
                    torch.from_numpy(rates[:, None]),
                )

    def solve(self, right: torch.Tensor) -> torch.Tensor:
        """The matrix's inverse times ``right`` (nodes, columns)."""
        x = right.clone()
        for steps in self.steps:
            for used, later, rates in steps:
                x.index_add_(0, later, -rates * x[used])
        x /= self.pivots
        for steps in reversed(self.steps):
            for used, later, rates in steps:
                x.index_add_(0, used, -rates * x[later])
        return x
