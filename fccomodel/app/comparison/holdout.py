"""A share of the rows held out: those left to solve on, and those to judge by, in the same groups."""

from __future__ import annotations

import numpy as np

from fccomodel.app import errors
from fccomodel.core.diagnostics import refuse
from fccomodel.data import subsets
from fccomodel.data.bound import Bound, BoundTable

SHARE = 0.2


def hold_out(bound: Bound, share: float = SHARE, seed: int = 0) -> tuple[Bound, Bound]:
    """(the rows to solve on, the rows held out) of every table that the problem averages over.

    Rows that agree in all labels and listed values (classes, groups, members of a family) are a stratum; the same share is held
    out of each, at least one row and never all: no group is lost on either side. A row that is alone in its stratum stays.
    """
    tables = subsets.averaged(bound.problem)
    if not tables:
        refuse(errors.no_rows_to_hold_out())
    for name, owner in subsets.lengths(bound.problem):
        if name in tables:
            refuse(errors.entry_for_each_row(name, owner))
    rng = np.random.default_rng(seed)
    held = {name: _chosen(bound, bound.tables[name], share, rng) for name in tables}
    return subsets.part(bound, {name: ~mask for name, mask in held.items()}), subsets.part(bound, held)


def _chosen(bound: Bound, table: BoundTable, share: float, rng: np.random.Generator) -> np.ndarray:
    """A table's rows to hold out, as booleans."""
    strata = subsets.strata(bound, table)
    held = np.zeros(table.n, dtype=bool)
    for stratum in range(strata.max(initial=-1) + 1):
        rows = np.flatnonzero(strata == stratum)
        count = min(max(1, round(share * len(rows))), len(rows) - 1)
        held[rng.permutation(rows)[:count]] = True
    return held
