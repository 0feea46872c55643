"""Rows that an answer meets are far from all those it was found on: other units, or other columns."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fccomodel.report.cautions._base import Caution, Subject, listed, vectors

#: standard deviations that the mean of a feature may be from the mean of the rows that the answer
#: was found on
APART = 20.0


def find(subject: Subject) -> Iterator[str]:
    """Standardised features, by the scales of the rows that an answer was found on, whose mean is that
    far away."""
    for table, column, values, names in vectors(subject.bound):
        scale = (table.encoding.get(column) or {}).get("scale")
        if not isinstance(scale, dict):
            continue
        count = len(scale["mean"])
        far = np.flatnonzero(np.abs(values[:, :count].mean(0)) > APART)
        if len(far):
            called = [names[k] for k in far]
            verb = "is" if len(far) == 1 else "are"
            yield (
                f"{table.name}.{column}: {listed(called)} {verb} on average more than {APART:g} standard "
                "deviations from the rows "
                "that the answer was found on: are they in other units?"
            )


caution = Caution(name="other units", find=find, rank=0)
