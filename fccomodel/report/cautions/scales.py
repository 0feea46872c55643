"""Features differ in scale by many orders of magnitude."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fccomodel.report.cautions._base import Caution, Subject, vectors

#: how many times the spread of another feature a feature's may be
APART = 1e5
MENDING = (
    'Steps and regularisers treat them very differently; scale = "standard" in the binding brings '
    "them together."
)


def find(subject: Subject) -> Iterator[str]:
    """Vector columns whose entries have standard deviations that far apart."""
    for table, column, values, names in vectors(subject.bound):
        spread = values.std(axis=0)
        varying = np.flatnonzero(spread > 0)
        if not len(varying):
            continue
        small, large = varying[spread[varying].argmin()], varying[spread[varying].argmax()]
        ratio = spread[large] / spread[small]
        if ratio >= APART:
            both = f"`{names[large]}` varies {ratio:.0e} times as much as `{names[small]}`"
            yield f"{table.name}.{column}: {both}. {MENDING}"


caution = Caution(name="scales", find=find)
