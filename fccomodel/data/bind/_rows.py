"""Reads columns of a source at the rows in use, and refuses missing or infinite values there.

``where`` in a binding file leaves rows out; an error still names a row by its place in the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fccomodel.core.diagnostics import refuse
from fccomodel.data.bind import errors
from fccomodel.data.sources import RawColumn, RawTable


@dataclass(frozen=True, eq=False, kw_only=True)
class RowsInUse:
    """The rows in use.

    total     number of rows of the source
    indices   their numbers in the source; None for all rows
    parts     for a family, each member with the number of its first row
    """

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
        """The row at a position, in words: ``row 17`` of the source, counted from 0, with its member."""
        number = int(position if self.indices is None else self.indices[position])
        before = [part for part in self.parts if part[1] <= number]
        if not before:
            return f"row {number}"
        member, first = max(before, key=lambda part: part[1])
        return f"row {number - first} of {member}"

    def keep(self, mask: np.ndarray) -> RowsInUse:
        """The rows for which ``mask`` is true; it has an entry for each row in use."""
        indices = np.flatnonzero(mask)
        if self.indices is not None:
            indices = self.indices[indices]
        return RowsInUse(total=self.total, indices=indices, parts=self.parts)


def read(raw: RawTable, name: str, rows: RowsInUse, what: str) -> RawColumn:
    """A column of the source at the rows in use; F0512 if it holds neither numbers nor text."""
    column = raw.load(name)
    if column.unusable:
        refuse(errors.columns.unusable(what, name, raw.called, column.unusable))
    return column.take(rows.indices)


def missing(column: RawColumn) -> np.ndarray:
    """Mask of the rows that lack a value, of shape (n,)."""
    if column.categories is not None:
        return column.values < 0
    if column.values.dtype.kind != "f":
        return np.zeros(len(column.values), bool)
    return np.isnan(column.values).reshape(len(column.values), -1).any(1)


def demand_finite(column: RawColumn, name: str, rows: RowsInUse, what: str) -> None:
    """F0511 if a value is missing or infinite."""
    demand_all([(name, count_non_finite(column))], rows, what)


@dataclass(frozen=True, kw_only=True)
class NonFinite:
    """The number of missing and of infinite values, and the position of the first of them."""

    missing: int
    infinite: int
    first: int


def count_non_finite(column: RawColumn) -> NonFinite | None:
    """Counts of missing and infinite values in a column; None if there are none."""
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


def demand_all(columns: Sequence[tuple[str, NonFinite | None]], rows: RowsInUse, what: str) -> None:
    """F0511 if a column has missing or infinite values; the error names all such columns."""
    lacking = [(name, counts) for name, counts in columns if counts is not None]
    if not lacking:
        return
    counts = lacking[0][1]
    texts = [(name, _in_words(each)) for name, each in lacking]
    row = rows.called(counts.first)
    values = counts.missing + counts.infinite
    refuse(errors.columns.missing(what, texts, row, values=values, infinite=counts.infinite > 0))


def _in_words(counts: NonFinite) -> str:
    """Counts in words, as ``3 missing and 1 infinite``."""
    parts = []
    if counts.missing:
        parts.append(f"{counts.missing} missing")
    if counts.infinite:
        parts.append(f"{counts.infinite} infinite")
    return " and ".join(parts)


def writable(values: np.ndarray) -> np.ndarray:
    """The array as writable float64 in C order.

    It is copied only if it is not so already. Torch warns of arrays that may not be written to.
    """
    return np.require(values, np.float64, ["C", "W"])
