"""The codes of errors: each stands once, has constructors, and every constructor has a caller; no code
is written elsewhere."""

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
ERRORS = sorted(
    p
    for p in PACKAGE.rglob("*.py")
    if "errors" in (p.stem, p.parent.stem) and p.stem not in ("__init__", "words")
)


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


def name_of(path: Path) -> str:
    """A module's dotted name."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def dotted(node: ast.expr) -> list[str]:
    """``["errors", "shapes", "bound"]`` of ``errors.shapes.bound``; nothing where it does not begin
    with a name."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute) and (before := dotted(node.value)):
        return [*before, node.attr]
    return []


@cache
def mentions() -> dict[Path, set[str]]:
    """For each module what it takes from others, by its whole name, however it was imported."""
    found: dict[Path, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        imports = [n for n in ast.walk(tree(path)) if isinstance(n, ast.ImportFrom)]
        called = {
            alias.asname or alias.name: f"{n.module}.{alias.name}" for n in imports for alias in n.names
        }
        taken = found.setdefault(path, set(called.values()))
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Attribute) and (chain := dotted(node)):
                taken.add(".".join([called.get(chain[0], chain[0]), *chain[1:]]))
    return found


def in_use(path: Path) -> set[str]:
    """The functions of a module of errors that another module takes, and those that these call."""
    own = {f.name: names_in(f) for f in functions(path)}
    taken = set().union(*(names for other, names in mentions().items() if other != path))
    reached: set[str] = set()
    more = {name for name in own if f"{name_of(path)}.{name}" in taken}
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
    """A function of this module, or of another one of errors, makes a diagnostic of each code that it
    registers."""
    made = [n for n in tree(path).body if isinstance(n, ast.Assign)]
    codes = {ast.unparse(n.targets[0]) for n in made if ast.unparse(n.value).startswith("Code(")}
    read = set().union(*map(names_in, functions(path)), *(names_in(n.value) for n in made))
    elsewhere = set().union(*(mentions()[other] for other in ERRORS if other != path))
    assert {code for code in codes - read if f"{name_of(path)}.{code}" not in elsewhere} == set()


@pytest.mark.parametrize("path", ERRORS, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_constructor_says_its_rule(path: Path) -> None:
    assert [f.name for f in functions(path) if not f.name.startswith("_") and not ast.get_docstring(f)] == []
    assert len(path.read_text().splitlines()) < 450


def test_no_code_is_written_elsewhere() -> None:
    written = {
        path: re.findall(r'"F0\d{3}"', path.read_text())
        for path in PACKAGE.rglob("*.py")
        if path not in ERRORS
    }
    assert {str(path): codes for path, codes in written.items() if codes} == {}
