"""The codes of errors: each stands once, has constructors, and every constructor has a caller; no code is written elsewhere."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import fccomodel
from fccomodel.app import registry

PACKAGE = Path(fccomodel.__file__).resolve().parent
#: Modules whose diagnostics are functions: files and folders called ``errors``.
ERRORS = sorted(p for p in PACKAGE.rglob("*.py") if "errors" in (p.stem, p.parent.stem) and p.stem not in ("__init__", "words"))
#: Rooms that write no code outside of these.
ROOMS = ("language",)


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def functions(path: Path) -> list[ast.FunctionDef]:
    return [node for node in tree(path).body if isinstance(node, ast.FunctionDef)]


def names_in(node: ast.AST) -> set[str]:
    """Every name and attribute that is read in a piece of code."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} | {
        n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)
    }


@cache
def mentions() -> dict[Path, set[tuple[str, str]]]:
    """For each module what it takes from others, as (module, name): ``errors.shapes.bound``, ``from ...shapes import bound``."""
    found: dict[Path, set[tuple[str, str]]] = {}
    for path in PACKAGE.rglob("*.py"):
        taken = found.setdefault(path, set())
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute):
                taken.add((node.value.id if isinstance(node.value, ast.Name) else node.value.attr, node.attr))
            elif isinstance(node, ast.ImportFrom):
                taken |= {((node.module or "").rpartition(".")[2], alias.name) for alias in node.names}
    return found


def in_use(path: Path) -> set[str]:
    """The functions of a module of errors that another module takes, and those that these call."""
    own = {f.name: names_in(f) for f in functions(path)}
    reached: set[str] = set()
    more = {name for other, taken in mentions().items() if other != path for owner, name in taken if owner == path.stem} & set(
        own
    )
    while more - reached:
        reached |= more
        more = set().union(*(own[name] for name in reached)) & set(own)
    return reached


def test_the_table_is_sorted() -> None:
    found = list(registry.codes())
    assert len(found) > 50 and found == sorted(found)


@pytest.mark.parametrize("path", ERRORS, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_constructor_is_called(path: Path) -> None:
    assert sorted({f.name for f in functions(path)} - in_use(path)) == []


@pytest.mark.parametrize("path", ERRORS, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_code_is_constructed(path: Path) -> None:
    """A function of this module, or of another one of errors, makes a diagnostic of each code that it registers."""
    made = [n for n in tree(path).body if isinstance(n, ast.Assign)]
    codes = {ast.unparse(n.targets[0]) for n in made if ast.unparse(n.value).startswith("Code(")}
    read = set().union(*(names_in(f) for other in ERRORS for f in functions(other)), *(names_in(n.value) for n in made))
    assert codes - read == set()


@pytest.mark.parametrize("path", ERRORS, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_constructor_says_its_rule(path: Path) -> None:
    assert [f.name for f in functions(path) if not f.name.startswith("_") and not ast.get_docstring(f)] == []
    assert len(path.read_text().splitlines()) < 450


@pytest.mark.parametrize("room", ROOMS)
def test_no_code_is_written_elsewhere(room: str) -> None:
    written = {str(p): re.findall(r'"F0\d{3}"', p.read_text()) for p in (PACKAGE / room).rglob("*.py") if p not in ERRORS}
    assert {path: codes for path, codes in written.items() if codes} == {}
