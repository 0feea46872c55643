"""Data of the declared types for a model: bound at once, or written as files with a binding."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fccomodel import pipeline
from fccomodel.core import files
from fccomodel.core.diagnostics import FccoError
from fccomodel.data.mock import Mock, mock

if TYPE_CHECKING:
    from fccomodel.data.bound import Bound


def drawn(compiled: pipeline.Compiled, *, rows: int, seed: int) -> tuple[pipeline.Binding, Bound, Mock]:
    """Data that the model takes, positive numbers where it refuses others."""
    from fccomodel.evaluation.errors import OUTSIDE

    for positive in (False, True):
        made = mock(compiled.problem, rows=rows, seed=seed, positive=positive)
        binding = pipeline.Binding(**vars(made))
        try:
            return binding, pipeline.bind(compiled, binding), made
        except FccoError as error:
            if positive or all(d.code != OUTSIDE.id for d in error.diagnostics):
                raise
    raise AssertionError("the second binding is returned or raises")


def write(made: Mock, problem_name: str, folder: Path) -> list[Path]:
    """An npz file for each table, and the binding that names them; the files written."""
    files.make_folder(folder)
    lines: list[str] = []
    written = []
    for name, columns in _tables(made.data):
        path = folder / f"{name}.npz"
        np.savez(path, **columns)  # type: ignore[arg-type]
        written.append(path)
        lines += [f"[{name}]", f'source = "{path.name}"', ""]
    given = {name: value for name, value in made.data.items() if not isinstance(value, Mapping)}
    head = [f"{name} = {json.dumps(value.tolist())}" for name, value in given.items()]
    for section, values in {"params": made.params, "nets": made.nets, **made.spec}.items():
        if values:
            lines += [
                f"[{section}]",
                *(f"{name} = {json.dumps(value)}" for name, value in values.items()),
                "",
            ]
    binding = folder / f"{problem_name}.toml"
    files.write_text(binding, "\n".join([*head, *([""] if head else []), *lines]))
    return [*written, binding]


def _tables(data: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, np.ndarray]]]:
    """Each table with its columns; of a family, each member as ``D.member``."""
    for name, columns in data.items():
        if isinstance(columns, Mapping):
            family = any(isinstance(part, Mapping) for part in columns.values())
            yield from (
                ((f"{name}.{member}", part) for member, part in columns.items())
                if family
                else [(name, columns)]
            )
