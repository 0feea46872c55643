"""The rows in use, and the columns of a source at them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fccomodel.data.bind._errors import refuse
from fccomodel.data.sources import RawColumn, RawTable

SHOWN = 8


@dataclass(frozen=True, eq=False, kw_only=True)
class Rows:
    """The rows in use: their numbers in the source (None for all ``total`` of them), and for a family its members' first rows."""

    total: int
    chosen: np.ndarray | None = None
    parts: tuple[tuple[str, int], ...] = ()

    @property
    def n(self) -> int:
        return self.total if self.chosen is None else len(self.chosen)

    def called(self, position: int) -> str:
        """``row 17`` of the source, counted from 0, and the member it is in."""
        number = int(position if self.chosen is None else self.chosen[position])
        member = max((part for part in self.parts if part[1] <= number), key=lambda part: part[1], default=None)
        return f"row {number}" if member is None else f"row {number - member[1]} of {member[0]}"

    def keep(self, mask: np.ndarray) -> Rows:
        """Those where ``mask`` (over the rows in use) holds."""
        kept = np.flatnonzero(mask)
        return Rows(total=self.total, chosen=kept if self.chosen is None else self.chosen[kept], parts=self.parts)


def read(raw: RawTable, name: str, rows: Rows, what: str) -> RawColumn:
    """A source's column at the rows in use; F0512 where it can be neither numbers nor text."""
    column = raw.load(name)
    if column.unusable:
        refuse(
            "F0512",
            f"{what}: column {name} of {raw.called} cannot be used",
            reason=column.unusable,
            fix="convert or leave out the column",
        )
    return column.take(rows.chosen)


def missing(column: RawColumn) -> np.ndarray:
    """Which rows lack a value, (n,)."""
    if column.categories is not None:
        return column.values < 0
    if column.values.dtype.kind != "f":
        return np.zeros(len(column.values), bool)
    return np.isnan(column.values).reshape(len(column.values), -1).any(1)


def demand_finite(column: RawColumn, name: str, rows: Rows, what: str) -> None:
    """F0511 where a value is missing or infinite."""
    demand_all([(name, count_bad(column))], rows, what)


@dataclass(frozen=True, kw_only=True)
class Bad:
    """How many values are missing or infinite, and where the first is."""

    missing: int
    infinite: int
    first: int


def count_bad(column: RawColumn) -> Bad | None:
    """What is missing or infinite in a column; None where nothing is."""
    if column.categories is None and column.values.dtype.kind != "f":
        return None
    if column.categories is None and np.isfinite(column.values).all():
        return None
    infinite = np.isinf(column.values).reshape(len(column.values), -1).any(1) if column.categories is None else np.zeros(1, bool)
    absent = missing(column)
    bad = absent | infinite
    if not bad.any():
        return None
    return Bad(missing=int(absent.sum()), infinite=int(infinite.sum()), first=int(bad.argmax()))


def demand_all(found: Sequence[tuple[str, Bad | None]], rows: Rows, what: str) -> None:
    """F0511 with every column that lacks values."""
    bad = [(name, lack) for name, lack in found if lack is not None]
    if not bad:
        return
    name, first = bad[0]
    label = f"`{name}`" if not name.isidentifier() else name
    drop, where = 'missing = "drop" or ', f"{label}.notna()"
    if first.infinite:
        drop, where = "", f"-1e300 < {label} < 1e300"
    reason = f"the first is in {rows.called(first.first)} of {name} (rows count from 0); nothing is filled in silently"
    message = f"{what}: column {name} has {_lacks(first)} value{'s' * (first.missing + first.infinite > 1)}"
    if len(bad) > 1:
        told = [f"{name} ({_lacks(lack)})" for name, lack in bad[:SHOWN]] + ["..."] * (len(bad) > SHOWN)
        message, reason = f"{what}: {len(bad)} columns have missing or infinite values", f"{', '.join(told)}; {reason}"
    fix = f'leave such rows out with {drop}where = "{where}", or leave such columns out, or mend the data'
    refuse("F0511", message, reason=reason, fix=fix)


def _lacks(lack: Bad) -> str:
    return " and ".join(f"{count} {kind}" for count, kind in ((lack.missing, "missing"), (lack.infinite, "infinite")) if count)


def writable(values: np.ndarray) -> np.ndarray:
    """Float64 in C order; a copy only where the source's own array is neither or may not be written to (torch warns of those)."""
    return np.require(values, np.float64, ["C", "W"])
