"""Whether the package reads well, beyond what ruff checks: `python .ci/readable.py [FOLDER]`.

Prints one line per fault, with its place, and exits with status 1 if there is any:

    a conditional expression inside another one
    several constants in one statement of a module
    a public function or method without a docstring
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path


def nested_conditionals(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Conditional expressions inside the branches or the test of another one."""
    for outer in ast.walk(tree):
        if isinstance(outer, ast.IfExp):
            for inner in ast.walk(outer):
                if isinstance(inner, ast.IfExp) and inner is not outer:
                    yield inner.lineno, "a conditional expression inside another one"


def packed_constants(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Statements of the module that assign several values to several names."""
    for statement in tree.body:
        if (
            isinstance(statement, ast.Assign)
            and isinstance(statement.targets[0], ast.Tuple)
            and isinstance(statement.value, ast.Tuple)
        ):
            yield statement.lineno, "several constants in one statement"


def undocumented(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Functions and methods with a public name and no docstring."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if not node.name.startswith("_") and ast.get_docstring(node) is None:
                yield node.lineno, f"`{node.name}` has no docstring"


def faults(path: Path) -> list[str]:
    """The faults of one file, in the order of their lines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    places = {
        fault for check in (nested_conditionals, packed_constants, undocumented) for fault in check(tree)
    }
    return [f"{path}:{line}: {text}" for line, text in sorted(places)]


def main() -> int:
    """The number of faults, at most 1, as the exit status."""
    top = Path(sys.argv[1] if len(sys.argv) > 1 else "fccomodel")
    found = [fault for path in sorted(top.rglob("*.py")) for fault in faults(path)]
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
