"""Several steps compiled into one function by torch's inductor, ahead of time: a library per program, kept on disk.

The steps are traced once into a graph of torch's operations, without guards; AOTInductor writes it as C++ and has the system's
compiler make it. The library has no data in it: arrays and the numbers that steps go by are its arguments.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import logging
import os
import platform
import shutil
import tempfile
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from fccomodel.core.version import __version__
from fccomodel.solver.backends._base import Backend, Unfit
from fccomodel.solver.backends._leap import Leap, Results
from fccomodel.solver.backends._several import STEPS, Several, numbers


def folder() -> Path:
    """``$XDG_CACHE_HOME/fccomodel/compiled``, by default under ``~/.cache``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "fccomodel" / "compiled"


def missing(device: str) -> str:
    """A compiler of C++ makes the library, for the processor; a GPU has another backend."""
    if device != "cpu":
        return "it compiles for the processor; on a GPU it is cuda-graph"
    return "" if any(map(shutil.which, ("g++", "clang++", "c++"))) else "there is no C++ compiler (g++)"


def key(several: Several) -> str:
    """What a library is made of: the text of the steps, sizes, torch, and the processor."""
    shapes = [(tuple(x.shape), x.stride(), str(x.dtype)) for x in several.example()]
    apart = {"device", "waiting"}
    values = {name: repr(x) for name, x in sorted(numbers(several.data).items()) if name not in apart}
    counts = {name: repr(x) for name, x in sorted(vars(several.h).items()) if not isinstance(x, float)}
    machine = (platform.machine(), torch.backends.cpu.get_cpu_capability(), several.module.THREADS)
    known = [__version__, torch.__version__, machine, STEPS, steps_of(several), shapes, values, counts]
    return hashlib.sha256(json.dumps(known, default=str).encode()).hexdigest()[:32]


def steps_of(several: Several) -> str:
    """The parts of a program's text that its steps are made of, without comments."""
    solver, found = several.module.SOLVER, {}
    body = ast.parse(several.text).body
    waiting = [part.__name__ for part in (solver.gradient, solver.advance, solver.update, solver.project)]
    while waiting:
        name = waiting.pop()
        parts = [one for one in body if name in defined(one)]
        if name not in found and parts:
            found[name] = "\n".join(map(ast.dump, parts))
            waiting += [node.id for one in parts for node in ast.walk(one) if isinstance(node, ast.Name)]
    return "\n".join(found[name] for name in sorted(found))


def defined(one: ast.stmt) -> Iterable[str]:
    """The names that a statement defines or changes."""
    if isinstance(one, ast.FunctionDef | ast.ClassDef):
        return [one.name]
    targets = one.targets if isinstance(one, ast.Assign) else []
    return [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]


def traced(several: Several) -> Any:
    """The steps as a graph."""
    from torch.fx.experimental.proxy_tensor import make_fx

    graph = make_fx(several, tracing_mode="fake")(*several.example())
    if any(node.op == "get_attr" and node.target.startswith("_tensor_constant") for node in graph.graph.nodes):
        raise Unfit("its steps hold arrays that are no arguments")
    for node in graph.graph.nodes:
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            raise Unfit(f"its steps draw random numbers ({node.target})")
    return torch.export.export(graph, tuple(several.example()), strict=False)


def compiled(several: Several, place: Path) -> None:
    """Writes the library of the steps, as a whole."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as beside, quiet():
        made = torch._inductor.aoti_compile_and_package(traced(several), package_path=str(Path(beside) / "steps.pt2"))
        Path(made).replace(place)


@contextlib.contextmanager
def quiet() -> Any:
    """Nothing that torch says of its own while it compiles; threads as the steps are to have."""
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)


def leap(several: Several) -> tuple[Leap, str]:
    """Of the library that is kept, or made now."""
    place, threads = folder() / f"{key(several)}.pt2", torch.get_num_threads()
    kept = place.exists()
    try:
        torch.set_num_threads(several.module.THREADS)
        if not kept:
            compiled(several, place)
        runner = torch._inductor.aoti_load_package(str(place)).loader
    except Unfit:
        raise
    except Exception as error:  # whatever a graph, torch or a compiler cannot do
        raise Unfit(f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}") from None
    finally:
        torch.set_num_threads(threads)
    said = f"steps by the compiled backend, {STEPS} in a call; its library was {'at hand' if kept else 'made for this run'}"
    return Leap(several, Library(runner)), said


class Library:
    """Calls the library, whose results own their memory."""

    def __init__(self, runner: Any):
        self.runner = runner

    def __call__(self, fixed: Any, moving: Any, kept: Any, rows: Any, weights: Any, drawn: Any, pooled: bool) -> Results:
        """The moved arguments, and those changed in place."""
        results = self.runner.run([*fixed, *moving, *kept, rows, weights, *drawn])
        places = [x.data_ptr() for x in results]
        if len(set(places)) < len(places):
            results = [x.clone() if places.index(p) < k else x for k, (x, p) in enumerate(zip(results, places, strict=True))]
        return results, kept


backend = Backend(
    name="compiled",
    meaning=f"{STEPS} steps in a call of a library that torch's inductor makes, kept on disk",
    leap=leap,
    missing=missing,
    share=0.8,
    start=30.0,
)
