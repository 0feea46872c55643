"""A problem with its data: what binding gives to every later stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fccomodel.core import ir


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundTable:
    """``n`` rows; each column is (n, *shape): float64 numbers (float32 where the source is and the
    user asked for it), or int64 positions for a label column. A family's table has the hidden
    column ``__family``: the int64 position of a label, the value of a number. ``rows`` are their
    numbers in the source, None for all of it in its order. ``indices``: prepared groups and orders
    of all rows, by what decides each, and its arrays by name, in files."""

    name: str
    n: int
    columns: Mapping[str, np.ndarray]
    encoding: Mapping[str, Any] = field(default_factory=dict)
    rows: np.ndarray | None = None
    indices: Mapping[str, Mapping[str, np.ndarray]] = field(default_factory=dict)

    @property
    def numbers(self) -> np.ndarray:
        """The rows' numbers in the source."""
        if self.rows is None:
            return np.arange(self.n)
        return self.rows


def mapped(values: np.ndarray) -> bool:
    """Whether a column's vectors stay in a file, which is mapped into memory."""
    return isinstance(values, np.memmap) and values.ndim > 1


#: Draws of a distribution that stand for it at first.
DRAWS = 20_000


@dataclass(frozen=True, kw_only=True)
class Claim:
    """That a set of rows has as many elements as ``what`` was bound with: decided where the set is,
    after binding."""

    set: str
    size: int
    what: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Bound:
    """Everything that a problem's names stand for.

    tables   by name                     arrays, params  float64 arrays by name, () for scalars
    dims     sizes by name               labels          label sets' members by set name, in position order
    nets     torch modules by name       samplers        Python samplers of user distributions by name
    sources  what was bound, for reports and for ``evaluate``: origin, rows read, rows dropped and
             why, encoding statistics
    notes    sentences for the report     claims          sizes to compare with the rows that
             conditions choose
    draws    of each distribution, in place of an expectation over it
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
