"""The record of a comparison: its runs, their means over the seeds, and files of both."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, NamedTuple

from fccomodel.app.shown.frames import frame
from fccomodel.app.shown.notebook.shown import Shown
from fccomodel.app.stored.comparison.runs import Hyper, JobOutcome
from fccomodel.app.stored.results import plain, versions
from fccomodel.core.files import make_folder, write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The file with a row for each run.
TABLE = "compare.csv"
#: The file with everything.
RECORD = "compare.json"


class MeanAndDeviation(NamedTuple):
    """Mean and sample standard deviation over the seeds (0 for one seed)."""

    mean: float
    sd: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Comparison(Shown):
    """Algorithms side by side. ``print`` shows the table.

    runs        the finished runs, by algorithm and seed
    refused     algorithm -> what it lacks on this model
    chosen      hyper-parameters that tuning chose
    trials      what tuning tried: the objective on the rows held out
    unverified  algorithm -> the assumptions that fail, if it ran all the same
    reference   the optimal value, if it is known
    tolerance   violation up to which a run counts as feasible
    """

    model: str
    sense: str
    constrained: bool
    algorithms: tuple[str, ...]
    seeds: tuple[int, ...]
    runs: tuple[JobOutcome, ...]
    budget: str
    tolerance: float
    refused: Mapping[str, str] = field(default_factory=dict)
    unverified: Mapping[str, str] = field(default_factory=dict)
    chosen: Mapping[str, Hyper] = field(default_factory=dict)
    trials: tuple[JobOutcome, ...] = ()
    reference: float | None = None
    test: str | None = None
    interrupted: bool = False

    # -------------------------------------------------------------------------------------- figures
    def of(self, algorithm: str) -> list[JobOutcome]:
        """The runs of one algorithm that gave an answer, by seed."""
        runs = [run for run in self.runs if run.job.algorithm == algorithm and not run.error]
        return sorted(runs, key=lambda run: run.job.seed)

    def gap(self, objective: float) -> float:
        """The difference of an objective and the reference; positive if the objective is worse."""
        assert self.reference is not None
        if self.sense == "minimize":
            return objective - self.reference
        return self.reference - objective

    @property
    def columns(self) -> dict[str, Callable[[JobOutcome], float]]:
        """The table's columns: how each is read from a run."""
        columns: dict[str, Callable[[JobOutcome], float]] = {"objective": lambda run: run.objective}
        if self.reference is not None:
            columns["gap"] = lambda run: self.gap(run.objective)
        if self.constrained:
            columns["violation"] = lambda run: run.violation
        return columns | {
            "KKT": lambda run: run.kkt,
            "oracles": lambda run: run.oracles,
            "seconds": lambda run: run.seconds,
        }

    @property
    def further(self) -> dict[str, Callable[[JobOutcome], float]]:
        """The columns of the second table: values on the test rows, and lets that are one number."""
        columns: dict[str, Callable[[JobOutcome], float]] = {}
        shown = next((run.values for run in self.runs if not run.error), {})
        if self.test is not None:
            columns["objective"] = lambda run: (run.test or {})["objective"]
            if self.constrained:
                columns["violation"] = lambda run: (run.test or {})["violation"]
        for name in (name for name, value in shown.items() if isinstance(value, float)):
            columns[name] = lambda run, name=name: (run.values if run.test is None else run.test["values"])[
                name
            ]  # type: ignore[misc]
        return columns

    def mean(self, algorithm: str, read: Callable[[JobOutcome], float]) -> MeanAndDeviation | None:
        """A column's mean over the seeds, or None without a run."""
        values = [read(run) for run in self.of(algorithm)]
        if values:
            return MeanAndDeviation(fmean(values), stdev(values) if len(values) > 1 else 0.0)
        return None

    def best(self, column: str) -> set[str]:
        """The algorithms with the best mean of a column; none if all are alike.

        By objective or gap, only those count whose violation is within the tolerance.
        """
        read = self.columns[column]
        sign = -1.0 if column == "objective" and self.sense == "maximize" else 1.0
        means = {
            name: sign * mean.mean for name in self.algorithms if (mean := self.mean(name, read)) is not None
        }
        if column in ("objective", "gap"):
            means = {name: value for name, value in means.items() if self.feasible(name)}
        least = min((value for value in means.values() if math.isfinite(value)), default=math.inf)
        first = {name for name, value in means.items() if value == least}
        if len(first) < len(means) or len(means) == 1:
            return first
        return set()

    def feasible(self, algorithm: str) -> bool:
        """Whether the mean violation is within the tolerance."""
        violation = self.mean(algorithm, lambda run: run.violation)
        return violation is not None and violation.mean <= self.tolerance

    @property
    def curves(self) -> list[dict[str, Any]]:
        """A row per stage of every run: algorithm, seed, oracles, seconds, objective, violation."""
        keys = ("stage", "iteration", "oracles", "seconds", "objective", "violation")
        return [
            {"algorithm": run.job.algorithm, "seed": run.job.seed, **{key: entry.get(key) for key in keys}}
            for run in self.runs
            for entry in run.history
        ]

    # ---------------------------------------------------------------------------------------- files
    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row per run: its values, those on the test rows, lets by member, tuned hyper-parameters."""
        return [self._row(run) for run in self.runs]

    def _row(self, run: JobOutcome) -> dict[str, Any]:
        """The row of one run."""
        row: dict[str, Any] = {"algorithm": run.job.algorithm, "seed": run.job.seed}
        row |= {name: None if run.error else read(run) for name, read in self.columns.items()}
        row |= {"iterations": run.iterations, "stopped": run.stopped, "error": run.error} | _members(
            run.values
        )
        if run.test is not None:
            test = {
                "objective": run.test["objective"],
                "violation": run.test["violation"],
                **_members(run.test["values"]),
            }
            row |= {f"test {name}": value for name, value in test.items()}
        return row | {f"tuned {name}": value for name, value in run.job.hyper}

    def to_pandas(self) -> Any:
        """The rows as a ``DataFrame``. F0529 without pandas."""
        return frame(self.rows, "A table of the runs")

    def to_json(self) -> dict[str, Any]:
        """Everything, as JSON has it."""
        summary: dict[str, Any] = {}
        for name in self.algorithms:
            means = {column: self.mean(name, read) for column, read in self.columns.items()}
            summary[name] = {column: mean._asdict() for column, mean in means.items() if mean is not None}
        fields = "model sense algorithms seeds budget tolerance reference test refused unverified interrupted"
        record = {name: getattr(self, name) for name in fields.split()}
        record |= {"chosen": {name: dict(hyper) for name, hyper in self.chosen.items()}, "summary": summary}
        return plain(record | {"runs": self.runs, "trials": self.trials, "versions": versions()})

    def save(self, folder: str | Path, *, plot: bool = False) -> Path:
        """Write ``compare.json`` and ``compare.csv``; with ``plot``, the curves as PNG and SVG too."""
        folder = make_folder(Path(folder))
        if plot:
            from fccomodel.app.stored.comparison.plots import save

            save(self, folder)
        text = io.StringIO()
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        writer = csv.DictWriter(text, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        write_text(folder / TABLE, text.getvalue())
        write_text(
            folder / RECORD, json.dumps(self.to_json(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        )
        return folder

    # ---------------------------------------------------------------------------------------- shown
    def plot(self) -> Figure:
        """The curves as a matplotlib figure: distance of the objective from the optimum, violation and
        KKT residual, against oracle calls and seconds. Without a ``reference`` the best value of
        all runs stands for the optimum."""
        from fccomodel.app.stored.comparison.plots import figure

        return figure(self)

    def __str__(self) -> str:
        from fccomodel.app.shown.display import to_text
        from fccomodel.app.stored.comparison import display

        return to_text(display.comparison(self))

    def _repr_html_(self) -> str:
        from fccomodel.app.shown.display import to_html
        from fccomodel.app.stored.comparison import display

        return to_html(display.comparison(self))

    def __repr__(self) -> str:
        return f"<Comparison {self.model}: {', '.join(self.algorithms)}; {len(self.runs)} runs>"


def _members(values: Mapping[str, Any]) -> dict[str, Any]:
    """Lets as columns: a family member by member, a vector entry by entry."""
    columns: dict[str, Any] = {}
    for name, value in values.items():
        for label, entry in value.items() if isinstance(value, Mapping) else [(name, value)]:
            if isinstance(entry, list):
                columns |= {f"{label}.{k + 1}": e for k, e in enumerate(entry)}
            else:
                columns |= {label: entry}
    return columns
