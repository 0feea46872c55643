"""Sizes that binding could only note: data for each row of a filtered set, which an expression decides."""

from __future__ import annotations

from fccomodel.core.diagnostics import refuse
from fccomodel.data.bind import errors
from fccomodel.data.bound import Bound
from fccomodel.evaluation.sets import elements


def check(bound: Bound) -> None:
    """Raise F0516 for every array over the rows of a filtered set (``real[P]``) of another size."""
    wrong = []
    for claim in bound.claims:
        rows = len(elements.ids(bound, bound.problem.sets[claim.set]))
        if rows != claim.size:
            wrong.append(errors.sizes.rows_of_set(claim.what, claim.size, claim.set, rows))
    if wrong:
        refuse(*wrong, source=bound.problem.source)
