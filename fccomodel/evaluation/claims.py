"""Sizes that binding could only note: of data for each row of a filtered set, whose rows an expression decides."""

from __future__ import annotations

from fccomodel.core import diagnostics
from fccomodel.data.bound import Bound
from fccomodel.evaluation import elements


def check(bound: Bound) -> None:
    """F0516 for every array over the rows of a filtered set (``real[P]``) that has another number of elements."""
    wrong = []
    for claim in bound.claims:
        rows = len(elements.ids(bound, bound.problem.sets[claim.set]))
        if rows != claim.size:
            wrong.append(
                diagnostics.error(
                    "F0516",
                    f"{claim.what} has {claim.size} elements where {claim.set} has {rows}",
                    reason=f"{claim.set} is a set of rows; its size is their number",
                    fix=f"give one value for each row of {claim.set}, in their order",
                )
            )
    if wrong:
        raise diagnostics.FccoError(wrong, bound.problem.source)
