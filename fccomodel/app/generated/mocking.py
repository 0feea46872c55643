"""Random data of the types that a model declares: bound at once, or written as files with a binding."""

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
    """Random data for a model, as a binding, as bound data, and as they are.

    If the model refuses negative numbers, the data are positive.
    """
    from fccomodel.evaluation.errors import OUTSIDE

    for positive in (False, True):
        data = mock(compiled.problem, rows=rows, seed=seed, positive=positive)
        binding = pipeline.Binding(**vars(data))
        try:
            return binding, pipeline.bind(compiled, binding), data
        except FccoError as error:
            outside_domain = any(d.code == OUTSIDE.id for d in error.diagnostics)
            if positive or not outside_domain:
                raise
    raise AssertionError("the second binding is returned or raises")


def write(drawn_data: Mock, problem_name: str, folder: Path) -> list[Path]:
    """Write an npz file for each table, and a binding that names them; returns the paths."""
    files.make_folder(folder)
    paths = []
    sections: list[str] = []
    for name, columns in _tables(drawn_data.data):
        path = folder / f"{name}.npz"
        np.savez(path, **columns)  # type: ignore[arg-type]
        paths.append(path)
        sections += [f"[{name}]", f'source = "{path.name}"', ""]
    arrays = [
        f"{name} = {json.dumps(value.tolist())}"
        for name, value in drawn_data.data.items()
        if not isinstance(value, Mapping)
    ]
    if arrays:
        arrays.append("")
    others = {"params": drawn_data.params, "nets": drawn_data.nets, **drawn_data.spec}
    for section, values in others.items():
        if values:
            sections.append(f"[{section}]")
            sections += [f"{name} = {json.dumps(value)}" for name, value in values.items()]
            sections.append("")
    binding = folder / f"{problem_name}.toml"
    files.write_text(binding, "\n".join([*arrays, *sections]))
    return [*paths, binding]


def _tables(data: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, np.ndarray]]]:
    """Each table with its columns; each member of a family as ``D.member``."""
    for name, columns in data.items():
        if not isinstance(columns, Mapping):
            continue
        if any(isinstance(part, Mapping) for part in columns.values()):
            for member, part in columns.items():
                yield f"{name}.{member}", part
        else:
            yield name, columns
