"""The table that shows a sweep, at 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fccomodel.app.shown.display import WIDTH, number, page, residual, title

if TYPE_CHECKING:
    from fccomodel.app.python.sweeps.record import Sweep, SweepPoint

#: Largest number of constraints whose multipliers have a column.
MULTIPLIER_COLUMNS = 3
#: Blanks beside the cells of a column, with the one between two columns.
PADDING = 3


def table(sweep: Sweep) -> RenderableType:
    """A row for each point, a legend of the columns, and notes on the sweep as a whole."""
    problem = sweep.compiled.problem
    sizes = _multiplier_sizes(sweep)
    labels = _fitting(sweep, sizes)
    if len(sweep) < sweep.count:
        counted = f"{len(sweep)} of {sweep.count} values"
    else:
        counted = f"{sweep.count} values"
    parts: list[RenderableType | None] = [
        title(problem.name, [problem.objective.sense, ", ".join(sweep.params), counted]),
        _grid(sweep, labels),
        Text(""),
        Text(_legend(labels, len(sizes) - len(labels)), style="dim"),
    ]
    parts += [Text(f"caution: {caution}", style="yellow") for caution in sweep.cautions]
    for point in sweep.points:
        if point.outcome is None:
            parts.append(Text(f"{_values(point)}: {point.error}"))
    if sweep.interrupted:
        parts.append(Text("Interrupted: the values that were done are shown."))
    return page(parts)


def _grid(sweep: Sweep, labels: list[str]) -> Table:
    """The table of the points, with a column for each of these labels.

    Only a label may be folded: columns of numbers keep their width.
    """
    grid = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim", padding=(0, 1))
    for name in _heads(sweep, labels):
        grid.add_column(Text(name), justify="right", overflow="fold", no_wrap=name not in labels)
    grid.add_column(Text(""), justify="left", overflow="fold")
    for point in sweep.points:
        grid.add_row(*_row(point, sweep.params, labels))
    return grid


def _legend(labels: list[str], hidden: int) -> str:
    """The meaning of the columns, if ``hidden`` constraints have none."""
    legend = "slope: change of the optimal value per unit of the param"
    if labels:
        legend += "; columns by label: multipliers"
    if hidden > 0:
        largest = "the largest" if len(labels) == 1 else f"the {len(labels)} largest"
        legend += f" ({largest}; .rows has all)"
    return legend


def _multiplier_sizes(sweep: Sweep) -> dict[str, float]:
    """The largest absolute multiplier of each constraint, over all points."""
    size: dict[str, float] = {}
    for point in sweep.points:
        if point.outcome is not None:
            for label, row in point.outcome.report.constraints.items():
                size[label] = max(size.get(label, 0.0), abs(row.multiplier))
    return size


def _fitting(sweep: Sweep, size: dict[str, float]) -> list[str]:
    """The constraints with the largest multipliers, as many as fit on a line, in the model's order."""
    by_size = sorted(size, key=lambda label: -size[label])
    for count in range(min(MULTIPLIER_COLUMNS, len(by_size)), 1, -1):
        labels = [label for label in size if label in by_size[:count]]
        if _width(sweep, labels) <= WIDTH:
            return labels
    return by_size[:1]


def _width(sweep: Sweep, labels: list[str]) -> int:
    """The width of the table if no cell is folded."""
    rows = [[cell.cell_len for cell in _row(point, sweep.params, labels)] for point in sweep.points]
    heads = [len(name) for name in _heads(sweep, labels)]
    return sum(max(column) + PADDING for column in zip([*heads, 0], *rows, strict=True))


def _heads(sweep: Sweep, labels: list[str]) -> list[str]:
    """The names of the columns of numbers."""
    return [*sweep.params, "objective", "slope", "violation", *labels, "steps"]


def _row(point: SweepPoint, params: tuple[str, ...], labels: list[str]) -> list[Text]:
    """The cells of one point."""
    values = [_value(point.values[name]) for name in params]
    if point.outcome is None:
        dashes = ["-"] * (4 + len(labels))
        return [Text(cell) for cell in (*values, *dashes, "failed")]
    report, solution = point.outcome.report, point.outcome.solution
    slope = point.slopes[params[-1]]
    if slope is None:
        slope_cell = "-"
    else:
        slope_cell = number(slope, 4)
    cells = [number(report.objective), slope_cell, residual(report.feasibility)]
    rows = report.constraints
    cells += [number(rows[label].multiplier, 4) if label in rows else "-" for label in labels]
    steps = f"{solution.iterations:,}"
    if solution.passes:
        steps += f"+{solution.passes:,}"
    if report.solved:
        status = Text("solved")
    elif point.outcome.status != "stopped":
        status = Text(point.outcome.status, style="bold")
    else:
        status = Text("not solved", style="bold")
    return [*(Text(cell) for cell in (*values, *cells, steps)), status]


def _value(value: Any) -> str:
    if isinstance(value, float | int):
        return number(value)
    return str(value)


def _values(point: SweepPoint) -> str:
    """The values of a point's params, as ``tau = 0.1, mu = 2``."""
    return ", ".join(f"{name} = {_value(value)}" for name, value in point.values.items())
