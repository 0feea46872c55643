"""What a person sees of a sweep: a table at 80 columns."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fccomodel.app.python.sweeps.record import Point, Sweep
from fccomodel.app.shown.display import number, page, residual, title

#: constraints whose multipliers have a column
MOST = 3


def table(sweep: Sweep) -> RenderableType:
    """A row for each point, and what cannot be seen of it there."""
    problem = sweep.compiled.problem
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim", padding=(0, 1))
    labels = _largest(sweep)
    for name in (*sweep.params, "objective", "slope", "violation", *labels, "steps", ""):
        made.add_column(Text(name), justify="left" if not name else "right", overflow="fold")
    for point in sweep.points:
        made.add_row(*_row(point, sweep.params, labels))
    if len(sweep) < sweep.count:
        counted = f"{len(sweep)} of {sweep.count} values"
    else:
        counted = f"{sweep.count} values"
    legend = "slope: change of the optimal value per unit of the param"
    legend += "; columns by label: multipliers" if labels else ""
    hidden = len({label for p in sweep.points if p.outcome for label in p.outcome.report.constraints}) - len(
        labels
    )
    if hidden > 0:
        legend += f" (the {len(labels)} largest; .rows has all)"
    parts: list[RenderableType | None] = [
        title(problem.name, [problem.objective.sense, ", ".join(sweep.params), counted]),
        made,
    ]
    parts += [Text(""), Text(legend, style="dim")]
    parts += [Text(f"caution: {one}", style="yellow") for one in sweep.cautions]
    failed = [point for point in sweep.points if point.outcome is None]
    parts += [Text(f"{_values(point)}: {point.error}") for point in failed]
    if sweep.interrupted:
        parts += [Text("Interrupted: the values that were done are shown.")]
    return page(parts)


def _largest(sweep: Sweep) -> list[str]:
    """The constraints with the largest multipliers, in the model's order."""
    size: dict[str, float] = {}
    for point in sweep.points:
        for label, row in point.outcome.report.constraints.items() if point.outcome else ():
            size[label] = max(size.get(label, 0.0), abs(row.multiplier))
    chosen = sorted(size, key=lambda label: -size[label])[:MOST]
    return [label for label in size if label in chosen]


def _row(point: Point, params: tuple[str, ...], labels: list[str]) -> list[Text]:
    shown = [_value(point.values[name]) for name in params]
    if point.outcome is None:
        return [*map(Text, shown), *(Text("-") for _ in range(4 + len(labels))), Text("failed")]
    report, solution = point.outcome.report, point.outcome.solution
    slope = point.slopes[params[-1]]
    cells = [
        number(report.objective),
        "-" if slope is None else number(slope, 4),
        residual(report.feasibility),
    ]
    rows = report.constraints
    cells += [number(rows[label].multiplier, 4) if label in rows else "-" for label in labels]
    steps = f"{solution.iterations:,}" + (f"+{solution.passes:,}" if solution.passes else "")
    if report.solved:
        status = "solved"
    elif point.outcome.status != "stopped":
        status = point.outcome.status
    else:
        status = "not solved"
    return [
        *map(Text, shown),
        *map(Text, cells),
        Text(steps),
        Text(status, style="" if report.solved else "bold"),
    ]


def _value(value: Any) -> str:
    if isinstance(value, float | int):
        return number(value)
    return str(value)


def _values(point: Point) -> str:
    return ", ".join(f"{name} = {_value(value)}" for name, value in point.values.items())
