"""Which tests are about a file: `python tests/bench/reached_by.py [FILE ...]`.

For every file of the package, or for those named, it prints the test files that import it. If no
test file does, it prints those that import a module which imports it, and so on: the number in
front is how many imports lie between, 0 for a test that imports the file itself. Only imports are
read, so a test that runs a whole command is not counted for all that the command calls. A file
that nothing imports by name (an atom, an algorithm) counts as imported by its package, which finds
it by itself.
"""

from __future__ import annotations

import argparse
import ast
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "fccomodel"
#: How many test files are printed for one module.
SHOWN_TESTS = 8


def module_name(path: Path) -> str:
    """The dotted name of a file of the package."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    if parts[-1] == "__init__":
        parts = parts[:-1]
    return ".".join(parts)


def imported(path: Path, modules: Iterable[str]) -> set[str]:
    """The modules of the package that a file imports, inside functions too."""
    known = set(modules)
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names & known


def distances(start: str, importers: dict[str, set[str]]) -> dict[str, int]:
    """The modules that import `start`, directly or through others, with the number of steps."""
    steps = {start: 0}
    waiting = [start]
    while waiting:
        module = waiting.pop(0)
        for importer in sorted(importers[module]):
            if importer not in steps:
                steps[importer] = steps[module] + 1
                waiting.append(importer)
    return steps


def nearest_tests(
    module: str, importers: dict[str, set[str]], tests: dict[str, list[str]]
) -> tuple[int, list[str]]:
    """The least number of imports between a test file and the module, and the test files at it."""
    steps = distances(module, importers)
    reached = {distance for name, distance in steps.items() if tests[name]}
    if not reached:
        return -1, []
    least = min(reached)
    nearest = {test for name, distance in steps.items() if distance == least for test in tests[name]}
    room = module.split(".")[1] if "." in module else ""
    return least, sorted(nearest, key=lambda test: (f"tests/{room}/" not in test, test))


def main() -> None:
    """Print a table: the module, the imports between, the test files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    asked = parser.parse_args().files
    modules = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
    importers: dict[str, set[str]] = defaultdict(set)
    for name, path in modules.items():
        for used in imported(path, modules):
            importers[used].add(name)
    for name in modules:
        if not importers[name] and "." in name:
            importers[name].add(name.rpartition(".")[0])  # its package finds it by itself
    tests: dict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for used in imported(path, modules):
            tests[used].append(path.relative_to(ROOT).as_posix())
    for name in [module_name(path.resolve()) for path in asked] or sorted(modules):
        between, nearest = nearest_tests(name, importers, tests)
        more = f" and {len(nearest) - SHOWN_TESTS} more" if len(nearest) > SHOWN_TESTS else ""
        print(f"{between:3d}  {name}: {', '.join(nearest[:SHOWN_TESTS])}{more}")


if __name__ == "__main__":
    main()
