"""The interface's types: written from the library, shipped, and right for a user's program."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest
from support.places import ROOT

import fccomodel
from fccomodel.app.python import stub

STUB = ROOT / "fccomodel" / "__init__.pyi"
PROGRAM = """\
import fccomodel as fc
from fccomodel import E, cvar, log1pexp, mean, normal, real, simplex

m = fc.Model("typed")
m.D = fc.table(x=real, y={0, 1})
m.x = fc.var(3, domain=simplex(3))
m.minimize(E(log1pexp(z.x) for z in m.D) + cvar((z.x for z in m.D), tail=0.1))
text: str = m.to_python()
value: float = m.mock().solve().objective
log1pexp(1, 2, 3)
"""


def test_the_stub_is_the_library(update_golden):
    if update_golden:
        STUB.write_text(stub.text())
    assert STUB.read_text() == stub.text()


def test_the_stub_names_the_interface():
    tree = ast.parse(STUB.read_text())
    named = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    named |= {
        node.target.id
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    named |= {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    shown = {name for name in dir(fccomodel) if not name.startswith("_") and name[0] != "_"}
    rooms = {path.stem for path in (ROOT / "fccomodel").iterdir()}
    assert shown - named - rooms <= {"annotations", "sys"} | {"Any", "TYPE_CHECKING", "ModuleType"}
    assert (ROOT / "fccomodel" / "py.typed").exists()


@pytest.mark.slow
def test_a_checker_of_types_reads_it(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--follow-imports=skip", "program.py"],
        cwd=tmp_path,
        env={"MYPYPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert (
        done.stdout.count("error:") == 1
        and 'program.py:10: error: Too many arguments for "log1pexp"' in done.stdout
    )
