"""Most of the rows of a table, or many of them for missing values, are not used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fccomodel.report.cautions._base import Caution, Subject, counted, listed

#: the share of a table's rows that missing values may leave out without a word
MISSING_SHARE = 0.1
#: the share of a table's rows that is left at least where conditions choose them
CHOSEN_SHARE = 0.05


def find(subject: Subject) -> Iterator[str]:
    """Warn, for each table, of rows that are not used, and say why."""
    for name, source in subject.bound.sources.items():
        used, dropped = source.get("rows", 0), source.get("dropped", ())
        total = used + sum(drop["rows"] for drop in dropped)
        absent = sum(drop["rows"] for drop in dropped if drop.get("kind") == "missing")
        before = used + absent
        if before and absent >= MISSING_SHARE * before or used < CHOSEN_SHARE * total:
            reasons = ", ".join(_reason(drop) for drop in dropped if drop["rows"])
            yield f"Only {used:,} of {counted(total, 'row')} of {name} are used ({reasons})."


def _reason(drop: Mapping[str, Any]) -> str:
    """The number of rows that were left out, and the reason."""
    columns = drop.get("columns")
    if not columns:
        return f"{drop['rows']:,}: {drop['reason']}"
    most = sorted(columns, key=lambda column: -columns[column])
    verb = "has" if drop["rows"] == 1 else "have"
    return f"{drop['rows']:,} {verb} a missing value in {listed(most)}"


caution = Caution(name="rows left out", find=find, rank=0)
