"""A stored answer evaluated on chosen rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fccomodel import pipeline
from fccomodel.app.scoring import scoring
from fccomodel.app.shown.notebook.shown import Shown
from fccomodel.app.stored import errors
from fccomodel.app.stored.results.reading import Stored
from fccomodel.app.stored.results.record import VARIABLES, plain, report_json, without_encoding
from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse

if TYPE_CHECKING:
    from fccomodel.data.bound import Bound
    from fccomodel.report import KKTReport
    from fccomodel.report.cautions import Warned
    from fccomodel.report.new_rows.intervals import Intervals

#: Cautions about any rows, not only those that an answer was found on.
OF_OTHER_ROWS = ("other units", "rows left out")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Evaluation(Shown):
    """An answer judged on rows of choice. ``print(evaluation)`` shows the report."""

    stored: Stored
    bound: Bound
    report: KKTReport
    intervals: Intervals
    shown: Mapping[str, Any] = field(default_factory=dict)

    @property
    def cautions(self) -> tuple[Warned, ...]:
        """Warnings about these rows."""
        from fccomodel.report import cautions

        return tuple(
            one for one in cautions.of(cautions.Subject(bound=self.bound)) if one.name in OF_OTHER_ROWS
        )

    def __str__(self) -> str:
        from fccomodel.app.shown import display

        return display.to_text(display.evaluation(self))

    def _repr_html_(self) -> str:
        from fccomodel.app.shown import display

        return display.to_html(display.evaluation(self))

    def __repr__(self) -> str:
        return (
            f"<Evaluation {self.stored.record['model']}: objective {self.report.objective:.6g}, "
            f"{self.report.verdict}>"
        )

    def to_json(self) -> dict[str, Any]:
        """The keys of ``result.json`` that a report decides, and the rows that it was evaluated on."""
        head = {"model": self.stored.record["model"], "algorithm": self.stored.record["algorithm"]}
        rows = {name: table.n for name, table in self.bound.tables.items()}
        notes = [*self.bound.notes, *self.report.notes]
        tail = {
            "intervals": self.intervals,
            "values": self.shown,
            "rows": rows,
            "sources": without_encoding(self.bound),
            "notes": notes,
            "cautions": [{"name": one.name, "message": one.message} for one in self.cautions],
        }
        return plain(head | report_json(self.report) | tail)


def evaluate(
    stored: Stored,
    *,
    data: Mapping[str, Any] | None = None,
    nets: Mapping[str, Any] | None = None,
    data_dir: Path | None = None,
    where: str | None = None,
    allow_python: bool = False,
    show: Iterable[str] = (),
) -> Evaluation:
    """The report of a stored answer on other rows, with the scaling and categories of the solve."""
    from fccomodel import report as kkt
    from fccomodel.evaluation.values import lets, values
    from fccomodel.report.new_rows import subsample

    lets(stored.compiled.problem, show)
    binding = replace(
        stored.binding,
        data={**stored.binding.data, **(data or {})},
        nets={**stored.binding.nets, **(nets or {})},
        data_dir=data_dir or stored.binding.data_dir,
        allow_python=allow_python or stored.binding.allow_python,
    )
    seed = int(stored.record["seed"])
    bound = pipeline.bind(
        stored.compiled, binding, seed=seed, encoding=stored.record["encoding"], where=where
    )
    if stored.statistics:
        from fccomodel.data.nets import with_buffers

        restored = {
            name: with_buffers(module, scoring.of_net(stored.statistics, name))
            for name, module in bound.nets.items()
        }
        bound = replace(bound, nets=restored)
    for name, variable in stored.compiled.problem.variables.items():
        if name not in stored.variables:
            refuse(errors.variable_not_stored(stored.folder / VARIABLES, name))
        _check_shape(name, variable, stored.variables[name], bound)
    report = kkt.report(
        bound, stored.variables, multipliers=stored.solvers_multipliers, seed=seed, judging=True
    )
    sure = subsample.sure(bound, stored.variables, seed=seed, afford=pipeline.HELD_OUT_SECONDS)
    shown = values(bound, stored.variables, lets(bound.problem, show), seed=seed)
    return Evaluation(stored=stored, bound=bound, report=report, intervals=sure, shown=shown)


def _check_shape(name: str, variable: ir.Variable, value: np.ndarray, bound: Bound) -> None:
    """Refuse a stored variable whose size differs from what the data ask for."""
    shape = [bound.dims.get(size) if isinstance(size, str) else size for size in variable.shape]
    if None in shape or variable.net is not None:
        return
    if tuple(shape) != value.shape:
        refuse(errors.stored_shape(name, value.shape, tuple(shape)))
