"""The result of a sweep: a row for each value, the slopes of the optimal value, and files of both."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fccomodel import pipeline
from fccomodel.app import habits
from fccomodel.app.shown.frames import frame
from fccomodel.app.shown.notebook.shown import Shown
from fccomodel.app.stored import results, store
from fccomodel.core.files import make_folder, write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from fccomodel.app.python.solved import Result

# Files of a saved sweep.
TABLE = "sweep.csv"
RECORD = "sweep.json"


@dataclass(frozen=True, eq=False, kw_only=True)
class SweepPoint:
    """One solve of a sweep.

    values    the values of the params
    outcome   the outcome; None if the solve failed
    error     the message of the failure
    """

    values: Mapping[str, Any]
    outcome: pipeline.Outcome | None = None
    error: str = ""

    @cached_property
    def slopes(self) -> dict[str, float | None]:
        """The change of the optimal value per unit of each param; None if it is unknown."""
        from fccomodel.report.around import sensitivity

        if self.outcome is None:
            return dict.fromkeys(self.values)
        report, bound = self.outcome.report, self.outcome.bound
        multipliers = {label: row.multiplier for label, row in report.constraints.items()}
        return {
            name: sensitivity.slope(bound, self.outcome.solution.variables, multipliers, name)
            for name in self.values
        }

    @property
    def row(self) -> dict[str, Any]:
        """Params, objective, slopes, violation, multipliers by label, KKT residual, steps, passes,
        iterations of the interior-point method, seconds, status and verdict."""
        if self.outcome is None:
            return {**self.values, "status": "failed", "verdict": self.error}
        report, solution = self.outcome.report, self.outcome.solution
        return {
            **self.values,
            "objective": report.objective,
            **{f"slope {name}": slope for name, slope in self.slopes.items()},
            "violation": report.feasibility,
            **{f"multiplier {label}": entry.multiplier for label, entry in report.constraints.items()},
            "epsilon": report.epsilon,
            "steps": solution.iterations,
            "passes": solution.passes,
            "interior": solution.interior,
            "seconds": self.outcome.wall_s,
            "status": self.outcome.status,
            "verdict": report.verdict,
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class Sweep(habits.Answering, Shown):
    """Solves along values of params. ``print`` shows the table, ``plot()`` the trade-off, and
    ``results`` has the result of each solve.

    points       a point for each combination of values that was solved, in order
    count        number of combinations that were to be solved
    interrupted  whether Ctrl-C ended the sweep
    """

    compiled: pipeline.Compiled
    params: tuple[str, ...]
    points: tuple[SweepPoint, ...]
    count: int
    interrupted: bool = False
    _called = "A sweep"

    def _instead(self) -> Mapping[str, str]:
        return habits.SWEEP

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, place: Any) -> Any:
        """The result of a solve, or a list of results; None for a solve that failed."""
        return self.results[place]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.results)

    @cached_property
    def results(self) -> list[Result | None]:
        """A ``Result`` for each point; None for a solve that failed."""
        from fccomodel.app.python.solved import Result

        return [None if p.outcome is None else Result(outcome=p.outcome) for p in self.points]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A row for each point, as ``SweepPoint.row``."""
        return [point.row for point in self.points]

    def values(self, name: str) -> list[Any]:
        """The value of a param at each point."""
        return [point.values[name] for point in self.points]

    @property
    def objectives(self) -> list[float]:
        """The optimal values, as the model states the objective; NaN for a solve that failed."""
        return [math.nan if p.outcome is None else p.outcome.report.objective for p in self.points]

    def to_pandas(self) -> Any:
        """The rows as a ``DataFrame``. F0529 without pandas."""
        return frame(self.rows, "A table of the sweep")

    @property
    def cautions(self) -> list[str]:
        """The cautions of all reports, each once."""
        messages: dict[str, None] = {}
        for point in self.points:
            if point.outcome is not None:
                messages |= dict.fromkeys(caution.message for caution in point.outcome.cautions)
        return list(messages)

    @property
    def json(self) -> dict[str, Any]:
        """The dictionary that ``save`` writes as ``sweep.json``."""
        problem = self.compiled.problem
        record = {
            "model": problem.name,
            "model_hash": self.compiled.hash,
            "sense": problem.objective.sense,
            "params": self.params,
            "rows": self.rows,
            "count": self.count,
            "interrupted": self.interrupted,
            "cautions": self.cautions,
            "versions": results.versions(),
        }
        return results.plain(record)

    def save(self, folder: str | Path) -> Path:
        """Write ``sweep.json``, ``sweep.csv``, and each solve as a folder of its own: ``01``, ``02``, ..."""
        folder = make_folder(Path(folder))
        digits = len(str(self.count))
        for k, point in enumerate(self.points, 1):
            if point.outcome is not None:
                with store.claim(folder / f"{k:0{digits}}") as claimed:
                    results.save(point.outcome, claimed)
        rows = self.rows
        columns = list(dict.fromkeys(name for row in rows for name in row))
        text = io.StringIO()
        writer = csv.DictWriter(text, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_text(folder / TABLE, text.getvalue())
        write_text(folder / RECORD, store.json_text(self.json))
        return folder

    def plot(self, param: str | None = None) -> Figure:
        """The optimal value against a param, with the slope of this curve at each value.

        The slopes come from the multipliers.
        """
        from fccomodel.app.python.sweeps import plots

        return plots.tradeoff(self, param)

    def __str__(self) -> str:
        from fccomodel.app.python.sweeps.display import table
        from fccomodel.app.shown import display

        return display.to_text(table(self))

    def _repr_html_(self) -> str:
        from fccomodel.app.python.sweeps.display import table
        from fccomodel.app.shown import display

        return display.to_html(table(self))

    def __repr__(self) -> str:
        return (
            f"<Sweep {self.compiled.problem.name}: {len(self)} of {self.count} values of "
            f"{', '.join(self.params)}>"
        )
