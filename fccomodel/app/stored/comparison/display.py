"""A comparison on the screen: progress run by run, and the tables, at 80 columns."""

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
from fccomodel.pipeline.endings import SPENT

if TYPE_CHECKING:
    from fccomodel.app.stored.comparison import Comparison, ComparisonProgress
    from fccomodel.app.stored.comparison.record import MeanAndDeviation
    from fccomodel.app.stored.comparison.runs import JobOutcome

#: Columns that fit beside the names with space between them.
MOST_COLUMNS = 5
#: The longest label in one line, in letters.
LONGEST_LABEL = 16
#: How numbers of each column are written.
FIGURES = dict.fromkeys(("gap", "violation", "KKT", "oracles"), residual) | {"seconds": "{:.3g}".format}
#: The columns of what a run uses, in which no algorithm is marked as the best.
USED = ("oracles", "seconds")
#: Steps below which a run says little about an algorithm.
TELLING_STEPS = 100


# ----------------------------------------------------------------------------------------- progress
def progress(
    console: Console, *, quiet: bool = False
) -> AbstractContextManager[Callable[[ComparisonProgress], None] | None]:
    """A callback for each run that ends: a bar on a terminal, a line elsewhere, None when quiet."""

    def line(step: ComparisonProgress) -> None:
        """Print a line for the last run."""
        console.print(f"{step.done}/{step.total}  {_last(step.run)}", markup=False, soft_wrap=True)

    return watched(console, _bar, line, quiet=quiet)


def _bar(step: ComparisonProgress, elapsed: float) -> RenderableType:
    """A progress bar with the last run below it."""
    line = Table.grid(padding=(0, 2), expand=False)
    bar = ProgressBar(total=step.total, completed=step.done, width=24)
    left = duration(elapsed * (step.total - step.done) / step.done)
    count = Text(f"{step.done} of {step.total} runs", style="bold")
    line.add_row(count, bar, duration(elapsed), Text(f"{left} left", style="dim"))
    return Group(line, Text(_last(step.run), style="dim", overflow="ellipsis", no_wrap=True))


def _last(run: JobOutcome) -> str:
    """A run in one line."""
    if run.job.trial:
        what = f"trial {settings(run.job.hyper)}"
    else:
        what = f"seed {run.job.seed}"
    text = run.error or f"objective {number(run.objective)}, violation {residual(run.violation)}"
    return f"{run.job.algorithm}, {what}: {text}"


def settings(hyper: Sequence[tuple[str, float]]) -> str:
    """``eta 0.01, gamma 0.5``; ``defaults`` if nothing is set."""
    return ", ".join(f"{name} {value:g}" for name, value in hyper) or "defaults"


# ------------------------------------------------------------------------------------------- tables
def comparison(record: Comparison) -> RenderableType:
    """The whole record: table, test rows, refused algorithms, tuned values, failures, notes."""
    if len(record.seeds) > 1:
        seeds = f"{len(record.seeds)} seeds"
    else:
        seeds = f"seed {record.seeds[0]}"
    parts: list[RenderableType | None] = [title(record.model, [record.sense, record.budget, seeds])]
    best = {name: record.best(name) for name in record.columns if name not in USED}
    parts.append(_table(record, record.columns, best))
    parts += [Text(""), Text(_legend(record), style="dim")]
    further = list(record.further.items())
    for start in range(0, len(further), MOST_COLUMNS):
        if record.test is None:
            where = "on the rows solved on"
        else:
            where = f"where {record.test}"
        columns = dict(further[start : start + MOST_COLUMNS])
        parts += [Text(""), Text(where, style="dim"), _table(record, columns, {})]
    parts.append(Text(""))
    parts.append(section("refused", [f"{name} {what}" for name, what in record.refused.items()]))
    parts.append(section("unproven", [f"{name} needs {what}" for name, what in record.unverified.items()]))
    parts.append(section("chosen", [_chosen(record, name) for name in record.chosen]))
    parts.append(section("failed", _failed(record)))
    parts.append(section("note", _notes(record)))
    return page(parts)


def _chosen(record: Comparison, name: str) -> str:
    """The values that tuning chose for an algorithm, with their objective on held-out rows."""
    objectives = {run.job.hyper: run.objective for run in record.trials if run.job.algorithm == name}
    hyper = record.chosen[name]
    if hyper in objectives:
        phrases = [f"{number(objectives[hyper])} on held-out rows"]
    else:
        phrases = []
    if hyper and () in objectives:
        phrases += [f"by default {number(objectives[()])}"]
    return f"{name}: {settings(hyper)}" + (f" ({', '.join(phrases)})" if phrases else "")


def _failed(record: Comparison) -> list[str]:
    """Each error of each algorithm, with the seeds that have it."""
    seeds: dict[tuple[str, str], list[str]] = {}
    for run in record.runs:
        if run.error:
            seeds.setdefault((run.job.algorithm, run.error), []).append(str(run.job.seed))
    return [
        f"{name}, seed{'s' * (len(numbers) > 1)} {', '.join(numbers)}: {error}"
        for (name, error), numbers in seeds.items()
    ]


def _notes(record: Comparison) -> list[str]:
    """Notes on how the runs ended, for the reader of the table."""
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
        if run.iterations < TELLING_STEPS and run.stopped in SPENT
    }
    if short:
        counts = ", ".join(f"{steps} steps of {name}" for name, steps in short.items())
        notes.append(
            f"{record.budget} are {counts}: raise --budget, or make steps cheaper, say by --option "
            "inner_batch=32."
        )
    return notes


def _table(
    record: Comparison, columns: Mapping[str, Callable[[JobOutcome], float]], best: Mapping[str, set[str]]
) -> Table:
    """A table of means over the seeds, with their deviations below."""
    padding = (0, 1 if len(columns) <= MOST_COLUMNS else 0)
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
    """The lines of a label: one, or for a long one a line for each option."""
    name, inside, options = label.partition("(")
    if len(label) > LONGEST_LABEL:
        return [name + inside, *(f"  {part}" for part in options.split(" "))]
    return [label]


def _cell(column: str, mean: MeanAndDeviation | None, best: bool) -> Text:
    """A mean in the table, with a star if it is the best; a dash if there is none."""
    if mean is None or not math.isfinite(mean.mean):
        return Text("-")
    shown = FIGURES.get(column, number)(mean.mean)
    return Text(f"{shown}*" if best else f"{shown} ", style="bold cyan" if best else "")


def _deviation(mean: MeanAndDeviation | None) -> str:
    """A standard deviation, or an empty text."""
    if mean is not None and math.isfinite(mean.sd):
        return f"±{residual(mean.sd)} "
    return ""


def _legend(record: Comparison) -> str:
    """The line below the table."""
    mean = "mean ±sd, " if len(record.seeds) > 1 else ""
    if record.constrained:
        within = f" (objective: where violation <= {record.tolerance:g})"
    else:
        within = ""
    return f"{mean}* best{within}"
