"""The constraints' table: both sides as written, the value, the multiplier; large families folded to
their worst members."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from fccomodel.app.shown.display._layout import number, residual
from fccomodel.core import ir

if TYPE_CHECKING:
    from fccomodel.report import Row

TOLERANCE = (
    1e-3  # a constraint violated by no more than this is marked as satisfied; its value is shown in any case
)
MOST_ROWS = 12
CONVENTION = "value: left - right (of >=, right - left): at most 0 where it holds"


def kinds(problem: ir.Problem) -> dict[str, str]:
    """``le`` or ``eq`` by the label of each constraint or family."""
    return {constraint.label: constraint.kind for constraint in problem.constraints}


def violation(label: str, value: float, kind: Mapping[str, str]) -> float:
    """By how much a constraint or a member of a family is broken: below 0 where there is room."""
    if kind.get(label.partition("[")[0]) == "eq":
        return abs(value)
    return value


def constraints(rows: Mapping[str, Row], kind: Mapping[str, str]) -> Table:
    """Past a dozen rows each family shows its worst ones and a count of the others."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim", padding=(0, 2))
    table.add_column("", width=1)
    table.add_column("constraint", overflow="fold", max_width=26)
    table.add_column("as written", justify="center", no_wrap=True)
    for name in ("value", "multiplier"):
        table.add_column(name, justify="right", no_wrap=True)
    families: dict[str, list[str]] = {}
    for label in rows:
        families.setdefault(label.partition("[")[0], []).append(label)

    broken = {label: violation(label, row.value, kind) for label, row in rows.items()}
    if len(rows) <= MOST_ROWS:
        most = MOST_ROWS
    else:
        most = max(1, MOST_ROWS // len(families))
    for name, labels in sorted(families.items(), key=lambda family: -max(map(broken.__getitem__, family[1]))):
        if len(labels) <= most:
            shown = labels
        else:
            shown = sorted(labels, key=broken.__getitem__, reverse=True)[:most]
        for label in shown:
            row, good = rows[label], broken[label] <= TOLERANCE
            if good:
                mark = Text("✓", style="green")
            else:
                mark = Text("✗", style="bold red")
            value = Text(f"{row.value:+.1e}" if row.value else "0", style="" if good else "red")
            table.add_row(mark, Text(label), _written(row), value, number(row.multiplier, 4))
        if hidden := [broken[label] for label in labels if label not in set(shown)]:
            rest = Text(f"{len(hidden)} more {name}, at most", style="dim")
            table.add_row("", rest, "", Text(f"{max(hidden):+.1e}", style="dim"), "")
    return table


def _written(row: Row) -> str:
    if row.left is None or row.right is None:
        return "left - right"
    return f"{number(row.left, 4)} {row.relation} {number(row.right, 4)}"


def complementarities(rows: Mapping[str, Row]) -> list[str]:
    """The products of multipliers and values, those of the largest."""
    worst = sorted(rows, key=lambda label: -rows[label].complementarity)[:MOST_ROWS]
    return [
        f"{label}: |ν c| {residual(rows[label].complementarity)}"
        for label in worst
        if rows[label].complementarity
    ]
