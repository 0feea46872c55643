"""Rows of a table repeat others exactly."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fccomodel.data.bound import BoundTable, mapped
from fccomodel.report.cautions._base import Caution, Subject, counted

#: the share of rows that may repeat others
SHARE = 0.01
#: numbers of a table that are compared
COMPARED = 5_000_000


def find(subject: Subject) -> Iterator[str]:
    """Tables in which many rows repeat others, although real numbers seldom agree by chance."""
    for name, table in subject.bound.tables.items():
        repeats = _repeats(table)
        if repeats > SHARE * table.n:
            yield (
                f"{counted(repeats, 'row')} of {name} repeat{'s' if repeats == 1 else ''} another "
                f"exactly ({table.n:,} in all)."
            )


def _repeats(table: BoundTable) -> int:
    """The number of rows that are equal to an earlier row in every column.

    It is 0 if all rows have whole numbers, or if there are too many rows to compare.
    """
    columns = list(table.columns.values())
    size = sum(values.size for values in columns)
    if (
        not size
        or size > COMPARED
        or any(mapped(values) for values in columns)
        or not any(map(_real, columns))
    ):
        return 0
    whole = np.ascontiguousarray(
        np.column_stack([values.reshape(table.n, -1).astype(np.float64) for values in columns])
    )
    rows = whole.view([("", whole.dtype)] * whole.shape[1]).ravel()
    return int(table.n - len(np.unique(rows)))


def _real(values: np.ndarray) -> bool:
    """Whether a column has numbers that are mostly not whole."""
    return values.dtype.kind == "f" and bool((values != np.rint(values)).mean() > 0.5)


caution = Caution(name="repeated rows", find=find)
