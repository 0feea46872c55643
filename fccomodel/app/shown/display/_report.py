"""The report of where a run ended: objective, constraints, residuals, and how the answer was found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from fccomodel.app import again
from fccomodel.app.shown import explain
from fccomodel.app.shown.display._constraints import (
    CONVENTION,
    MOST_ROWS,
    complementarities,
    constraints,
    kinds,
)
from fccomodel.app.shown.display._layout import number, page, residual, seconds, section, title
from fccomodel.app.shown.display._new_rows import margins, population_lines
from fccomodel.app.shown.display._variables import variable_lines
from fccomodel.core import ir
from fccomodel.core.options import AUTOMATIC
from fccomodel.pipeline import params

if TYPE_CHECKING:
    import numpy as np

    from fccomodel.app.stored.results import Evaluation
    from fccomodel.pipeline import Outcome, Planned
    from fccomodel.plan import Plan
    from fccomodel.report import KKTReport
    from fccomodel.report.cautions import Warned
    from fccomodel.report.kkt.active import Sensitivity
    from fccomodel.report.new_rows.intervals import Intervals


def outcome(result: Outcome, *, verbose: bool = False) -> RenderableType:
    """The report of a solve: where it ended and how good that is; ``verbose``: how it was found too,
    and every option."""
    planned, solution = result.planned, result.solution
    seed = planned.options["seed"][0]
    facts = [result.answered.words, seconds(result.wall_s), f"seed {seed}"]
    parts: list[RenderableType | None] = [title(result.problem.name, facts)]
    at = variable_lines(result.bound, solution.variables)
    parts += report(result.report, result.problem, variables=at, cautions=result.cautions, verbose=verbose)
    parts.append(shown(result.shown, "of the rows solved on" if result.heldout is not None else ""))
    if result.heldout is not None:
        parts += [
            Text(""),
            heldout(result.heldout, result.problem, f"held out: {_held_out(planned)}"),
            Text(""),
        ]
    if result.margins is not None:
        parts += [margins(result.margins), Text("")]
    parts.append(
        section("new rows", [] if result.population is None else population_lines(result.population))
    )
    if result.race is not None:
        parts.append(section("race", result.race.lines()))
    if solution.stopped:
        parts.append(section("stopped", [result.stopped]))
    if planned.plan.optimizer:
        parts.append(section("steps", list(planned.plan.practice)))
    # what may be changed for another run
    if result.report.solved:
        told = []
    else:
        told = list(solution.notes)
    if verbose:
        parts += _found(result)
    else:
        parts += [section("how", told)]
    parts.append(section("defined", [f"not proved: {words}" for words in planned.plan.undefined]))
    parts.append(section("data", [*data_lines(result.bound.sources), *result.bound.notes]))
    known = params.values(result.bound, planned.binding).items()
    parts.append(section("params", [value.sentence(name) for name, value in known if value.differs]))
    parts.append(section("options", option_lines(planned.options) if verbose else []))
    parts.append(section("again", [again.command(planned)] if verbose else []))
    if not verbose:
        parts.append(section("more", [Text(_more(planned.plan, result.answered.method), style="dim")]))
    warned = _unverified(planned.plan)
    return Group(*([warned] if warned is not None else []), page(parts))


def _held_out(planned: Planned) -> str:
    """The condition on the rows held out, or their share and the seed of their choice."""
    share = planned.holdout
    if isinstance(share, float):
        return f"{share:.3g} of the rows, seed {planned.seed}"
    return str(share)


def _found(result: Outcome) -> list[RenderableType | None]:
    """How an answer was found, whole."""
    plan = result.planned.plan
    return [
        section("how", [*plan.summary, *explain.choice_lines(plan), *result.solution.notes]),
        section("assumes", explain.assumption_lines(plan)),
        section("practice", list(plan.practice)),
    ]


def _more(plan: Plan, method: str) -> str:
    """What a report leaves out unless it is asked for: the theorem with the standing of its
    assumptions, and the rest.
    ``method``: what gave the answer."""
    counts = Counter(
        str(finding.standing) if finding.holds else "beyond it" for finding in plan.findings.values()
    )
    met = ", ".join(f"{count} {standing}" for standing, count in counts.items())
    title = plan.title
    if plan.optimizer:
        return "--verbose: how, options; all in result.json"
    if met:
        about = [f"assumptions: {met}"]
    else:
        about = []
    if method != title:
        about += [f"about its steps, not about {method}"]
    if about:
        how = f"{title}'s theorem ({'; '.join(about)})"
    else:
        how = f"{title}'s theorem"
    return f"--verbose: {how}, practice, options; all in result.json"


def _unverified(plan: Plan) -> RenderableType | None:
    """The first line of a report where no theorem covers the run."""
    if not plan.unverified:
        return None
    return Padding(Text(unverified(plan), style="bold red"), (0, 1, 0, 1))


def unverified(plan: Plan) -> str:
    """That no theorem covers a run, and which assumptions fail."""
    return f"UNVERIFIED: no theorem covers this run; {plan.algorithm} needs {'; and '.join(plan.unverified)}"


def evaluation(result: Evaluation, *, verbose: bool = False) -> RenderableType:
    """The report of a stored answer on rows of choice."""
    record = result.stored.record
    rows = ", ".join(f"{name}: {table.n:,} rows" for name, table in result.bound.tables.items())
    method = record.get("answered_by", {}).get("method", record["algorithm"])
    parts: list[RenderableType | None] = [title(str(record["model"]), [f"answer of {method}", rows])]
    problem = result.stored.compiled.problem
    parts += [*report(result.report, problem, cautions=result.cautions, verbose=verbose), shown(result.shown)]
    parts += [Text(""), heldout(result.intervals, result.stored.compiled.problem, "as a sample"), Text("")]
    parts.append(section("data", [*data_lines(result.bound.sources), *result.bound.notes]))
    return page(parts)


def report(
    kkt: KKTReport,
    problem: ir.Problem,
    *,
    variables: Sequence[Text] = (),
    cautions: Sequence[Warned] = (),
    verbose: bool = False,
) -> list[RenderableType | None]:
    """Objective, constraints, KKT residuals and the verdict: the part that a point alone decides."""
    goal = problem.objective
    parts: list[RenderableType | None] = [
        Text.assemble(
            (f"{goal.sense} ", "dim"),
            (f"{goal.label or 'objective'}  ", "bold"),
            (number(kkt.objective), "bold cyan"),
        ),
        Text(""),
    ]
    if kkt.constraints:
        parts += [constraints(kkt.constraints, kinds(problem)), Text(CONVENTION, style="dim"), Text("")]
    parts.append(section("at", list(variables)))
    parts.append(section("KKT", _residuals(kkt, verbose)))
    parts.append(
        section(
            "verdict",
            [Text(kkt.verdict, style="bold"), *([kkt.advice] if kkt.advice not in kkt.verdict else [])],
        )
    )
    parts.append(section("caution", [Text(str(one), style="yellow") for one in cautions]))
    parts.append(section("optimum", [str(kkt.gap)] if kkt.gap is not None else []))
    if kkt.qualification is not None and (verbose or kkt.qualification.dependent):
        parts.append(section("points", [str(kkt.qualification)]))
    if kkt.sensitivity is not None:
        parts.append(section("if moved", sensitivity_lines(kkt.sensitivity)))
    parts.append(section("notes", list(kkt.notes)))
    return parts


def _residuals(kkt: KKTReport, verbose: bool) -> list[str]:
    """The three residuals with the best multipliers, and where more is asked for with the solver's own."""
    parts = f"stationarity {residual(kkt.stationarity)}, feasibility {residual(kkt.feasibility)}"
    lines = [f"{parts}, complementarity {residual(kkt.complementarity)}{'' if kkt.exact else ' (sampled)'}"]
    if verbose and kkt.constraints and kkt.own is not None:
        own = (
            f"stationarity {residual(kkt.own['stationarity'])}, complementarity "
            f"{residual(kkt.own['complementarity'])}"
        )
        lines += [f"with the solver's own multipliers: {own}", *complementarities(kkt.constraints)]
    return lines


