"""The report on a point for which there is no memory to judge it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from fccomodel.core.diagnostics import FccoError
from fccomodel.data.bound import Bound
from fccomodel.evaluation import passes
from fccomodel.evaluation.checks.sizes import beyond_memory

if TYPE_CHECKING:
    from fccomodel.report import KKTReport

#: The verdict on such a point.
VERDICT = "Not judged: the report needs more memory than there is."
#: What to do about it.
ADVICE = "Judge it where there is more memory (`fccomodel evaluate`), or bind fewer rows."
#: The residuals that are not known then.
UNKNOWN = ("stationarity", "complementarity", "epsilon")
#: The note of a report whose values were computed.
VALUES_ALONE = "memory ran out in the report: it has the values at the point, and neither residuals nor a gap"
#: The note of a report whose values were not.
LAST_LOOK = "memory ran out in the report: its values are those of the run's last look, as the run saw them"


def unjudged(
    bound: Bound, point: Mapping[str, np.ndarray], seed: int, known: tuple[float, float]
) -> KKTReport:
    """The report of a point's values alone, whose residuals are infinite.

    known   the objective and the largest violation that a run found: they stand in the report if
            memory does not suffice for one evaluation either
    """
    from fccomodel.report import KKTReport, Row

    rows: dict[str, Row] = {}
    try:
        values, labels, equal = passes.values(bound, point, seed)
    except (FccoError, MemoryError, RuntimeError) as error:
        if not beyond_memory(error):
            raise
        (objective, feasibility), note = known, LAST_LOOK
    else:
        objective, note = float(values[0]), VALUES_ALONE
        sizes = np.where(equal, np.abs(values[1:]), values[1:])
        feasibility = float(sizes.max(initial=0.0))
        pairs = zip(labels, values[1:], strict=True)
        rows = {label: Row(float(value), math.nan, math.nan) for label, value in pairs}
    return KKTReport(
        objective=objective,
        constraints=rows,
        stationarity=math.inf,
        feasibility=feasibility,
        complementarity=math.inf,
        slack=math.inf,
        residual=math.inf,
        epsilon=math.inf,
        relative={**dict.fromkeys(UNKNOWN, math.inf), "feasibility": feasibility},
        verdict=VERDICT,
        advice=ADVICE,
        exact=False,
        notes=(note,),
    )
