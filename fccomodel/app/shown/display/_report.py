"""The report of a run: objective, constraints, residuals, and the way to the answer."""

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
    MOST_ROWS,
    complementarities,
    constraints,
    convention,
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
    """The report of a solve.

    With ``verbose`` it also has the way to the answer, the assumptions, and every option.
    """
    planned, solution = result.planned, result.solution
    seed = planned.options["seed"][0]
    facts = [result.answered.words, seconds(result.wall_s), f"seed {seed}"]
    parts: list[RenderableType | None] = [title(result.problem.name, facts)]
    lines = variable_lines(result.bound, solution.variables)
    parts += report(result.report, result.problem, variables=lines, cautions=result.cautions, verbose=verbose)
    parts.append(shown(result.shown, "of the rows solved on" if result.heldout is not None else ""))
    parts += _other_rows(result)
    if result.race is not None:
        parts.append(section("race", result.race.lines()))
    if solution.stopped:
        parts.append(section("stopped", [result.stopped]))
    if planned.plan.optimizer:
        parts.append(section("steps", list(planned.plan.practice)))
    if verbose:
        parts += _way_to_answer(result)
    else:
        parts.append(section("practice", planned.plan.of_nets))
        if not result.report.solved:
            parts.append(section("how", list(solution.notes)))
    parts.append(section("defined", [f"not proved: {words}" for words in planned.plan.undefined]))
    parts.append(section("data", data_lines(result.bound.sources, result.bound.notes)))
    values = params.values(result.bound, planned.binding).items()
    parts.append(section("params", [value.sentence(name) for name, value in values if value.differs]))
    if verbose:
        parts.append(section("options", option_lines(planned.options)))
        parts.append(section("again", [again.command(planned)]))
    else:
        parts.append(section("more", [Text(_more(planned.plan, result.answered.method), style="dim")]))
    if planned.plan.unverified:
        warning = Text(unverified(planned.plan), style="bold red")
        return Group(Padding(warning, (0, 1, 0, 1)), page(parts))
    return Group(page(parts))


def _other_rows(result: Outcome) -> list[RenderableType | None]:
    """The parts of a report about rows that were not solved on: held-out rows, and new rows."""
    parts: list[RenderableType | None] = []
    if result.heldout is not None:
        name = f"held out: {_held_out(result.planned)}"
        parts += [Text(""), heldout(result.heldout, result.problem, name), Text("")]
    if result.margins is not None:
        parts += [margins(result.margins), Text("")]
    if result.population is not None:
        parts.append(section("new rows", population_lines(result.population)))
    return parts


def _held_out(planned: Planned) -> str:
    """The condition on the held-out rows, or their share and the seed that chose them."""
    share = planned.holdout
    if isinstance(share, float):
        return f"{share:.3g} of the rows, seed {planned.seed}"
    return str(share)


def _way_to_answer(result: Outcome) -> list[RenderableType | None]:
    """The plan, the reasons for the algorithm, its assumptions, and the departures from them."""
    plan = result.planned.plan
    return [
        section("how", [*plan.summary, *explain.choice_lines(plan), *result.solution.notes]),
        section("assumes", explain.assumption_lines(plan)),
        section("practice", list(plan.practice)),
    ]


def _more(plan: Plan, method: str) -> str:
    """A line about the parts that only ``--verbose`` shows, with the standing of the assumptions.

    method   the method that gave the answer
    """
    standings = [
        str(finding.standing) if finding.holds else "beyond it" for finding in plan.findings.values()
    ]
    if plan.optimizer:
        return "--verbose: how, options; all in result.json"
    notes = []
    if standings:
        counts = ", ".join(f"{count} {standing}" for standing, count in Counter(standings).items())
        notes.append(f"assumptions: {counts}")
    if method != plan.title:
        notes.append(f"about its steps, not about {method}")
    theorem = f"{plan.title}'s theorem"
    if notes:
        theorem += f" ({'; '.join(notes)})"
    return f"--verbose: {theorem}, practice, options; all in result.json"


