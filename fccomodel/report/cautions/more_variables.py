"""There are more variables than rows."""

from __future__ import annotations

import math
from collections.abc import Iterator

from fccomodel.evaluation.sets import elements
from fccomodel.report.cautions._base import Caution, Subject, counted


def find(subject: Subject) -> Iterator[str]:
    """Variables with more entries than the rows of all tables; the parameters of nets, which are many
    anyway, do not count."""
    bound = subject.bound
    rows = sum(table.n for table in bound.tables.values())
    variables = {name: v for name, v in bound.problem.variables.items() if v.net is None}
    entries = sum(math.prod(elements.shape(bound, v.shape)) for v in variables.values())
    if bound.tables and entries > rows:
        yield (
            f"There are {counted(entries, 'variable')} and {counted(rows, 'row')}: many answers fit these "
            "rows equally well, and "
            "the regulariser alone chooses among them; judge the answer by rows left out (--holdout 0.2)."
        )


caution = Caution(name="more variables than rows", find=find)
