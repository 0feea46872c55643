"""A solved problem read back from files, with its model compiled again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from fccomodel import pipeline
from fccomodel.app import habits
from fccomodel.app.scoring import scoring
from fccomodel.app.shown import display, labelled, page, plots, texts
from fccomodel.app.shown.history import History
from fccomodel.app.stored import errors, store
from fccomodel.app.stored.results.record import ARRAYS, FORMAT, RESULT, STATISTICS, VARIABLES, to_json
from fccomodel.app.stored.results.recorded import Recorded
from fccomodel.app.stored.results.schema import ENTRIES, LATER
from fccomodel.core import arrays, ir
from fccomodel.core.diagnostics import FccoError, refuse
from fccomodel.core.schema import misfits
from fccomodel.core.source import Source

#: The entries of a record that its report has, beside constraints and residuals.
REPORTED = (
    "objective",
    "epsilon",
    "relative",
    "verdict",
    "advice",
    "solved",
    "failure",
    "gap",
    "qualification",
    "sensitivity",
    "matrices",
    "exact",
    "error",
)


class StoredReport:
    """The report of a stored answer. Its attributes have the names of those of a solve's report.

    constraints   by label a record with ``value``, ``multiplier``, ``left``, ``right``, ...
    gap           a record with ``value`` and ``how``, or None
    """

    def __init__(self, record: Mapping[str, Any]):
        self._record = record

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name == "constraints":
            return {label: SimpleNamespace(**row) for label, row in (self._record[name] or {}).items()}
        if name in self._record["kkt"]:
            return self._record["kkt"][name]
        if name not in REPORTED or name not in self._record:
            habits.no_attribute("The report of a stored answer", name, {}, REPORTED)
        value = self._record[name]
        if name == "gap" and value is not None:
            return SimpleNamespace(**value)
        return value

    def __dir__(self) -> list[str]:
        return sorted({"constraints", *self._record["kkt"], *REPORTED})

    def __repr__(self) -> str:
        return f"<report: objective {self._record['objective']:.6g}, {self._record['verdict']}>"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Stored(Recorded):
    """A result read back: its record, its variables, and the model compiled again; ``numbers`` are
    params and arrays, ``statistics`` the buffers of the nets by ``net:buffer``."""

    folder: Path
    record: Mapping[str, Any]
    variables: Mapping[str, np.ndarray]
    compiled: pipeline.Compiled
    binding: pipeline.Binding
    numbers: Mapping[str, np.ndarray] = field(default_factory=dict)
    statistics: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __repr__(self) -> str:
        return (
            f"<Stored {self.record['model']}: objective {self.record['objective']:.6g}, "
            f"{self.record['verdict']}>"
        )

    @property
    def json(self) -> dict[str, Any]:
        """The content of ``result.json``."""
        return dict(self.record)

    @property
    def plot(self) -> plots.Plots:
        """Pictures: ``plot()``, ``plot.convergence()``, ``plot.variables()``,
        ``plot.constraints()``, ``plot.multipliers()``, ``plot.groups()``. ``plot.roc(rows)`` needs the
        rows of a solve in memory."""
        return plots.Plots(self.record, display.kinds(self.compiled.problem), self.variables)

    def html(self) -> texts.Page:
        """The result as a page for a browser, which needs no network.

        F0529 without jinja2, latex2mathml or matplotlib.
        """
        return texts.Page(page.html(self))

    @property
    def report(self) -> StoredReport:
        """Objective, constraints and KKT residuals, as the report of the solve stated them."""
        return StoredReport(self.record)

    @property
    def multipliers(self) -> dict[str, Any]:
        """The multipliers in the report, by the constraint's name: a number, or an array over a family's
        labels.
        """
        return labelled.by_family(self.report_multipliers, self.record["axes"]["constraints"])

    @property
    def report_multipliers(self) -> dict[str, float]:
        """The multipliers in the report, by constraint label; labels with unknown multipliers are left
        out.
        """
        rows = self.record.get("constraints") or {}
        return {label: row["multiplier"] for label, row in rows.items() if row["multiplier"] is not None}

    @property
    def history(self) -> History:
        """One entry a stage: objective and violation of the best point so far, oracle calls, seconds."""
        return History(self.record["history"])

    def fitted(self) -> scoring.Fitted:
        """The answer without its data, from the record."""
        problem, record = self.compiled.problem, self.record
        return scoring.Fitted(
            compiled=self.compiled,
            point=self.variables,
            numbers=self.numbers,
            sizes=record["sizes"],
            labels={name: tuple(labels) for name, labels in record["labels"].items()},
            encoding=record["encoding"],
            sections=scoring.sections(record["sources"]),
            nets=scoring.Modules(problem, self.binding, record["sizes"], self.statistics),
            samplers=self.binding.samplers,
        )

    @property
    def solvers_multipliers(self) -> dict[str, float]:
        """The solver's own, by constraint label."""
        own = self.record["kkt"].get("own") or {"multipliers": {}}
        return {label: value for label, value in own["multipliers"].items() if value is not None}


