"""A solved problem as files: ``result.json``, ``variables.npz``, ``solver.py`` with ``data.pt``, the nets' scores; and back.

``result.json`` holds what it takes to judge the answer on other rows, and to score them: the model's text, the binding, the
statistics learned from the rows it was solved on (scaling, categories, groups), the names of entries; and the hashes of the files
that belong to it, among them ``arrays.npz`` with the arrays of the model.
"""

from __future__ import annotations

import copy
import dataclasses
import math
import platform
import re
import tomllib
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fccomodel import pipeline
from fccomodel.app import errors, explain, labelled, scoring, store
from fccomodel.app.answers import Answer
from fccomodel.app.history import History
from fccomodel.app.notebook.shown import Shown
from fccomodel.core import ir
from fccomodel.core.diagnostics import FccoError, refuse
from fccomodel.core.files import digest, read_text, whole, write_text
from fccomodel.core.quoting import literal
from fccomodel.core.source import Source
from fccomodel.core.version import __version__

if TYPE_CHECKING:
    from fccomodel.data.bound import Bound
    from fccomodel.report import KKTReport
    from fccomodel.report.confidence import Intervals
    from fccomodel.solver.emit import Program
    from fccomodel.solver.run import Solution

FORMAT = 3
RESULT, VARIABLES, SOLVER, DATA, SCORES = "result.json", "variables.npz", "solver.py", "data.pt", "scores.npz"
HELD, ARRAYS = "heldout.npz", "arrays.npz"


def plain(value: Any) -> Any:
    """The value as JSON has it: arrays as lists, records as objects, and what is not finite as null."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(entry) for entry in value]
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    return plain(value.item()) if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else str(value)


# ------------------------------------------------------------------------------------------------------------ to files
def to_json(outcome: pipeline.Outcome) -> dict[str, Any]:
    """Everything about a solved problem but its arrays."""
    planned, solution = outcome.planned, outcome.solution
    compiled, options = planned.compiled, planned.options
    record = {
        "format": FORMAT,
        "model": compiled.problem.name,
        "model_hash": compiled.hash,
        "algorithm": planned.plan.algorithm,
        "via": planned.plan.via,
        "rejected": planned.plan.rejected,
        **explain.plan_json(planned.plan),
        **report_json(outcome.report),
        "race": outcome.race,
        "heldout": outcome.heldout,
        "holdout": holdout_json(planned),
        "margins": outcome.margins,
        "population": outcome.population,
        "values": outcome.shown,
        "sense": compiled.problem.objective.sense,
        "params": outcome.bound.params,
        "seed": options["seed"][0],
        "wall_s": outcome.wall_s,
        "iterations": solution.iterations,
        "passes": solution.passes,
        "way": solution.way,
        "interior": solution.interior,
        "stopped": outcome.stopped,
        "interrupted": solution.interrupted,
        "status": outcome.status,
        "failure": None if solution.failure is None else asdict(solution.failure),
        "options": {name: {"value": value, "origin": origin} for name, (value, origin) in options.items()},
        "warnings": [f"{w.code}: {w.message}" for w in compiled.problem.warnings],
        "versions": versions(),
        "source": {"name": compiled.source.name, "text": compiled.text},
        "binding": binding_json(planned.binding),
        "sources": _without_encoding(outcome.bound),
        "encoding": {name: table.encoding for name, table in outcome.bound.tables.items()},
        "sizes": scoring.sizes(outcome.bound),
        "labels": outcome.bound.labels,
        "axes": labelled.axes(outcome.bound),
        "notes": [*planned.plan.summary, *solution.notes, *outcome.bound.notes, *outcome.report.notes],
        "history": solution.history,
    }
    return plain(record)


def report_json(report: KKTReport) -> dict[str, Any]:
    """The part of ``result.json`` that a report alone decides; ``evaluate --json`` prints the same keys."""
    fields = report.to_json()
    kkt = {name: fields.pop(name) for name in ("stationarity", "feasibility", "complementarity")}
    kkt |= {name: fields.pop(name) for name in ("residual", "slack", "gradient", "own")}
    return {name: value for name, value in fields.items() if name not in ("notes", "wall_s")} | {"kkt": kkt}


def holdout_json(planned: pipeline.Planned) -> dict[str, Any] | None:
    """What was held out: as given, and of rows chosen at random the seed and their count; ``save`` writes their numbers."""
    if planned.holdout is None:
        return None
    rows = {name: len(numbers) for name, numbers in planned.held.items()}
    return {"given": planned.holdout, "seed": planned.seed if rows else None, "rows": rows or None}


def _without_encoding(bound: Bound) -> dict[str, Any]:
    """What was bound; the statistics have an entry of their own."""
    return {name: {k: v for k, v in source.items() if k != "encoding"} for name, source in bound.sources.items()}


def binding_json(binding: pipeline.Binding) -> dict[str, Any]:
    """What was bound, so far as it can be bound again: files by absolute path; tables and modules of a Python session by kind."""
    spec, folder = binding.spec, binding.data_dir
    if isinstance(spec, Path):
        folder = folder or spec.parent
        spec = tomllib.loads(read_text(spec, kind="binding"))
    return {
        "spec": spec,
        "data": {name: _origin(value) for name, value in binding.data.items()},
        "params": dict(binding.params),
        "nets": {name: _origin(value, path=False) for name, value in binding.nets.items()},
        "data_dir": None if folder is None else str(folder.resolve()),
    }


def _origin(value: Any, *, path: bool = True) -> Any:
    """A file or a net's text as it is, or None for an object that lives in Python alone."""
    if isinstance(value, str | Path):
        text = str(value)
        return str(Path(text).resolve()) if path and ":" not in text else text
    return None