HOLDS = {True: "holds", False: "fails", None: "cannot tell"}


def heldout(intervals: Intervals, problem: ir.Problem, name: str) -> RenderableType:
    """The objective and every constraint with 95% confidence, and whether it holds; the worst where
    there are many."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim", padding=(0, 2))
    table.add_column(name, overflow="fold", max_width=40)
    for column in ("value", "± (95%)", "with 95% confidence"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_row(
        problem.objective.label or "objective",
        number(intervals.objective.value),
        residual(intervals.objective.half),
        "",
    )
    worst = sorted(intervals.constraints, key=lambda label: -intervals.constraints[label].value)[:MOST_ROWS]
    for label in (label for label in intervals.constraints if label in worst):
        interval = intervals.constraints[label]
        table.add_row(Text(label), f"{interval.value:+.2e}", residual(interval.half), HOLDS[interval.holds])
    lines: list[RenderableType] = [table]
    if len(intervals.constraints) > len(worst):
        lines.append(
            Text(
                f"{len(intervals.constraints) - len(worst)} more constraints have smaller values", style="dim"
            )
        )
    if intervals.why:
        said = f"no half-widths: {intervals.why}"
    else:
        said = f"delete-a-group jackknife over the rows, {intervals.groups} groups"
    if intervals.cut:
        said = f"{said}; {intervals.cut}"
    return Group(*lines, Text(f"constraints hold when left - right <= 0; {said}", style="dim"))


def sensitivity_lines(sensitivity: Sensitivity) -> list[str]:
    """How the optimum moves when ``left - right <= t``, constraint by constraint; those with no effect
    are counted."""
    lines = []
    for label, slope in sensitivity.objective.items():
        if slope or label in sensitivity.variables:
            moved = "; ".join(
                f"{name} by {_largest(value)}" for name, value in sensitivity.variables.get(label, {}).items()
            )
            lines.append(f"{label} <= t: the objective by {slope:+.3g} t{f', {moved}' if moved else ''}")
    lines = lines[:MOST_ROWS] + (
        [f"{len(lines) - MOST_ROWS} more (result.json)"] if len(lines) > MOST_ROWS else []
    )
    if len(idle := [label for label, slope in sensitivity.objective.items() if not slope]):
        lines.append(
            f"no effect: {', '.join(idle[:4])}{f' and {len(idle) - 4} more' if len(idle) > 4 else ''}"
        )
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
    if rows and values:
        lines = [Text(rows, style="dim")]
    else:
        lines = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            members = value
        else:
            members = {name: value}
        lines += [Text.assemble((f"{label}  ", "dim"), _nested(entry)) for label, entry in members.items()]
    return section("values", lines)


def _nested(value: Any) -> str:
    """A number, or a bracketed list of what is in a vector."""
    if isinstance(value, list):
        return f"[{', '.join(map(_nested, value))}]"
    return number(value)


def option_lines(options: Mapping[str, tuple[Any, str]]) -> list[Text]:
    """One line per origin: who gave which values."""
    groups: dict[str, list[str]] = {}
    for name, (value, origin) in options.items():
        if value is not None:
            groups.setdefault(origin, []).append(
                f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
            )
    order = sorted(groups, key=lambda origin: origin == AUTOMATIC)
    return [Text.assemble((f"{origin}: ", "dim"), ", ".join(groups[origin])) for origin in order]


def data_lines(sources: Mapping[str, Any]) -> list[str]:
    """What was bound: where it is from, the rows used, and those left out with the reason."""
    lines = []
    for name, source in sources.items():
        if source.get("origin"):
            said = [str(source["origin"])]
        else:
            said = []
        if "rows" in source:
            said += [f"{source['rows']:,} rows"]
        said += [
            f"{drop['rows']:,} left out ({drop['reason']})"
            for drop in source.get("dropped", ())
            if drop["rows"]
        ]
        lines.append(f"{name}: {', '.join(said)}")
    return lines
