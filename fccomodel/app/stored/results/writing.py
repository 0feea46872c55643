"""Writes a solved problem to files: record, variables, program with its data, scores of the nets."""

from __future__ import annotations

import dataclasses
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fccomodel import pipeline
from fccomodel.app import errors
from fccomodel.app.stored import store
from fccomodel.app.stored.results.record import (
    ARRAYS,
    DATA,
    HELD,
    RESULT,
    SCORES,
    SOLVER,
    STATISTICS,
    VARIABLES,
    to_json,
)
from fccomodel.core import ir, options
from fccomodel.core.diagnostics import FccoError, refuse
from fccomodel.core.files import digest, whole, write_text
from fccomodel.core.quoting import literal
from fccomodel.data.drawn import drawn

if TYPE_CHECKING:
    from fccomodel.data.bound import Bound
    from fccomodel.execution.run import Solution
    from fccomodel.program.emit import Program


def save(outcome: pipeline.Outcome, claimed: store.Claimed) -> dict[str, Any]:
    """Write all files of a result in one go, in place of an earlier result. Returns its record."""
    from fccomodel.program.errors import NOT_EMITTED

    record = to_json(outcome)
    names = (RESULT, VARIABLES, SOLVER, DATA, SCORES, HELD, ARRAYS, STATISTICS)
    with store.replacing(claimed, names) as folder:
        write_arrays(folder / VARIABLES, outcome.solution.variables)
        try:
            copy_of = write_program(repeating(outcome.program, outcome.solution), folder / SOLVER)
            record["notes"] += _copied(outcome.bound, copy_of)
            if outcome.solution.interior:
                title = outcome.planned.plan.algorithm_record.title
                record["notes"].append(
                    f"{SOLVER} is the program of {title}; the answer is the interior-point method's"
                )
        except FccoError as error:
            if any(one.code != NOT_EMITTED.id for one in error.diagnostics):
                raise
            # a net that lives in Python alone: the answer is kept without the program
            record["notes"] += [f"no {SOLVER}: {one.message}; {one.reason}" for one in error.diagnostics]
        if outcome.bound.arrays:
            write_arrays(folder / ARRAYS, outcome.bound.arrays)
        if statistics := _statistics(outcome.bound):
            write_arrays(folder / STATISTICS, statistics)
        if scores := dict(net_scores(outcome.bound, outcome.solution.variables)):
            write_arrays(folder / SCORES, scores)
            record["scores_file"] = SCORES
        if outcome.planned.held:
            write_arrays(folder / HELD, outcome.planned.held)
            record["holdout"]["file"] = HELD
        record = store.sealed(record, folder)
        write_text(folder / RESULT, store.json_text(record))
    return record


def _statistics(bound: Bound) -> dict[str, np.ndarray]:
    """The buffers of the nets by ``net:buffer``; they are no weights, but what a net gives depends on
    them."""
    if not bound.nets:
        return {}
    from fccomodel.data.nets import own_buffers

    return {
        f"{net}:{name}": value.detach().cpu().numpy()
        for net, module in bound.nets.items()
        if not bound.problem.nets[net].frozen
        for name, value in own_buffers(module).items()
    }


def _copied(bound: Bound, data: Path) -> list[str]:
    """A note if the program's data repeat tables in files, with their size."""
    from fccomodel.data.bound import mapped

    notes = []
    held = {name: [v for v in table.columns.values() if not drawn(v)] for name, table in bound.tables.items()}
    names = [name for name, columns in held.items() if any(map(mapped, columns))]
    size = f"{data.stat().st_size / 1e6:,.1f} MB"
    if names:
        notes.append(
            f"{data.name} has a copy of {', '.join(names)}, {size}: {SOLVER} runs without the prepared folder"
        )
    lazy = [f"{t}.{c}" for t, table in bound.tables.items() for c, v in table.columns.items() if drawn(v)]
    if lazy:
        notes.append(
            f"{data.name} does not hold {', '.join(lazy)}: {SOLVER} fetches these rows (`fetch_...`)"
        )
    return notes


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write an npz file. ``np.savez`` would take a variable named ``file`` for its own argument."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, value in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(value), allow_pickle=False)