def versions() -> dict[str, str]:
    """Of what decided the numbers."""
    import torch

    return {
        "fccomodel": __version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
    }


def save(outcome: pipeline.Outcome, claimed: store.Claimed) -> dict[str, Any]:
    """Write all files of a result, which replace those of a former one as a whole; what ``result.json`` says."""
    from fccomodel.solver.errors import NOT_EMITTED

    record = to_json(outcome)
    with store.replacing(claimed, (RESULT, VARIABLES, SOLVER, DATA, SCORES, HELD, ARRAYS)) as folder:
        write_arrays(folder / VARIABLES, outcome.solution.variables)
        try:
            copy_of = write_program(repeating(outcome.program, outcome.solution), folder / SOLVER)
            record["notes"] += _copied(outcome.bound, copy_of)
        except FccoError as error:
            if any(one.code != NOT_EMITTED.id for one in error.diagnostics):
                raise
            # a net that lives in Python alone: the answer is kept without the program
            record["notes"] += [f"no {SOLVER}: {one.message}; {one.reason}" for one in error.diagnostics]
        if outcome.bound.arrays:
            write_arrays(folder / ARRAYS, outcome.bound.arrays)
        if scores := dict(net_scores(outcome.bound, outcome.solution.variables)):
            write_arrays(folder / SCORES, scores)
            record["scores_file"] = SCORES
        if outcome.planned.held:
            write_arrays(folder / HELD, outcome.planned.held)
            record["holdout"]["file"] = HELD
        record = store.sealed(record, folder)
        write_text(folder / RESULT, store.json_text(record))
    return record


def _copied(bound: Bound, data: Path) -> list[str]:
    """That a program's data repeat those of tables in files, and how large they are."""
    from fccomodel.data.bound import mapped

    names = [name for name, table in bound.tables.items() if any(map(mapped, table.columns.values()))]
    size = f"{data.stat().st_size / 1e6:,.1f} MB"
    return [f"{data.name} has a copy of {', '.join(names)}, {size}: {SOLVER} runs without the prepared folder"] if names else []


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """An npz file. ``np.savez`` would take a variable named ``file`` for its own argument."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, value in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(value), allow_pickle=False)


def repeating(program: Program, solution: Solution) -> Program:
    """The program with the numbers of steps and passes that a run took as its own: started anew, it goes the same way."""
    given: dict[str, Any] = {"SECONDS": None, "CALLS": None, "ITERATIONS": solution.iterations, "PLANNED": solution.planned}
    given |= {"WAY": solution.way, "PASSES": solution.passes}
    return dataclasses.replace(program, text=with_constants(program.text, given, "  # as the run that wrote this file"))


def emitted(planned: pipeline.Planned) -> Program:
    """The program of a plan; F0805 where margins are asked for, which take a solve to find."""
    if "margin" in planned.options:
        refuse(errors.of_solve_alone("margin", "emit"))
    return pipeline.emit(planned)


def write_program(program: Program, path: Path) -> Path:
    """The solver's text, and beside it, under a name of its own, the data that it reads; the path of the latter. F0608 where
    neither a text nor torch.export can write a net."""
    import torch

    from fccomodel.solver.emit.modules import exported

    tensors = {**program.data, **dict(exported(program.modules))}
    data = path.with_name(DATA if path.name == SOLVER else f"{path.stem}.{DATA}")
    with whole(data) as temporary:
        try:
            torch.save(tensors, temporary)
        except RuntimeError as error:  # torch's word for a full disk
            raise OSError(error) from None
    given = {"DATA_FILE": data.name, "DATA_SHA256": digest(data)}
    write_text(path, with_constants(program.text, given))
    return data


def with_constants(text: str, given: Mapping[str, Any], comment: str = "") -> str:
    """A program's text with other values of some of its constants."""
    lines = {name: f"{name} = {literal(value)}{comment}" for name, value in given.items()}
    return re.sub(rf"^({'|'.join(lines)}) = .*$", lambda found: lines[found[1]], text, flags=re.M)


