"""A problem with its data, the result of binding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fccomodel.core import ir
from fccomodel.data.drawn import drawn


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundTable:
    """The rows of a table.

    n         number of rows
    columns   arrays (n, *shape): float64 numbers (float32 if the source has them and the user asked
              for it), or int64 positions of labels. A family's table has the hidden column
              ``__family``: the position of a label, or the value of a number. A column that only
              nets read may be a ``DrawnColumn``
    encoding  for each column, how it was read and scaled
    rows      numbers of the rows in the source; None for all rows in their order
    indices   prepared groups and orders of all rows: by the expression that decides them, arrays by
              name, mapped from files
    """

    name: str
    n: int
    columns: Mapping[str, np.ndarray]
    encoding: Mapping[str, Any] = field(default_factory=dict)
    rows: np.ndarray | None = None
    indices: Mapping[str, Mapping[str, np.ndarray]] = field(default_factory=dict)

    @property
    def numbers(self) -> np.ndarray:
        """The numbers of the rows in the source."""
        if self.rows is None:
            return np.arange(self.n)
        return self.rows


def mapped(values: Any) -> bool:
    """Whether a column's vectors stay where they are: in a file, or in a source that draws them."""
    return drawn(values) or isinstance(values, np.memmap) and values.ndim > 1


#: Draws that replace a distribution, if nobody gives their number.
DRAWS = 20_000


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A size that a set of rows must have, because ``what`` was bound with it; checked after binding."""

    set: str
    size: int
    what: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Bound:
    """A problem, and the values of all its names.

    tables    tables by name
    arrays    float64 arrays by name, () for scalars
    params    float64 values by name, () for scalars
    dims      sizes by name
    labels    for each set of labels, its members in the order of their positions
    nets      torch modules by name
    samplers  Python samplers of the user's distributions by name
    sources   records for reports and for ``evaluate``: origin, rows read, rows dropped and why,
              statistics of encodings
    notes     sentences for the report
    claims    sizes to compare with the rows that conditions select
    draws     number of draws that replace each distribution
    """

    problem: ir.Problem
    tables: Mapping[str, BoundTable] = field(default_factory=dict)
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    params: Mapping[str, np.ndarray] = field(default_factory=dict)
    dims: Mapping[str, int] = field(default_factory=dict)
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    nets: Mapping[str, Any] = field(default_factory=dict)
    samplers: Mapping[str, Any] = field(default_factory=dict)
    sources: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
    draws: int = DRAWS
