"""Libraries of steps on disk: their folder and their keys."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import platform
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import torch

from fccomodel.core.version import __version__
from fccomodel.execution.backends.steps.several import Several, numbers


def folder() -> Path:
    """``$XDG_CACHE_HOME/fccomodel/compiled``, by default under ``~/.cache``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "fccomodel" / "compiled"


def key(several: Several, *more: str) -> str:
    """The key of a library: a hash of the steps' text, sizes, torch, the processor, and ``more``."""
    shapes = [(tuple(x.shape), x.stride(), str(x.dtype)) for x in several.example()]
    apart = {"device", "waiting"}
    numbers_of_data = sorted(numbers(several.data).items())
    settings = sorted(vars(several.h).items())
    values = {name: repr(x) for name, x in numbers_of_data if name not in apart}
    counts = {name: repr(x) for name, x in settings if not isinstance(x, float)}
    machine = (
        platform.machine(),
        torch.backends.cpu.get_cpu_capability(),
        instructions(),
        several.module.THREADS,
    )
    known = [__version__, torch.__version__, machine, steps_of(several), shapes, values, counts, *more]
    return hashlib.sha256(json.dumps(known, default=str).encode()).hexdigest()[:32]


@cache
def instructions() -> str:
    """The instruction sets of the processor: machines that share a folder may differ in them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line for line in lines if line.lower().startswith(("flags", "features"))), platform.processor()
    )


def steps_of(several: Several) -> str:
    """The parts of a program's text that its steps use, without comments."""
    solver, sources = several.module.SOLVER, {}
    body = ast.parse(several.text).body
    waiting = [part.__name__ for part in (solver.gradient, solver.advance, solver.update, solver.project)]
    while waiting:
        name = waiting.pop()
        parts = [one for one in body if name in defined(one)]
        if name not in sources and parts:
            sources[name] = "\n".join(map(ast.dump, parts))
            waiting += [node.id for one in parts for node in ast.walk(one) if isinstance(node, ast.Name)]
    return "\n".join(sources[name] for name in sorted(sources))


def defined(one: ast.stmt) -> Iterable[str]:
    """The names that a statement defines or changes."""
    if isinstance(one, ast.FunctionDef | ast.ClassDef):
        return [one.name]
    if isinstance(one, ast.Assign):
        targets = one.targets
    else:
        targets = []
    return [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]
