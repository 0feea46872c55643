"""The table of constraints: both sides as written, the value, the multiplier.

Of a large family only the worst members are shown.
"""

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

#: Violation up to which a constraint is marked as satisfied; its value is shown in any case.
TOLERANCE = 1e-3
#: Number of rows above which families show their worst members only.
MOST_ROWS = 12
CONVENTION = "value = left - right (for >=: right - left); it holds if value <= 0"
OF_MATRICES = (
    "of << and >>: the largest eigenvalue of that difference; the multiplier is the trace of the matrix "
    "`report.matrices[label]`"
)


def convention(rows: Mapping[str, Row]) -> str:
    """The sentence that says what the values and multipliers in the table mean."""
    if any(row.relation in ir.MATRIX_RELATIONS for row in rows.values()):
        return f"{CONVENTION}\n{OF_MATRICES}"
    return CONVENTION


def kinds(problem: ir.Problem) -> dict[str, str]:
    """``le`` or ``eq`` by the label of each constraint or family."""
    return {constraint.label: constraint.kind for constraint in problem.constraints}


def violation(label: str, value: float, kind: Mapping[str, str]) -> float:
    """The violation of a constraint or of a member of a family; negative if it holds with a margin."""
    if kind.get(label.partition("[")[0]) == "eq":
        return abs(value)
    return value


def constraints(rows: Mapping[str, Row], kind: Mapping[str, str]) -> Table:
    """The table of constraints. With many rows each family shows its worst ones and counts the others."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim", padding=(0, 2))
    table.add_column("", width=1)
    table.add_column("constraint", overflow="fold", max_width=26)
    table.add_column("as written", justify="center", no_wrap=True)
    for name in ("value", "multiplier"):
        table.add_column(name, justify="right", no_wrap=True)
    families: dict[str, list[str]] = {}
    for label in rows:
        families.setdefault(label.partition("[")[0], []).append(label)

    violations = {label: violation(label, row.value, kind) for label, row in rows.items()}
    worst = {name: max(violations[label] for label in labels) for name, labels in families.items()}
    per_family = MOST_ROWS
    if len(rows) > MOST_ROWS:
        per_family = max(1, MOST_ROWS // len(families))
    for name in sorted(families, key=lambda name: -worst[name]):
        shown = labels = families[name]
        if len(labels) > per_family:
            shown = sorted(labels, key=violations.__getitem__, reverse=True)[:per_family]
        for label in shown:
            table.add_row(*_cells(label, rows[label], violations[label] <= TOLERANCE))
        hidden = [violations[label] for label in labels if label not in set(shown)]
        if hidden:
            rest = Text(f"{len(hidden)} more {name}, at most", style="dim")
            table.add_row("", rest, "", Text(f"{max(hidden):+.1e}", style="dim"), "")
    return table


def _cells(label: str, row: Row, holds: bool) -> list[Text | str]:
    """The cells of one constraint."""
    value = Text(f"{row.value:+.1e}" if row.value else "0")
    if holds:
        mark = Text("✓", style="green")
    else:
        mark = Text("✗", style="bold red")
        value.style = "red"
    return [mark, Text(label), _written(row), value, number(row.multiplier, 4)]


def _written(row: Row) -> str:
    """Both sides of a constraint as numbers."""
    if row.relation in ir.MATRIX_RELATIONS:
        return "largest eigenvalue"
    if row.left is None or row.right is None:
        return "left - right"
    return f"{number(row.left, 4)} {row.relation} {number(row.right, 4)}"


def complementarities(rows: Mapping[str, Row]) -> list[str]:
    """The largest products of a multiplier and a value, a line each."""
    worst = sorted(rows, key=lambda label: -rows[label].complementarity)[:MOST_ROWS]
    return [
        f"{label}: |ν c| {residual(rows[label].complementarity)}"
        for label in worst
        if rows[label].complementarity
    ]
