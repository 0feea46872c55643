"""What a program carries: all that it names, each thing once and after those that it needs, nothing of
this package."""

from __future__ import annotations

import builtins
import importlib
import inspect
import pkgutil
import re
import symtable
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import pytest
from support.emitted_models import CASES, HEAD, Case, made, make

from fccomodel import algorithms
from fccomodel.algorithms.runtime import checkpoints
from fccomodel.algorithms.runtime.finish import ending, finish, restore
from fccomodel.algorithms.runtime.loops import block_loop, schedules, settings, solver, vector_loop
from fccomodel.program.emit.carried import carried, read, source

SMOOTH = Case(text=f"model m;{HEAD}minimize (E[z ~ P] tanh(dot(w, z.x)))^2 + 0.1 * sumsq(w);")
WORST = Case(text=f"model m;{HEAD}minimize max[k in G] (E[z ~ D | z.g == k] (dot(w, z.x) - z.y)^2);")
#: How the symbol table calls scopes that no statement names.
WITHOUT_NAME = ("lambda", "listcomp", "setcomp", "dictcomp", "genexpr")
#: An import of this package.
IMPORTED = re.compile(r"^from fccomodel|^\s*(from fccomodel import|import fccomodel)", re.MULTILINE)
PACES = {"practical": {}, "theory": {"schedule": "theory"}, "decay": {"schedule": "decay", "budget": "100it"}}


def scopes(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from scopes(child)


def undefined(text: str) -> set[str]:
    """The names that a program reads and nothing defines, those in annotations too."""
    top = table(text)
    known = {*dir(builtins), "__file__", "__name__"} | {child.get_name() for child in top.get_children()}
    known |= {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported()}
    return {
        s.get_name()
        for scope in scopes(top)
        for s in scope.get_symbols()
        if s.is_global() and s.is_referenced()
    } - known


def defined_twice(text: str) -> set[str]:
    """The functions and classes that a program defines more than once."""
    names = Counter(child.get_name() for child in table(text).get_children())
    return {name for name, count in names.items() if count > 1 and name not in WITHOUT_NAME}


@lru_cache(maxsize=1)
def table(text: str) -> symtable.SymbolTable:
    """The symbols of a program by scope: a tenth of the time that its syntax tree takes to make and walk."""
    return symtable.symtable(text, "solver.py", "exec")


def test_a_missing_name_is_seen() -> None:
    assert undefined("def f(a: B):\n    def g():\n        return a + c\n    return g()\n") == {"B", "c"}
    assert defined_twice("def f(): pass\nclass f: pass\n") == {"f"}
    assert defined_twice("f = lambda: 0\ng = lambda: [i for i in ()], [j for j in ()]\n") == set()


@pytest.mark.parametrize("name", CASES)
def test_every_name_of_a_program_is_defined_once(name: str) -> None:
    text = made(name).program.text
    assert not undefined(text) and not defined_twice(text)
    assert not IMPORTED.search(text)


@pytest.mark.parametrize("pace", PACES)
@pytest.mark.parametrize("algorithm", [n for n, a in algorithms.all().items() if a.surrogate is None])
def test_every_name_is_defined_with_any_algorithm_and_schedule(algorithm: str, pace: str) -> None:
    record = algorithms.all()[algorithm]
    if pace == "theory" and record.theory is None:
        pytest.skip("its theorem has no schedule")
    case = WORST if "linear coupling" in record.requires else SMOOTH
    text = make("m", case, algorithm=algorithm, **PACES[pace]).program.text
    assert not undefined(text) and not defined_twice(text)
    kinds = {"practical": "Practical", "theory": "Theory", "decay": "Decay"}
    assert [kind for kind in kinds.values() if f"\nclass {kind}(" in text] == [kinds[pace]], (
        "one schedule, the one asked for"
    )


@dataclass
class Base:
    a: int = 0


@dataclass
class Derived(Base):
    def value(self) -> int:
        return helper(self.a)


def helper(a: int) -> int:
    return abs(a)


def root(thing: Derived) -> int:
    def inside() -> int:
        return thing.value()

    return inside()


def test_what_is_carried() -> None:
    """By calls, bases, annotations, and methods; each after what it needs."""
    assert carried([root]) == [Base, helper, Derived, root]
    assert carried([root], elsewhere=[Derived]) == [root]
    assert carried([root, helper]) == [Base, helper, Derived, root]
    assert read("x = f(g(1))\ndef h(a: b): return k(a)") == ({"f", "g", "k"}, {"h"})
    assert source(helper) == "def helper(a: int) -> int:\n    return abs(a)"


def test_a_source_is_the_whole_of_it() -> None:
    everything = carried(
        [settings.BlockSettings, *schedules.SCHEDULES.values(), block_loop.solve, ending.solve_then_finish]
    )
    assert len(everything) > 50
    assert all(source(thing) == inspect.getsource(thing).rstrip() for thing in everything)


def test_the_runtime_needs_nothing_else() -> None:
    kinds: list = [settings.BlockSettings, settings.VectorSettings, solver.BlockSolver, solver.VectorSolver]
    kinds += schedules.SCHEDULES.values()
    for loop in (block_loop, vector_loop):
        ends = [
            finish.finish,
            finish.one_pass,
            restore.restore,
            ending.solve_then_finish,
            checkpoints.FileKeeper,
            checkpoints.keeper_of_run,
        ]
        parts = carried([*kinds, loop.solve, *ends])
        imports = (
            "import copy, hashlib, json, math, os, shutil, signal, sys, time, torch\nfrom pathlib "
            "import Path\n"
        )
        imports += "from collections.abc import Callable, Mapping\n"
        imports += (
            "from dataclasses import dataclass, field\nfrom types import SimpleNamespace\nfrom "
            "typing import Any, Self\n"
        )
        assert not undefined(imports + "\n\n".join(map(source, parts)))


def test_names_are_distinct() -> None:
    """Of all that a program may carry: of two functions with one name it would have one alone, under
    the calls of both."""
    runtime = [
        module.name
        for module in pkgutil.walk_packages(algorithms.runtime.__path__, f"{algorithms.runtime.__name__}.")
        if not module.ispkg
    ]
    others = ["library.distances", "library.distributions._noise", "library.reductions.tails"]
    names = [*runtime, *(f"fccomodel.{name}" for name in others)]
    known: dict[str, object] = {}
    for module in (
        importlib.import_module(name) for name in names if not name.endswith("vector_loop")
    ):  # or the block loop
        for name, thing in vars(module).items():
            own = inspect.isfunction(thing) and thing.__module__ == module.__name__
            assert not own or known.setdefault(name, thing) is thing, f"{name} of {module.__name__}"
