"""The report of where a run ended: objective, constraints, residuals, and how the answer was found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from fccomodel.app import explain
from fccomodel.app.display._layout import duration, number, page, residual, section, title
from fccomodel.core import ir

if TYPE_CHECKING:
    import numpy as np

    from fccomodel.app.results import Evaluation
    from fccomodel.pipeline import Outcome, Planned
    from fccomodel.plan import Plan
    from fccomodel.report import KKTReport
    from fccomodel.report.active import Sensitivity
    from fccomodel.report.confidence import Intervals

TOLERANCE = 1e-3  # a constraint violated by no more than this is marked as satisfied; its value is shown in any case
MOST_ROWS = 12
CONVENTION = "holds when left - right <= 0; multipliers (ν) are of the minimised problem"


def outcome(result: Outcome) -> RenderableType:
    """The whole report of a solve."""
    planned, solution = result.planned, result.solution
    seed = planned.options["seed"][0]
    passes = [f"{solution.passes:,} passes"] if solution.passes else []
    passes += [f"{solution.interior} of an interior-point method"] if solution.interior else []
    facts = [planned.plan.algorithm, f"{solution.iterations:,} steps", *passes, _seconds(result.wall_s), f"seed {seed}"]
    parts: list[RenderableType | None] = [title(result.problem.name, facts)]
    parts += report(result.report, result.problem)
    parts += [shown(result.shown, "of the rows solved on" if result.heldout is not None else ""), Text("")]
    if result.heldout is not None:
        parts += [heldout(result.heldout, result.problem, f"held out: {_held_out(planned)}"), Text("")]
    if solution.stopped:
        parts.append(section("stopped", [result.stopped]))
    parts.append(section("how", [*planned.plan.summary, *solution.notes]))
    parts.append(section("assumes", explain.assumption_lines(planned.plan)))
    parts.append(section("practice", list(planned.plan.practice)))
    parts.append(section("defined", [f"not proved: {words}" for words in planned.plan.undefined]))
    parts.append(section("data", [*data_lines(result.bound.sources), *result.bound.notes]))
    parts.append(section("options", option_lines(planned.options)))
    warned = _unverified(planned.plan)
    return Group(*([warned] if warned is not None else []), page(parts))


def _held_out(planned: Planned) -> str:
    """The condition on the rows held out, or their share and the seed of their choice."""
    share = planned.holdout
    return f"{share:.3g} of the rows, seed {planned.seed}" if isinstance(share, float) else str(share)


def _unverified(plan: Plan) -> RenderableType | None:
    """The first line of a report where no theorem covers the run."""
    if not plan.unverified:
        return None
    return Padding(Text(unverified(plan), style="bold red"), (0, 1, 0, 1))


def unverified(plan: Plan) -> str:
    """That no theorem covers a run, and which assumptions fail."""
    return f"UNVERIFIED: no theorem covers this run; {plan.algorithm} needs {'; and '.join(plan.unverified)}"


def evaluation(result: Evaluation) -> RenderableType:
    """The report of a stored answer on rows of choice."""
    record = result.stored.record
    rows = ", ".join(f"{name}: {table.n:,} rows" for name, table in result.bound.tables.items())
    parts: list[RenderableType | None] = [title(str(record["model"]), [f"answer of {record['algorithm']}", rows])]
    parts += [*report(result.report, result.stored.compiled.problem), shown(result.shown)]
    parts += [Text(""), heldout(result.intervals, result.stored.compiled.problem, "as a sample"), Text("")]
    parts.append(section("data", [*data_lines(result.bound.sources), *result.bound.notes]))
    return page(parts)


def report(kkt: KKTReport, problem: ir.Problem) -> list[RenderableType | None]:
    """Objective, constraints, KKT residuals and the verdict: the part that a point alone decides."""
    goal = problem.objective
    parts: list[RenderableType | None] = [
        Text.assemble(
            (f"{goal.sense} ", "dim"), (f"{goal.label or 'objective'}  ", "bold"), (number(kkt.objective), "bold cyan")
        ),
        Text(""),
    ]
    if kkt.constraints:
        parts += [constraints(kkt.constraints, kinds(problem)), Text(CONVENTION, style="dim"), Text("")]
    parts += [_residuals(kkt), Text("")]
    parts.append(section("verdict", [Text(kkt.verdict, style="bold"), *([kkt.advice] if kkt.advice not in kkt.verdict else [])]))
    parts.append(section("optimum", [str(kkt.gap)] if kkt.gap is not None else []))
    parts.append(section("points", [str(kkt.qualification)] if kkt.qualification is not None else []))
    if kkt.sensitivity is not None:
        parts.append(section("if moved", sensitivity_lines(kkt.sensitivity)))
    parts.append(section("notes", list(kkt.notes)))
    return parts


HOLDS = {True: "holds", False: "fails", None: "cannot tell"}


def heldout(intervals: Intervals, problem: ir.Problem, name: str) -> RenderableType:
    """The objective and every constraint with 95% confidence, and whether it holds; the worst where there are many."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim", padding=(0, 2))
    table.add_column(name, overflow="fold", max_width=40)
    for column in ("value", "± (95%)", "with 95% confidence"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_row(
        problem.objective.label or "objective", number(intervals.objective.value), residual(intervals.objective.half), ""
    )
    worst = sorted(intervals.constraints, key=lambda label: -intervals.constraints[label].value)[:MOST_ROWS]
    for label in (label for label in intervals.constraints if label in worst):
        interval = intervals.constraints[label]
        table.add_row(Text(label), f"{interval.value:+.2e}", residual(interval.half), HOLDS[interval.holds])
    lines: list[RenderableType] = [table]
    if len(intervals.constraints) > len(worst):
        lines.append(Text(f"{len(intervals.constraints) - len(worst)} more constraints have smaller values", style="dim"))
    said = (
        f"no half-widths: {intervals.why}"
        if intervals.why
        else f"delete-a-group jackknife over the rows, {intervals.groups} groups"
    )
    return Group(*lines, Text(f"constraints hold when left - right <= 0; {said}", style="dim"))


def sensitivity_lines(sensitivity: Sensitivity) -> list[str]:
    """How the optimum moves when ``left - right <= t``, constraint by constraint; those with no effect are counted."""
    lines = []
    for label, slope in sensitivity.objective.items():
        if slope or label in sensitivity.variables:
            moved = "; ".join(f"{name} by {_largest(value)}" for name, value in sensitivity.variables.get(label, {}).items())
            lines.append(f"{label} <= t: the objective by {slope:+.3g} t{f', {moved}' if moved else ''}")
    lines = lines[:MOST_ROWS] + ([f"{len(lines) - MOST_ROWS} more (result.json)"] if len(lines) > MOST_ROWS else [])
    if len(idle := [label for label, slope in sensitivity.objective.items() if not slope]):
        lines.append(f"no effect: {', '.join(idle[:4])}{f' and {len(idle) - 4} more' if len(idle) > 4 else ''}")
    return lines + ([f"how the variables move is not computed: {sensitivity.why}"] if sensitivity.why else [])


def _largest(value: np.ndarray) -> str:
    """The entries of a derivative that are largest in size."""
    flat = value.reshape(-1)
    if flat.size == 1:
        return f"{float(flat[0]):+.3g} t"
    order = sorted(range(flat.size), key=lambda k: -abs(float(flat[k])))[:3]
    return ", ".join(f"{float(flat[k]):+.3g} t in entry {k + 1}" for k in order)


def shown(values: Mapping[str, Any], rows: str = "") -> RenderableType | None:
    """The lets asked for, a family member by member; ``rows`` says of which rows where there are others."""
    lines = [Text(rows, style="dim")] if rows and values else []
    for name, value in values.items():
        members = value if isinstance(value, Mapping) else {name: value}
        lines += [Text.assemble((f"{label}  ", "dim"), _nested(entry)) for label, entry in members.items()]
    return section("values", lines)


def _nested(value: Any) -> str:
    """A number, or a bracketed list of what is in a vector."""
    return f"[{', '.join(map(_nested, value))}]" if isinstance(value, list) else number(value)


def _residuals(kkt: KKTReport) -> Table:
    """The three residuals, with the best multipliers and with the solver's own."""
    table = Table.grid(padding=(0, 3, 0, 0))
    table.add_column(width=22)
    names = ("stationarity", "feasibility", "complementarity")
    for _ in names:
        table.add_column(justify="right")
    table.add_row(
        Text(f"KKT residuals, {'exact' if kkt.exact else 'sampled'}", style="dim"), *(Text(name, style="dim") for name in names)
    )
    own = kkt.own if kkt.constraints else None
    label = "  best multipliers" if own is not None else ""
    table.add_row(label, residual(kkt.stationarity), residual(kkt.feasibility), residual(kkt.complementarity))
    if own is not None:
        table.add_row("  the solver's own", residual(own["stationarity"]), "", residual(own["complementarity"]))
    return table


def kinds(problem: ir.Problem) -> dict[str, str]:
    """``le`` or ``eq`` by the label of each constraint or family."""
    return {constraint.label: constraint.kind for constraint in problem.constraints}


def constraints(rows: Mapping[str, tuple[float, float, float]], kind: Mapping[str, str]) -> Table:
    """The constraints' table; past a dozen rows each family shows its worst ones and a count of the others."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim", padding=(0, 2))
    table.add_column("", width=1)
    table.add_column("constraint", overflow="fold", max_width=34)
    for name in ("left - right", "multiplier", "|ν c|"):
        table.add_column(name, justify="right", no_wrap=True)
    families: dict[str, list[str]] = {}
    for label in rows:
        families.setdefault(label.partition("[")[0], []).append(label)

    def violation(label: str) -> float:
        value = rows[label][0]
        return abs(value) if kind.get(label.partition("[")[0]) == "eq" else value

    most = MOST_ROWS if len(rows) <= MOST_ROWS else max(1, MOST_ROWS // len(families))
    for name, labels in sorted(families.items(), key=lambda family: -max(map(violation, family[1]))):
        shown = labels if len(labels) <= most else sorted(labels, key=violation, reverse=True)[:most]
        for label in shown:
            value, multiplier, complementarity = rows[label]
            good = violation(label) <= TOLERANCE
            mark = Text("✓", style="green") if good else Text("✗", style="bold red")
            table.add_row(
                mark,
                Text(label),
                Text(f"{value:+.2e}", style="" if good else "red"),
                number(multiplier),
                residual(complementarity),
            )
        if hidden := [violation(label) for label in labels if label not in set(shown)]:
            table.add_row(
                "",
                Text(f"{len(hidden)} more {name}, at most", style="dim"),
                Text(f"{max(hidden):+.2e}", style="dim"),
                "",
                "",
            )
    return table


def option_lines(options: Mapping[str, tuple[Any, str]]) -> list[Text]:
    """One line per origin: who gave which values."""
    groups: dict[str, list[str]] = {}
    for name, (value, origin) in options.items():
        if value is not None:
            groups.setdefault(origin, []).append(f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}")
    order = sorted(groups, key=lambda origin: origin == "automatic")
    return [Text.assemble((f"{origin}: ", "dim"), ", ".join(groups[origin])) for origin in order]


def data_lines(sources: Mapping[str, Any]) -> list[str]:
    """What was bound: where it is from, the rows used, and those left out with the reason."""
    lines = []
    for name, source in sources.items():
        said = [str(source["origin"])] if source.get("origin") else []
        said += [f"{source['rows']:,} rows"] if "rows" in source else []
        said += [f"{drop['rows']:,} left out ({drop['reason']})" for drop in source.get("dropped", ()) if drop["rows"]]
        lines.append(f"{name}: {', '.join(said)}")
    return lines


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if value < 60 else duration(value)
