"""``result.json``: everything about a solved problem except its arrays, as plain values."""

from __future__ import annotations

import math
import platform
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fccomodel import pipeline
from fccomodel.app import again
from fccomodel.app.scoring import scoring
from fccomodel.app.shown import explain, labelled
from fccomodel.core.files import read_text
from fccomodel.core.options import Unused
from fccomodel.core.version import __version__
from fccomodel.pipeline import params

if TYPE_CHECKING:
    from fccomodel.core import ir
    from fccomodel.data.bound import Bound
    from fccomodel.report import KKTReport

#: The version of the format.
FORMAT = 3
#: The file with everything except arrays.
RESULT = "result.json"
#: The file with the variables.
VARIABLES = "variables.npz"
#: The file with the program.
SOLVER = "solver.py"
#: The file with the program's data.
DATA = "data.pt"
#: The file with the nets' scores of all rows.
SCORES = "scores.npz"
#: The file with the numbers of rows held out.
HELD = "heldout.npz"
#: The file with the arrays of the model.
ARRAYS = "arrays.npz"
#: the buffers of nets, such as the running statistics of batch normalisation
STATISTICS = "statistics.npz"


def plain(value: Any) -> Any:
    """The value as JSON: arrays become lists, records become objects, numbers that are not finite null."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return None
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(entry) for entry in value]
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        return plain(value.item())
    return str(value)


def to_json(outcome: pipeline.Outcome) -> dict[str, Any]:
    """The record of a solved problem: everything except its arrays."""
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
        "param_origins": {
            name: {"origin": value.origin, "default": value.default}
            for name, value in params.values(outcome.bound, planned.binding).items()
        },
        "again": again.command(planned),
        "seed": options["seed"][0],
        "wall_s": outcome.wall_s,
        "iterations": solution.iterations,
        "passes": solution.passes,
        "way": solution.way,
        "interior": solution.interior,
        "answered_by": outcome.answered,
        "paper": solution.paper,
        "stopped": outcome.stopped,
        "interrupted": solution.interrupted,
        "status": outcome.status,
        "failure": None if solution.failure is None else asdict(solution.failure),
        "options": {name: {"value": value, "origin": origin} for name, (value, origin) in options.items()},
        "unused_options": {one.name: unused_json(one) for one in planned.plan.unused},
        "cautions": [{"name": one.name, "message": one.message} for one in outcome.cautions],
        "warnings": [f"{w.code}: {w.message}" for w in compiled.problem.warnings],
        "versions": versions(),
        "source": {"name": compiled.source.name, "text": compiled.text},
        "binding": binding_json(planned.binding, planned.problem),
        "sources": without_encoding(outcome.bound),
        "encoding": {name: table.encoding for name, table in outcome.bound.tables.items()},
        "sizes": scoring.sizes(outcome.bound),
        "labels": outcome.bound.labels,
        "axes": labelled.axes(outcome.bound),
        "notes": [*planned.plan.summary, *solution.notes, *outcome.bound.notes, *outcome.report.notes],
        "history": solution.history,
    }
    return plain(record)


def unused_json(one: Unused) -> dict[str, Any]:
    """An option that was given and is not used: its value, its origin, and why."""
    return {"value": one.value, "origin": one.origin, "reason": one.reason}


def report_json(report: KKTReport) -> dict[str, Any]:
    """The part of ``result.json`` that a report alone decides; ``evaluate --json`` prints the same keys."""
    fields = report.to_json()
    kkt = {name: fields.pop(name) for name in ("stationarity", "feasibility", "complementarity")}
    kkt |= {name: fields.pop(name) for name in ("residual", "slack", "gradient", "own")}
    return {name: value for name, value in fields.items() if name not in ("notes", "wall_s")} | {"kkt": kkt}


def holdout_json(planned: pipeline.Planned) -> dict[str, Any] | None:
    """The rows held out: the option, and for random rows the seed and their count by table.

    ``save`` writes their numbers.
    """
    if planned.holdout is None:
        return None
    rows = {name: len(numbers) for name, numbers in planned.held.items()}
    return {"given": planned.holdout, "seed": planned.seed if rows else None, "rows": rows or None}


def without_encoding(bound: Bound) -> dict[str, Any]:
    """The sources of the data, without the statistics, which have their own entry."""
    return {
        name: {k: v for k, v in source.items() if k != "encoding"} for name, source in bound.sources.items()
    }


def binding_json(binding: pipeline.Binding, problem: ir.Problem) -> dict[str, Any]:
    """The binding, as far as it can be bound again: files by absolute path, modules of torch's own layers
    by their text, None for other Python objects."""
    spec, folder = binding.spec, binding.data_dir
    if isinstance(spec, Path):
        folder = folder or spec.parent
        spec = tomllib.loads(read_text(spec, kind="binding"))
    return {
        "spec": spec,
        "data": {name: _origin(value) for name, value in binding.data.items()},
        "params": dict(binding.params),
        "nets": {name: _net(value, problem.nets[name].frozen) for name, value in binding.nets.items()},
        "data_dir": None if folder is None else str(folder.resolve()),
    }


def _origin(value: Any) -> str | None:
    """A file by its absolute path; None for a Python object."""
    if not isinstance(value, str | Path):
        return None
    text = str(value)
    if ":" in text:
        return text
    return str(Path(text).resolve())


def _net(value: Any, frozen: bool) -> str | None:
    """The text that a net was given by, or that makes a module whose weights an answer has; else None."""
    if isinstance(value, str | Path):
        return str(value)
    from torch.nn import Module

    from fccomodel.data.nets import own, written

    if frozen or not isinstance(value, Module):
        return None
    return written(own(value))


def versions() -> dict[str, str]:
    """The versions of the software that decided the numbers."""
    import torch

    return {
        "fccomodel": __version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
    }