def unverified(plan: Plan) -> str:
    """A warning that no theorem covers a run, with the assumptions that fail."""
    return f"UNVERIFIED: no theorem covers this run; {plan.algorithm} needs {'; and '.join(plan.unverified)}"


def evaluation(result: Evaluation, *, verbose: bool = False) -> RenderableType:
    """The report of a stored answer on other rows."""
    record = result.stored.record
    rows = ", ".join(f"{name}: {table.n:,} rows" for name, table in result.bound.tables.items())
    method = record.get("answered_by", {}).get("method", record["algorithm"])
    parts: list[RenderableType | None] = [title(str(record["model"]), [f"answer of {method}", rows])]
    problem = result.stored.compiled.problem
    parts += report(result.report, problem, cautions=result.cautions, verbose=verbose)
    parts.append(shown(result.shown))
    parts += [Text(""), heldout(result.intervals, problem, "as a sample"), Text("")]
    parts.append(section("data", data_lines(result.bound.sources, result.bound.notes)))
    return page(parts)


def report(
    kkt: KKTReport,
    problem: ir.Problem,
    *,
    variables: Sequence[Text] = (),
    cautions: Sequence[Warned] = (),
    verbose: bool = False,
) -> list[RenderableType | None]:
    """Objective, constraints, KKT residuals and the verdict: the parts that depend on the point alone."""
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
        meaning = Text(convention(kkt.constraints), style="dim")
        parts += [constraints(kkt.constraints, kinds(problem)), meaning, Text("")]
    parts.append(section("at", list(variables)))
    parts.append(section("KKT", _residuals(kkt, verbose)))
    verdict: list[Any] = [Text(kkt.verdict, style="bold")]
    if kkt.advice not in kkt.verdict:
        verdict.append(kkt.advice)
    parts.append(section("verdict", verdict))
    parts.append(section("caution", [Text(str(caution), style="yellow") for caution in cautions]))
    if kkt.gap is not None:
        from fccomodel.report.certificates import gap

        parts.append(section("optimum", [f"{kkt.gap}{gap.remark(kkt.gap.value, kkt.objective)}"]))
    if kkt.qualification is not None and (verbose or kkt.qualification.dependent):
        parts.append(section("points", [str(kkt.qualification)]))
    if kkt.sensitivity is not None:
        parts.append(section("if moved", sensitivity_lines(kkt.sensitivity)))
    parts.append(section("notes", list(kkt.notes)))
    return parts


def _residuals(kkt: KKTReport, verbose: bool) -> list[str]:
    """The three residuals with the best multipliers; if ``verbose``, with the solver's own ones too."""
    line = (
        f"stationarity {residual(kkt.stationarity)}, feasibility {residual(kkt.feasibility)}, "
        f"complementarity {residual(kkt.complementarity)}"
    )
    if not kkt.exact:
        line += " (sampled)"
    if not verbose or not kkt.constraints or kkt.own is None:
        return [line]
    own = (
        f"with the solver's own multipliers: stationarity {residual(kkt.own['stationarity'])}, "
        f"complementarity {residual(kkt.own['complementarity'])}"
    )
    return [line, own, *complementarities(kkt.constraints)]


#: Whether a constraint holds for the distribution that the rows are drawn from.
HOLDS = {True: "holds", False: "fails", None: "cannot tell"}


def heldout(intervals: Intervals, problem: ir.Problem, name: str) -> RenderableType:
    """The objective and the constraints with 95% confidence intervals; of many, the worst."""
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
    for label, interval in intervals.constraints.items():
        if label in worst:
            value = f"{interval.value:+.2e}"
            table.add_row(Text(label), value, residual(interval.half), HOLDS[interval.holds])
    lines: list[RenderableType] = [table]
    hidden = len(intervals.constraints) - len(worst)
    if hidden:
        lines.append(Text(f"{hidden} more constraints have smaller values", style="dim"))
    lines += [Text(sentence) for sentence in intervals.events]
    if intervals.why:
        method = f"no half-widths: {intervals.why}"
    else:
        method = f"delete-a-group jackknife over the rows, {intervals.groups} groups"
    if intervals.cut:
        method = f"{method}; {intervals.cut}"
    return Group(*lines, Text(f"constraints hold when left - right <= 0; {method}", style="dim"))


