"""A group has very few rows beside the others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fccomodel.core import ir
from fccomodel.report.cautions._base import Caution, Subject, counted, listed

#: rows that a group has at least
LEAST_ROWS = 10
#: the share of the rows of a middling group that a small one has at most
BESIDE = 0.1


def find(subject: Subject) -> Iterator[str]:
    """Label columns, and columns of a few values, with groups of fewer than ``LEAST_ROWS`` rows where others
    have many more."""
    for name, table in subject.bound.tables.items():
        for column, kind in subject.bound.problem.tables[name].columns.items():
            values = table.columns.get(column)
            if values is None or values.ndim != 1 or not isinstance(kind.domain, ir.LabelSet | ir.ValueSet):
                continue
            groups, counts = np.unique(values, return_counts=True)
            small = (counts < LEAST_ROWS) & (counts < BESIDE * np.median(counts))
            if len(groups) < 2 or not small.any():
                continue
            called = [_called(subject, kind.domain, value) for value in groups[small]]
            least, middling = counted(int(counts.min()), "row"), int(np.median(counts))
            verb = "has" if len(called) == 1 else "have"
            yield (
                f"{name}.{column}: {listed(called)} {verb} fewer than {LEAST_ROWS} rows ({least} at least; a "
                "middling group has "
                f"{middling:,}): what is said of so few is mostly chance."
            )


def _called(subject: Subject, domain: ir.LabelSet | ir.ValueSet, value: float) -> str:
    """The group's name in the data."""
    if isinstance(domain, ir.LabelSet):
        return subject.bound.labels[domain.name][int(value)]
    return f"{value:g}"


caution = Caution(name="small groups", find=find)