def at_hand(outcome: pipeline.Outcome) -> Stored:
    """A result as if it had been stored and read back."""
    planned = outcome.planned
    return Stored(
        folder=Path(),
        record=to_json(outcome),
        variables=outcome.solution.variables,
        compiled=planned.compiled,
        binding=planned.binding,
        numbers={**outcome.bound.arrays, **outcome.bound.params},
    )


def load(folder: Path, *, nets: Mapping[str, Any] | None = None, allow_python: bool = False) -> Stored:
    """Read a result folder; every way in which it is not one, or not as it was written, has its own
    message (F0810)."""
    if not folder.is_dir():
        refuse(errors.no_result_folder(folder))

    def parsed(record: Any) -> tuple[Any, Source, pipeline.Binding]:
        """The record, its model's text and its binding."""
        if record.get("format") != FORMAT:
            refuse(errors.format_of_result(folder / RESULT, record.get("format"), FORMAT))
        if wrong := misfits(record, ENTRIES, LATER):
            raise ValueError(f"its entry `{wrong[0]}` is not as a solve writes it")
        source = Source(text=record["source"]["text"], name=record["source"]["name"])
        return record, source, _binding(record["binding"])

    (record, source, binding), files = store.read(folder, RESULT, parsed)
    variables = _arrays(files.get(VARIABLES, folder / VARIABLES))
    numbers = {name: np.asarray(value, float) for name, value in record["params"].items()}
    if ARRAYS in files:
        numbers |= _arrays(files[ARRAYS])
    statistics = _arrays(files[STATISTICS]) if STATISTICS in files else {}
    compiled = pipeline.compile_model(source)
    if compiled.hash != record["model_hash"]:
        refuse(
            errors.other_model(
                folder / RESULT, record["model_hash"], compiled.hash, record["versions"]["fccomodel"]
            )
        )
    binding = replace(binding, nets={**binding.nets, **(nets or {})}, allow_python=allow_python)
    _demand_variables(compiled.problem, record["sizes"], variables, folder / VARIABLES)
    _demand_numbers(numbers, folder / ARRAYS)
    axes = record["axes"]["variables"]
    if other := next(
        (name for name, value in variables.items() if not _has_axes(value, axes.get(name, ()))), None
    ):
        refuse(
            errors.not_a_result(
                folder / RESULT, ValueError(f"the axes of `{other}` are not those of its numbers")
            )
        )
    named = labelled.variables(variables, axes)
    return Stored(
        folder=folder,
        record=record,
        variables=named,
        compiled=compiled,
        binding=binding,
        numbers=numbers,
        statistics=statistics,
    )


def _demand_variables(
    problem: ir.Problem, sizes: Mapping[str, int], variables: Mapping[str, np.ndarray], path: Path
) -> None:
    """Raise F0810 unless there are the model's variables alone, in their shapes, of finite numbers."""
    if unknown := next((name for name in variables if name not in problem.variables), None):
        refuse(errors.variable_not_declared(path, unknown))
    for name, variable in problem.variables.items():
        if name not in variables:
            refuse(errors.variable_not_stored(path, name))
        value = variables[name]
        shape: tuple[int | None, ...] = (None,)  # a net's weights have no declared size
        if not variable.net:
            shape = tuple(sizes.get(n) if isinstance(n, str) else n for n in variable.shape)
        if len(shape) != value.ndim or any(
            n not in (None, m) for n, m in zip(shape, value.shape, strict=True)
        ):
            refuse(errors.stored_shape(name, value.shape, shape))
    _demand_numbers(variables, path)


def _has_axes(value: np.ndarray, axes: Sequence[tuple[str, Sequence[Any] | None]]) -> bool:
    """Whether an array has the named axes, each as long as the list of its names. True without axes."""
    lengths = [n if names is None else len(names) for n, (_, names) in zip(value.shape, axes, strict=False)]
    return not axes or len(axes) == value.ndim and tuple(lengths) == value.shape


def _demand_numbers(arrays: Mapping[str, np.ndarray], path: Path) -> None:
    """Raise F0810 if an array has numbers that are not real and finite."""
    for name, value in arrays.items():
        if value.dtype.kind not in "biuf" or not np.isfinite(value).all():
            refuse(errors.stored_not_numbers(path, name))


def _arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an npz file. Raises F0810 if it cannot be read."""
    try:
        return arrays.read(path)
    except arrays.NotArrays as error:
        raise FccoError([errors.unreadable_variables(path, error)]) from None


def _binding(stored: Mapping[str, Any]) -> pipeline.Binding:
    """The binding that ``binding_json`` could keep."""
    return pipeline.Binding(
        spec=stored["spec"],
        data={name: value for name, value in stored["data"].items() if value is not None},
        params=stored["params"],
        nets={name: value for name, value in stored["nets"].items() if value is not None},
        data_dir=None if stored["data_dir"] is None else Path(stored["data_dir"]),
    )