def net_scores(bound: Bound, variables: Mapping[str, np.ndarray]) -> Iterator[tuple[str, np.ndarray]]:
    """Each net's output on every bound row of the column it is applied to, in the rows' order.

    The key is the net's name; where a net is applied to several columns, ``NET_TABLE_COLUMN``.
    """
    uses: dict[str, dict[tuple[str, str], ir.NetCall]] = {}
    for call in (node for node in ir.walk(*bound.problem.roots) if isinstance(node, ir.NetCall)):
        if isinstance(call.arg, ir.Column) and call.arg.name is not None and isinstance(call.arg.binder.domain, ir.RowSet):
            uses.setdefault(call.net, {})[call.arg.binder.domain.table, call.arg.name] = call
    for net, calls in uses.items():
        for (table, column), call in calls.items():
            key = net if len(calls) == 1 else f"{net}_{table}_{column}"
            yield key, _outputs(bound, call, variables, bound.tables[table].columns[column])


def _outputs(bound: Bound, call: ir.NetCall, variables: Mapping[str, np.ndarray], rows: np.ndarray) -> np.ndarray:
    """The net at every row, (n, *output), in float64; a few thousand rows at a time."""
    import torch

    from fccomodel.evaluation.interpret import net_apply

    chunk, module = 8192, copy.deepcopy(bound.nets[call.net]).double().eval()
    weights = torch.as_tensor(np.asarray(variables[call.params.name]), dtype=torch.float64)
    with torch.no_grad():
        parts = [
            net_apply(module, weights, torch.as_tensor(rows[start : start + chunk], dtype=torch.float64)).numpy()
            for start in range(0, len(rows), chunk)
        ]
    return np.concatenate(parts) if parts else np.zeros(0)


# ---------------------------------------------------------------------------------------------------------- from files
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Stored(Answer):
    """A result read back: its record, its variables, and the model compiled again; ``numbers`` are params and arrays."""

    folder: Path
    record: Mapping[str, Any]
    variables: Mapping[str, np.ndarray]
    compiled: pipeline.Compiled
    binding: pipeline.Binding
    numbers: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Stored {self.record['model']}: objective {self.record['objective']:.6g}, {self.record['verdict']}>"

    @property
    def multipliers(self) -> dict[str, Any]:
        """Those that the report states, by the constraint's name: a number, or an array over a family's labels."""
        return labelled.by_family(self.report_multipliers, self.record["axes"]["constraints"])

    @property
    def report_multipliers(self) -> dict[str, float]:
        """The same by constraint label, those that are known."""
        rows = self.record.get("constraints") or {}
        return {label: row["multiplier"] for label, row in rows.items() if row["multiplier"] is not None}

    @property
    def history(self) -> History:
        """After each stage: objective and violation of the best point so far, oracle calls, seconds."""
        return History(self.record["history"])

    def fitted(self) -> scoring.Fitted:
        problem, record = self.compiled.problem, self.record
        return scoring.Fitted(
            compiled=self.compiled,
            point=self.variables,
            numbers=self.numbers,
            sizes=record["sizes"],
            labels={name: tuple(labels) for name, labels in record["labels"].items()},
            encoding=record["encoding"],
            sections=scoring.sections(record["sources"]),
            nets=scoring.Modules(problem, self.binding, record["sizes"]),
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
        folder=Path(), record=to_json(outcome), variables=outcome.solution.variables, compiled=planned.compiled,
        binding=planned.binding, numbers={**outcome.bound.arrays, **outcome.bound.params},
    )  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Evaluation(Shown):
    """An answer judged on rows of choice. ``print(evaluation)`` shows the report."""

    stored: Stored
    bound: Bound
    report: KKTReport
    intervals: Intervals
    shown: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        from fccomodel.app import display

        return display.to_text(display.evaluation(self))

    def _repr_html_(self) -> str:
        from fccomodel.app import display

        return display.to_html(display.evaluation(self))

    def __repr__(self) -> str:
        return f"<Evaluation {self.stored.record['model']}: objective {self.report.objective:.6g}, {self.report.verdict}>"

    def to_json(self) -> dict[str, Any]:
        """The keys of ``result.json`` that a report decides, and what it was evaluated on."""
        head = {"model": self.stored.record["model"], "algorithm": self.stored.record["algorithm"]}
        rows = {name: table.n for name, table in self.bound.tables.items()}
        notes = [*self.bound.notes, *self.report.notes]
        tail = {
            "intervals": self.intervals,
            "values": self.shown,
            "rows": rows,
            "sources": _without_encoding(self.bound),
            "notes": notes,
        }
        return plain(head | report_json(self.report) | tail)


