"""A share of the rows held out: rows to solve on, and rows to judge by, in the same groups."""

from __future__ import annotations

from fccomodel.data import subsets
from fccomodel.data.bound import Bound

#: The share of the rows that is held out, by default.
SHARE = 0.2


def hold_out(bound: Bound, share: float = SHARE, seed: int = 0) -> tuple[Bound, Bound]:
    """(the rows to solve on, the rows held out) of every table that the problem averages over
    (``subsets.held``)."""
    held = subsets.held(bound, share, seed)
    return subsets.part(bound, {name: ~mask for name, mask in held.items()}), subsets.part(bound, held)
