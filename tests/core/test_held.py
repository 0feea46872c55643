"""Counted bytes of tensors."""

from __future__ import annotations

import torch

from fccomodel.core.held import held

#: Entries of the tensors here, and their bytes.
ENTRIES = 1000
BYTES = 8 * ENTRIES


def test_freed_tensors_count_no_longer() -> None:
    """At most two of ten tensors in a row are there at once."""

    def work() -> torch.Tensor:
        x = torch.ones(ENTRIES, dtype=torch.float64)
        for _ in range(10):
            x = x.exp()
        return x

    result, most = held(work)
    assert most == 2 * BYTES and len(result) == ENTRIES


def test_what_differentiation_keeps_counts() -> None:
    """Without names, but needed for the gradient; views take nothing."""

    def work() -> torch.Tensor:
        x = torch.ones(ENTRIES, dtype=torch.float64, requires_grad=True)
        y = x.view(10, -1)
        for _ in range(4):
            y = y.exp()
        return y.sum()

    assert held(work)[1] == 5 * BYTES + 8
