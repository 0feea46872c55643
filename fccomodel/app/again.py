"""The line that runs a solve again, to the same numbers: everything that determines the answer is on it."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fccomodel import pipeline
from fccomodel.core import options

#: what stands for objects of a Python session, which no command line names
MODEL = "MODEL"
BINDING = "BINDING"
DATA = "DATA"
MODULE = "MODULE"
START = "START"
#: options with an argument of their own that takes their value
WITH_VALUE = (
    "algorithm",
    "device",
    "precision",
    "backend",
    "budget",
    "tol",
    "starts",
    "holdout",
    "margin",
    "population",
)


def command(planned: pipeline.Planned) -> str:
    """The command line; words in capitals stand for what is no file. None has an optimizer of Python."""
    if planned.plan.optimizer:
        return f"the same call in Python: its {planned.plan.optimizer} is an object of that session"
    words = ["fccomodel", "solve"]
    if planned.ranks:
        words = ["torchrun", "--nproc-per-node", os.environ.get("WORLD_SIZE", "1"), "-m", *words]
    name = planned.compiled.source.name
    words.append(name if Path(name).is_file() else MODEL)
    return shlex.join([*words, *_bound(planned), *_options(planned), *_start(planned)])


def _bound(planned: pipeline.Planned) -> Iterator[str]:
    """The data, nets and values of params that were given; values by label in the order of the set."""
    binding = planned.binding
    if binding.spec is not None:
        yield from ("--bind", str(binding.spec) if isinstance(binding.spec, Path) else BINDING)
    if binding.data_dir is not None:
        yield from ("--data-dir", str(binding.data_dir))
    for name, value in binding.data.items():
        yield from ("--data", f"{name}={value if isinstance(value, str | Path) else DATA}")
    for name, value in binding.nets.items():
        yield from ("--net", f"{name}={value if isinstance(value, str) else MODULE}")
    if binding.allow_python:
        yield "--allow-python"
    for name, value in binding.params.items():
        in_order = planned.bound.params.get(name, value)  # a dim has only its value
        yield from ("--param", f"{name}={_number(in_order)}")


def _number(value: Any) -> str:
    """A number, or a list of numbers in brackets, to the last digit."""
    return json.dumps(np.asarray(value, float).tolist())


def _options(planned: pipeline.Planned) -> Iterator[str]:
    """The seed, and the options that were given, but for those that the model's own block has."""
    yield from ("--seed", str(planned.seed))
    for name, (value, origin) in planned.given.items():
        if origin == options.BLOCK or name in ("seed", "ranks"):
            continue
        text = _text(name, value)
        if name == "polish" and value is False:
            yield "--no-polish"
        elif name == "unverified" and value is True:
            yield "--unverified"
        elif name in WITH_VALUE:
            yield from (f"--{name}", text)
        else:
            yield from ("--option", f"{name}={text}")


def _text(name: str, value: Any) -> str:
    """An option's value as the command line reads it."""
    if name == "population" and value is True:
        return f"{options.POPULATION_SECONDS:g}s"
    if isinstance(value, str):
        return value
    return json.dumps(value)


def _start(planned: pipeline.Planned) -> Iterator[str]:
    """The answer that it begins at."""
    if planned.plan.start is not None and not planned.plan.start.declared:
        yield from ("--start", planned.begun or START)
