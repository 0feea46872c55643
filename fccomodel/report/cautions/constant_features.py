"""Features have the same value in every row."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fccomodel.report.cautions._base import Caution, Subject, listed, vectors


def find(subject: Subject) -> Iterator[str]:
    """Entries of vector columns that do not vary; one that is 1 everywhere is an intercept."""
    for table, column, values, names in vectors(subject.bound):
        if table.n < 2:
            continue
        constant = np.all(values == values[0], axis=0)
        intercepts = np.flatnonzero(constant & (values[0] == 1.0))[:1]
        constant[intercepts] = False
        if constant.any():
            called = [name for name, still in zip(names, constant, strict=True) if still]
            yield (
                f"{table.name}.{column}: {listed(called)} {'has' if len(called) == 1 else 'have'} the "
                "same value in every row."
            )


caution = Caution(name="constant features", find=find)