def load(folder: Path, *, nets: Mapping[str, Any] | None = None, allow_python: bool = False) -> Stored:
    """Read a result folder; every way in which it is not one, or not as it was written, has its own message (F0810)."""
    if not folder.is_dir():
        refuse(errors.no_result_folder(folder))

    def parsed(record: Any) -> tuple[Any, Source, pipeline.Binding]:
        if record.get("format") != FORMAT:
            refuse(errors.format_of_result(folder / RESULT, record.get("format"), FORMAT))
        return record, Source(text=record["source"]["text"], name=record["source"]["name"]), _binding(record["binding"])

    (record, source, binding), files = store.read(folder, RESULT, parsed)
    variables = _arrays(files.get(VARIABLES, folder / VARIABLES))
    numbers = {name: np.asarray(value, float) for name, value in record["params"].items()}
    numbers |= _arrays(files[ARRAYS]) if ARRAYS in files else {}
    compiled = pipeline.compile_model(source)
    if compiled.hash != record["model_hash"]:
        refuse(errors.other_model(folder / RESULT, record["model_hash"], compiled.hash, record["versions"]["fccomodel"]))
    binding = replace(binding, nets={**binding.nets, **(nets or {})}, allow_python=allow_python)
    named = labelled.variables(variables, record["axes"]["variables"])
    return Stored(folder=folder, record=record, variables=named, compiled=compiled, binding=binding, numbers=numbers)


def _arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an npz file; F0810 where it cannot be read."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise FccoError([errors.unreadable_variables(path, error)]) from None


def _binding(stored: Mapping[str, Any]) -> pipeline.Binding:
    """What ``binding_json`` could keep."""
    return pipeline.Binding(
        spec=stored["spec"],
        data={name: value for name, value in stored["data"].items() if value is not None},
        params=stored["params"],
        nets={name: value for name, value in stored["nets"].items() if value is not None},
        data_dir=None if stored["data_dir"] is None else Path(stored["data_dir"]),
    )


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
    """The report of a stored answer on other rows, with the scaling and the categories that it was solved with."""
    from fccomodel import report as kkt
    from fccomodel.evaluation.values import lets, values
    from fccomodel.report import estimated

    wanted = lets(stored.compiled.problem, show)
    binding = replace(
        stored.binding,
        data={**stored.binding.data, **(data or {})},
        nets={**stored.binding.nets, **(nets or {})},
        data_dir=data_dir or stored.binding.data_dir,
        allow_python=allow_python or stored.binding.allow_python,
    )
    seed = int(stored.record["seed"])
    bound = pipeline.bind(stored.compiled, binding, seed=seed, encoding=stored.record["encoding"], where=where)
    for name, variable in stored.compiled.problem.variables.items():
        if name not in stored.variables:
            refuse(errors.variable_not_stored(stored.folder / VARIABLES, name))
        _check_shape(name, variable, stored.variables[name], bound)
    report = kkt.report(bound, stored.variables, multipliers=stored.solvers_multipliers, seed=seed, judging=True)
    sure = estimated.sure(bound, stored.variables, seed=seed, afford=pipeline.HELD_S)
    shown = values(bound, stored.variables, wanted, seed=seed)
    return Evaluation(stored=stored, bound=bound, report=report, intervals=sure, shown=shown)


def _check_shape(name: str, variable: ir.Variable, value: np.ndarray, bound: Bound) -> None:
    """A stored variable must have the size that the data now asks for."""
    shape = [bound.dims.get(size) if isinstance(size, str) else size for size in variable.shape]
    if None in shape or variable.net is not None:
        return
    if tuple(shape) != value.shape:
        refuse(errors.stored_shape(name, value.shape, tuple(shape)))