def repeating(program: Program, solution: Solution) -> Program:
    """The program with the run's numbers of steps and passes and no other limit: it repeats the run."""
    constants: dict[str, Any] = {
        "SECONDS": None,
        "CALLS": None,
        "ITERATIONS": solution.iterations,
        "PLANNED": solution.planned,
    }
    constants |= {"WAY": solution.way, "PASSES": solution.passes}
    return dataclasses.replace(
        program, text=with_constants(program.text, constants, "  # as the run that wrote this file")
    )


def emitted(planned: pipeline.Planned) -> Program:
    """The program of a plan. Raises F0805 for margins and intervals of new rows, which need a solve."""
    for name in ("margin", "population"):
        value, origin = planned.options.get(name, (None, options.USER))
        if value not in (None, False) and origin != options.USER:
            refuse(errors.of_solve_alone(name, "emit"))
    if planned.plan.interior:
        refuse(
            *(planned.plan.choice.refusal or (errors.of_solve_alone("algorithm", "emit"),)),
            source=planned.problem.source,
        )
    return pipeline.emit(planned)


def write_program(program: Program, path: Path) -> Path:
    """Write the solver's text, and beside it its data. Returns the path of the data.

    Raises F0608 if neither a text nor ``torch.export`` can write a net.
    """
    import torch

    from fccomodel.program.emit.modules import exported

    tensors = {key: value for key, value in program.data.items() if not drawn(value)}
    tensors |= dict(exported(program.modules))
    data = path.with_name(DATA if path.name == SOLVER else f"{path.stem}.{DATA}")
    with whole(data) as temporary:
        try:
            torch.save(tensors, temporary)
        except RuntimeError as error:  # torch's word for a full disk
            raise OSError(error) from None
    constants = {"DATA_FILE": data.name, "DATA_SHA256": digest(data)}
    write_text(path, with_constants(program.text, constants))
    return data


def with_constants(text: str, given: Mapping[str, Any], comment: str = "") -> str:
    """A program's text with other values for some constants."""
    lines = {name: f"{name} = {literal(value)}{comment}" for name, value in given.items()}
    return re.sub(rf"^({'|'.join(lines)}) = .*$", lambda found: lines[found[1]], text, flags=re.M)


def net_scores(bound: Bound, variables: Mapping[str, np.ndarray]) -> Iterator[tuple[str, np.ndarray]]:
    """Each net's output on every bound row of the column it is applied to, in the rows' order.

    The key is the net's name, or ``NET_TABLE_COLUMN`` if it is applied to several columns.
    """
    uses: dict[str, dict[tuple[str, str], ir.NetCall]] = {}
    for call in bound.problem.expressions(ir.NetCall):
        column = call.column
        if call.params is not None and column is not None and isinstance(column.binder.domain, ir.RowSet):
            uses.setdefault(call.net, {})[column.binder.domain.table, "_".join(call.columns)] = call
    for net, calls in uses.items():
        for (table, column_name), call in calls.items():
            if len(calls) == 1:
                key = net
            else:
                key = f"{net}_{table}_{column_name}"
            yield key, _outputs(bound, call, variables)


def _outputs(bound: Bound, call: ir.NetCall, variables: Mapping[str, np.ndarray]) -> np.ndarray:
    """The net's output at every row, (n, *output), in float64, computed in chunks of rows."""
    import torch

    from fccomodel.evaluation import interpret

    assert call.column is not None and isinstance(call.column.binder.domain, ir.RowSet)
    rows = np.arange(bound.tables[call.column.binder.domain.table].n)
    assert call.params is not None
    point = {call.params.name: torch.as_tensor(np.asarray(variables[call.params.name]))}
    with torch.no_grad():
        return interpret.evaluate(bound, call, point, {call.column.binder: rows}).numpy()
