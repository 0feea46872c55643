"""The models that ``replay.py`` records, as texts and arrays: of the examples, the shared models, and
the tests.

The tests' modules are imported with a stand-in for the package: only their texts and data are
wanted, so that it does not matter where the package keeps what they import from it.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
Options = dict[str, Any]
QUICK: Options = {"seed": 1, "device": "cpu", "budget": "200it", "polish": False}
BRIEF: Options = {**QUICK, "budget": "40it"}
POLISHED: Options = {**QUICK, "polish": True}
SMALL: Options = {"outer_batch": 3, "inner_batch": 6, "precision": "float64"}


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model's text or file, the keywords of ``bind`` (None: nothing is bound), and the options of
    its runs by name."""

    name: str
    source: str | Path
    given: dict[str, Any] | None = None
    runs: dict[str, Options] = field(default_factory=lambda: {"default": QUICK})
    every: Options | None = None  # options of a run of every algorithm
    commands: bool = False  # asked for by the command line as well


# ------------------------------------------------------------------------------ without the package
class StandIn(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """``fccomodel`` and all below it as modules that have every name."""

    def find_spec(
        self, name: str, path: Any = None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        own = name.partition(".")[0] == "fccomodel"
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if own else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module = types.ModuleType(spec.name)
        module.__getattr__ = lambda name: _nothing(name)  # type: ignore[method-assign]
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def _nothing(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return MagicMock()


def tests(name: str) -> Any:
    """A module of the tests, without the package."""
    return importlib.import_module(name)


# ------------------------------------------------------------------------------------------- suites
def examples() -> Iterator[Model]:
    for path in sorted((ROOT / "examples").glob("*.fcco")):
        runs = {"default": QUICK, "polished": POLISHED, "decay": {**QUICK, "schedule": "decay"}}
        given = {"spec": path.with_suffix(".toml")}
        yield Model(name=f"examples/{path.stem}", source=path, given=given, runs=runs, commands=True)
    for path in sorted((ROOT / "examples/papers").glob("*/*.fcco")):
        yield Model(name=f"papers/{path.parent.name}.{path.stem}", source=path)


def shared() -> Iterator[Model]:
    if not (SHARED / "models").is_dir():
        raise LookupError(f"there is no {SHARED / 'models'}")
    for path in sorted((SHARED / "models").glob("*.fcco")):
        given = {"spec": path.with_suffix(".toml"), "data_dir": SHARED / "data"}
        yield Model(name=f"shared/{path.stem}", source=path, given=given, runs={"default": BRIEF})


def errors() -> Iterator[Model]:
    for path in sorted((ROOT / "tests/golden/errors").glob("*.fcco")):
        yield Model(name=f"errors/{path.stem}", source=path)


def emitted_models() -> Iterator[Model]:
    cases = dict(tests("support.emitted_models").CASES)
    cases |= {
        f"logarithms.{name}": tests("test_logarithms").case(name) for name in tests("test_logarithms").FORMS
    }
    for name, case in cases.items():
        options = {**QUICK, "unverified": True, **case.options}
        given = {"data": case.data(), "params": dict(case.params), "nets": case.nets()}
        yield Model(name=f"emitted/{name}", source=case.text, given=given, runs={"default": options})


def conformance() -> Iterator[Model]:
    for problem in tests("conformance.problems").ALL:
        quick = {**QUICK, **SMALL, **problem.options}
        runs = {"polished": {**POLISHED, "precision": "float64", **problem.options}}
        runs |= {schedule: {**quick, "schedule": schedule} for schedule in ("decay", "theory")}
        runs |= {"iid": {**quick, "sampling": "iid", "inner_sampling": "per_block"}}
        text, given = f"model {problem.name};\n{problem.text}", {"data": problem.data()}
        yield Model(
            name=f"conformance/{problem.name}", source=text, given=given, runs=runs, every=quick | BRIEF
        )


def reasonable() -> Iterator[Model]:
    module = tests("test_reasonable_models")
    for name, body in module.MODELS.items():
        nets = {"s": "mlp(8, activation=elu)"} if "net s" in body else {}
        runs = {"polished": POLISHED}
        source = f"model {name};\n{module.HEAD}{body}"
        yield Model(
            name=f"reasonable/{name}", source=source, given={"data": module.DATA, "nets": nets}, runs=runs
        )


def of_bodies(name: str, head: str, bodies: dict[str, str], data: Any, **more: Any) -> Iterator[Model]:
    """Models that share their declarations and data."""
    for title, body in bodies.items():
        own = data(title) if callable(data) else data
        yield Model(name=f"{name}/{title}", source=f"{head}{body}", given={"data": own}, **more)


def structures() -> Iterator[Model]:
    """The models with which tests try the parts of the compiler one by one."""
    quick = {"runs": {"default": QUICK | {"unverified": True}}}
    module = tests("test_proximal_solve")
    bodies = {name: body for name, (body, *_) in module.CONVEX.items()}
    yield from of_bodies("proximal", f"model m; {module.HEAD}", bodies, module.table(), **quick)
    module = tests("conformance.test_vector")
    yield from of_bodies(
        "vector", "model m; ", module.MODELS, module.regression(), every=SMALL | BRIEF, runs={}
    )
    module = tests("test_separation")
    bodies = {name: f"minimize {body};" for name, (body, _) in module.CASES.items()}
    yield from of_bodies("separation", module.HEAD, bodies, {"D": module.table()}, **quick)
    module = tests("test_reformulations")
    loss = f"minimize E[z ~ D] {module.LOSS}"
    bodies = module.EQUAL | {name: text for name, (text, _) in module.TAILS.items()}
    bodies |= {
        f"worst {name}": f"{module.RISKS}minimize {body} + sumsq(w);" for name, body in module.WORST.items()
    }
    bodies |= {
        f"set {name}": f"{loss} {term};\nsubject to {limits}"
        for name, (limits, term, _) in module.SETS.items()
    }
    table = {"x": np.random.default_rng(1).normal(size=(40, 3)), "g": np.arange(40) % 3.0}
    yield from of_bodies("reformulations", f"model m; {module.HEAD}", bodies, {"D": table}, **quick)


def solvable() -> Iterator[Model]:
    """Convex models with kinks and constraints, solved and finished."""
    polished = {"runs": {"polished": POLISHED}}
    kkt, module = tests("test_kkt"), tests("test_gap")
    bodies = {name: f"var w[d]; {body}" for name, (body, *_) in module.PROBLEMS.items()}
    yield from of_bodies("gap", kkt.HEAD, bodies, {"D": {"x": kkt.X, "y": kkt.Y, "g": kkt.G}}, **polished)
    module = tests("test_row_maxima")
    bodies = {name: body for name, (body, _) in module.CASES.items()}
    yield from of_bodies("maxima", module.HEAD, bodies, {"D": {"x": module.X, "y": module.Y}}, **polished)
    module = tests("test_row_kinks")
    bodies = {name: body for name, (body, *_) in module.PROBLEMS.items()}
    labels = {
        name: {"D": {"x": module.X, "y": y, "g": module.GROUPS}}
        for name, (_, y, *_) in module.PROBLEMS.items()
    }
    yield from of_bodies("kinks", module.HEAD, bodies, labels.get, **polished)


def drawn() -> Iterator[Model]:
    for seed in range(16):
        made = tests("bench.drawn").draw(seed)
        yield Model(
            name=f"drawn/{seed}", source=made.text, given={"data": made.data}, runs={"polished": POLISHED}
        )


SUITES: tuple[Callable[[], Iterator[Model]], ...] = (
    examples, shared, errors, emitted_models, conformance, reasonable, structures, solvable, drawn,
)  # fmt: skip


def gathered(only: str) -> Iterator[Model]:
    """All models whose name has ``only`` in it; says which could not be had, and why."""
    sys.meta_path.insert(0, StandIn())
    folders = sorted(p for p in (ROOT / "tests").iterdir() if p.is_dir())
    sys.path[:0] = [str(p) for p in (ROOT / "tests", *folders)]
    for suite in SUITES:
        try:
            yield from (model for model in suite() if only in model.name)
        except (ImportError, LookupError) as error:
            print(f"skipped {suite.__name__}: {error}")
