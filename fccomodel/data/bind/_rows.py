"""The rows in use, and the columns of a source at them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fccomodel.core.diagnostics import refuse
from fccomodel.data.bind import errors
from fccomodel.data.sources import RawColumn, RawTable


@dataclass(frozen=True, eq=False, kw_only=True)
class Rows:
    """The rows in use: their numbers in the source (None for all ``total`` of them), and for a family
    its members' first rows."""

    total: int
    indices: np.ndarray | None = None
    parts: tuple[tuple[str, int], ...] = ()

    @property
    def n(self) -> int:
        """The number of rows."""
        if self.indices is None:
            return self.total
        return len(self.indices)

    def called(self, position: int) -> str:
        """``row 17`` of the source, counted from 0, and the member it is in."""
        number = int(position if self.indices is None else self.indices[position])
        member = max(
            (part for part in self.parts if part[1] <= number), key=lambda part: part[1], default=None
        )
        if member is None:
            return f"row {number}"
        return f"row {number - member[1]} of {member[0]}"

    def keep(self, mask: np.ndarray) -> Rows:
        """Those where ``mask`` (over the rows in use) holds."""
        positions = np.flatnonzero(mask)
        return Rows(
            total=self.total,
            indices=positions if self.indices is None else self.indices[positions],
            parts=self.parts,
        )


def read(raw: RawTable, name: str, rows: Rows, what: str) -> RawColumn:
    """A source's column at the rows in use; F0512 where it can be neither numbers nor text."""
    column = raw.load(name)
    if column.unusable:
        refuse(errors.columns.unusable(what, name, raw.called, column.unusable))
    return column.take(rows.indices)


def missing(column: RawColumn) -> np.ndarray:
    """Which rows lack a value, (n,)."""
    if column.categories is not None:
        return column.values < 0
    if column.values.dtype.kind != "f":
        return np.zeros(len(column.values), bool)
    return np.isnan(column.values).reshape(len(column.values), -1).any(1)


def demand_finite(column: RawColumn, name: str, rows: Rows, what: str) -> None:
    """F0511 where a value is missing or infinite."""
    demand_all([(name, count_non_finite(column))], rows, what)


@dataclass(frozen=True, kw_only=True)
class NonFinite:
    """How many values are missing or infinite, and where the first is."""

    missing: int
    infinite: int
    first: int


def count_non_finite(column: RawColumn) -> NonFinite | None:
    """What is missing or infinite in a column; None where nothing is."""
    if column.categories is None and column.values.dtype.kind != "f":
        return None
    if column.categories is None and np.isfinite(column.values).all():
        return None
    if column.categories is None:
        infinite = np.isinf(column.values).reshape(len(column.values), -1).any(1)
    else:
        infinite = np.zeros(1, bool)
    absent = missing(column)
    non_finite = absent | infinite
    if not non_finite.any():
        return None
    return NonFinite(missing=int(absent.sum()), infinite=int(infinite.sum()), first=int(non_finite.argmax()))


def demand_all(columns: Sequence[tuple[str, NonFinite | None]], rows: Rows, what: str) -> None:
    """F0511 with every column that lacks values."""
    lacking = [(name, counts) for name, counts in columns if counts is not None]
    if not lacking:
        return
    first, lacks = lacking[0][1], [(name, _lacks(counts)) for name, counts in lacking]
    row, values = rows.called(first.first), first.missing + first.infinite
    refuse(errors.columns.missing(what, lacks, row, values=values, infinite=first.infinite > 0))


def _lacks(counts: NonFinite) -> str:
    return " and ".join(
        f"{count} {kind}"
        for count, kind in ((counts.missing, "missing"), (counts.infinite, "infinite"))
        if count
    )


def writable(values: np.ndarray) -> np.ndarray:
    """Float64 in C order; a copy only where the source's own array is neither or may not be written to
    (torch warns of those)."""
    return np.require(values, np.float64, ["C", "W"])