def sensitivity_lines(sensitivity: Sensitivity) -> list[str]:
    """The change of the optimum when the right side of a constraint grows by t, for each constraint.

    Constraints without an effect are counted.
    """
    lines = []
    for label, slope in sensitivity.objective.items():
        changes = sensitivity.variables.get(label, {})
        if slope or label in sensitivity.variables:
            line = f"{label} <= t: the objective by {slope:+.3g} t"
            if changes:
                variables = [f"{name} by {_largest(value)}" for name, value in changes.items()]
                line += f", {'; '.join(variables)}"
            lines.append(line)
    if len(lines) > MOST_ROWS:
        lines[MOST_ROWS:] = [f"{len(lines) - MOST_ROWS} more (result.json)"]
    idle = [label for label, slope in sensitivity.objective.items() if not slope]
    if idle:
        line = f"no effect: {', '.join(idle[:4])}"
        if len(idle) > 4:
            line += f" and {len(idle) - 4} more"
        lines.append(line)
    if sensitivity.why:
        lines.append(f"how the variables move is not computed: {sensitivity.why}")
    return lines


def _largest(value: np.ndarray) -> str:
    """The three entries of a derivative that are largest in size."""
    flat = value.reshape(-1)
    if flat.size == 1:
        return f"{float(flat[0]):+.3g} t"
    order = sorted(range(flat.size), key=lambda k: -abs(float(flat[k])))[:3]
    return ", ".join(f"{float(flat[k]):+.3g} t in entry {k + 1}" for k in order)


def shown(values: Mapping[str, Any], rows: str = "") -> RenderableType | None:
    """The values of lets, member by member for a family.

    rows   the rows that the values belong to, in words; empty if no rows were held out
    """
    lines = []
    if rows and values:
        lines.append(Text(rows, style="dim"))
    for name, value in values.items():
        if isinstance(value, Mapping):
            members = value
        else:
            members = {name: value}
        lines += [Text.assemble((f"{label}  ", "dim"), _nested(entry)) for label, entry in members.items()]
    return section("values", lines)


def _nested(value: Any) -> str:
    """A number, or the entries of a list in brackets."""
    if isinstance(value, list):
        return f"[{', '.join(map(_nested, value))}]"
    return number(value)


def option_lines(options: Mapping[str, tuple[Any, str]]) -> list[Text]:
    """A line for each origin with the options that it set; automatic values last."""
    groups: dict[str, list[str]] = {}
    for name, (value, origin) in options.items():
        if isinstance(value, float):
            value = f"{value:g}"
        if value is not None:
            groups.setdefault(origin, []).append(f"{name} {value}")
    order = sorted(groups, key=lambda origin: origin == AUTOMATIC)
    return [Text.assemble((f"{origin}: ", "dim"), ", ".join(groups[origin])) for origin in order]


def data_lines(sources: Mapping[str, Any], notes: Sequence[str]) -> list[str]:
    """The sources of the data: the origin, the number of rows, and rows left out with the reason.

    notes   what binding noted; notes of rows left out are not repeated
    """
    lines = []
    reasons = [drop["reason"] for source in sources.values() for drop in source.get("dropped", ())]
    for name, source in sources.items():
        facts = []
        if source.get("origin"):
            facts.append(str(source["origin"]))
        if "rows" in source:
            facts.append(f"{source['rows']:,} rows")
        for drop in source.get("dropped", ()):
            if drop["rows"]:
                reason = drop["reason"].removeprefix(f"{name}: ")
                facts.append(f"{drop['rows']:,} left out ({reason})")
        lines.append(f"{name}: {', '.join(facts)}")
    return [*lines, *(note for note in notes if not note.startswith(tuple(reasons)))]
