"""A column that may have several values has only one in the data."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fccomodel.core import ir
from fccomodel.report.cautions._base import Caution, Subject, counted


def find(subject: Subject) -> Iterator[str]:
    """Columns of labels or of a few values whose rows all have the same."""
    for name, table in subject.bound.tables.items():
        declared = subject.bound.problem.tables[name].columns
        for column, kind in declared.items():
            values = table.columns.get(column)
            if (
                values is None
                or values.ndim != 1
                or table.n < 2
                or not isinstance(kind.domain, ir.LabelSet | ir.ValueSet)
            ):
                continue
            if np.all(values == values[0]):
                yield (
                    f"{name}.{column} is {_word(subject, kind.domain, values[0])} in all "
                    f"{counted(table.n, 'row')}."
                )


def _word(subject: Subject, domain: ir.LabelSet | ir.ValueSet, value: float) -> str:
    """The value as the data have it."""
    if isinstance(domain, ir.LabelSet):
        return f"`{subject.bound.labels[domain.name][int(value)]}`"
    return f"{value:g}"


caution = Caution(name="one class", find=find)
