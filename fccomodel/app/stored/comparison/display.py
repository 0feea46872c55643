"""What a person sees of a comparison: progress run by run, and the tables, at 80 columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from fccomodel.app.shown.display import duration, number, page, residual, section, title, watched

if TYPE_CHECKING:
    from fccomodel.app.stored.comparison import Comparison, Step
    from fccomodel.app.stored.comparison.record import Mean
    from fccomodel.app.stored.comparison.runs import Run

#: columns that fit beside the names with space between them
BESIDE = 5
#: the widest label in one line
WIDEST = 16
FIGURES = dict.fromkeys(("gap", "violation", "KKT", "oracles"), residual) | {"seconds": "{:.3g}".format}
#: what a run takes
USED = ("oracles", "seconds")
#: steps below which a run says little about an algorithm
FEW = 100
SPENT = ("the budget is used up", "the time is used up")


# ----------------------------------------------------------------------------------------- progress
def progress(
    console: Console, *, quiet: bool = False
) -> AbstractContextManager[Callable[[Step], None] | None]:
    """A callback for each run that ends: a bar on a terminal, a line elsewhere, None when quiet."""

    def line(step: Step) -> None:
        console.print(f"{step.done}/{step.total}  {_last(step.run)}", markup=False, soft_wrap=True)

    return watched(console, _bar, line, quiet=quiet)


def _bar(step: Step, elapsed: float) -> RenderableType:
    line = Table.grid(padding=(0, 2), expand=False)
    bar = ProgressBar(total=step.total, completed=step.done, width=24)
    left = duration(elapsed * (step.total - step.done) / step.done)
    count = Text(f"{step.done} of {step.total} runs", style="bold")
    line.add_row(count, bar, duration(elapsed), Text(f"{left} left", style="dim"))
    return Group(line, Text(_last(step.run), style="dim", overflow="ellipsis", no_wrap=True))


def _last(run: Run) -> str:
    if run.job.trial:
        what = "trial " + settings(run.job.hyper)
    else:
        what = f"seed {run.job.seed}"
    said = run.error or f"objective {number(run.objective)}, violation {residual(run.violation)}"
    return f"{run.job.algorithm}, {what}: {said}"


def settings(hyper: Sequence[tuple[str, float]]) -> str:
    """``eta 0.01, gamma 0.5``; defaults where nothing was set."""
    return ", ".join(f"{name} {value:g}" for name, value in hyper) or "defaults"


# ------------------------------------------------------------------------------------------- tables
def comparison(record: Comparison) -> RenderableType:
    """The whole record: the table, what was refused, the test rows, what was tuned."""
    if len(record.seeds) > 1:
        seeds = f"{len(record.seeds)} seeds"
    else:
        seeds = f"seed {record.seeds[0]}"
    parts: list[RenderableType | None] = [title(record.model, [record.sense, record.budget, seeds])]
    best = {name: record.best(name) for name in record.columns if name not in USED}
    parts.append(_table(record, record.columns, best))
    parts += [Text(""), Text(_legend(record), style="dim")]
    further = list(record.further.items())
    for start in range(0, len(further), BESIDE):
        if record.test is None:
            where = "on the rows solved on"
        else:
            where = f"where {record.test}"
        columns = dict(further[start : start + BESIDE])
        parts += [Text(""), Text(where, style="dim"), _table(record, columns, {})]
    parts.append(Text(""))
    parts.append(section("refused", [f"{name} {what}" for name, what in record.refused.items()]))
    parts.append(section("unproven", [f"{name} needs {what}" for name, what in record.unverified.items()]))
    parts.append(section("chosen", [_chosen(record, name) for name in record.chosen]))
    parts.append(section("failed", _failed(record)))
    parts.append(section("note", _notes(record)))
    return page(parts)


def _chosen(record: Comparison, name: str) -> str:
    """What tuning chose for an algorithm, and the objective on held-out rows by which it did."""
    held = {run.job.hyper: run.objective for run in record.trials if run.job.algorithm == name}
    hyper = record.chosen[name]
    if hyper in held:
        said = [f"{number(held[hyper])} on held-out rows"]
    else:
        said = []
    if hyper and () in held:
        said += [f"by default {number(held[()])}"]
    return f"{name}: {settings(hyper)}" + (f" ({', '.join(said)})" if said else "")


def _failed(record: Comparison) -> list[str]:
    """Each error of each algorithm, with the seeds that met it."""
    seeds: dict[tuple[str, str], list[str]] = {}
    for run in record.runs:
        if run.error:
            seeds.setdefault((run.job.algorithm, run.error), []).append(str(run.job.seed))
    return [
        f"{name}, seed{'s' * (len(met) > 1)} {', '.join(met)}: {error}"
        for (name, error), met in seeds.items()
    ]


def _notes(record: Comparison) -> list[str]:
    """What a reader of the table must know of how the runs ended."""
    notes = []
    if record.interrupted and record.runs:
        notes.append("Interrupted: the runs that were done are shown.")
    elif record.interrupted:
        notes.append(
            f"Interrupted while tuning, after {len(record.trials)} trials; chosen: the best of the rounds "
            "that ended."
        )
    spread = [
        record.mean(name, lambda run: run.objective) for name in record.algorithms if len(record.of(name)) > 1
    ]
    if spread and all(mean is not None and mean.sd == 0 for mean in spread):
        notes.append("The seeds make no difference: steps take all rows. --option inner_batch=32 draws them.")
    short = {
        run.job.algorithm: run.iterations
        for run in record.runs
        if run.iterations < FEW and run.stopped in SPENT
    }
    if short:
        counts = ", ".join(f"{steps} steps of {name}" for name, steps in short.items())
        notes.append(
            f"{record.budget} are {counts}: raise --budget, or make steps cheaper, say by --option "
            "inner_batch=32."
        )
    return notes


def _table(
    record: Comparison, columns: Mapping[str, Callable[[Run], float]], best: Mapping[str, set[str]]
) -> Table:
    """Means over the seeds with their deviations beneath."""
    padding = (0, 1 if len(columns) <= BESIDE else 0)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim", padding=padding)
    table.add_column("algorithm", overflow="fold")
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    for name in record.algorithms:
        if not record.of(name):
            continue
        means = {column: record.mean(name, read) for column, read in columns.items()}
        first, *rest = _folded(name)
        table.add_row(
            first, *(_cell(column, mean, name in best.get(column, ())) for column, mean in means.items())
        )
        if len(record.of(name)) > 1:
            beneath = [_deviation(mean) for mean in means.values()]
        else:
            beneath = []
        if beneath or rest:
            table.add_row("\n".join(rest), *(Text(text, style="dim") for text in beneath))
    return table


def _folded(label: str) -> list[str]:
    """A label with its options in lines that leave the figures their room."""
    name, inside, options = label.partition("(")
    if len(label) > WIDEST:
        return [name + inside, *(f"  {part}" for part in options.split(" "))]
    return [label]


def _cell(column: str, mean: Mean | None, best: bool) -> Text:
    if mean is None or not math.isfinite(mean.mean):
        return Text("-")
    shown = FIGURES.get(column, number)(mean.mean)
    return Text(f"{shown}*" if best else f"{shown} ", style="bold cyan" if best else "")


def _deviation(mean: Mean | None) -> str:
    if mean is not None and math.isfinite(mean.sd):
        return f"±{residual(mean.sd)} "
    return ""


def _legend(record: Comparison) -> str:
    mean = "mean ±sd, " if len(record.seeds) > 1 else ""
    return f"{mean}* best" + (
        f" (objective: where violation <= {record.tolerance:g})" if record.constrained else ""
    )
