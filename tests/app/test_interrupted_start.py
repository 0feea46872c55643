"""Ctrl-C while the command is being imported: exit status 130 and one line."""

from __future__ import annotations

import subprocess
import sys

import pytest

#: Stands for a user who presses Ctrl-C as soon as a module begins to be imported.
PRESSED = """
import os, runpy, signal, sys
class Pressing:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Pressing())
sys.argv[0] = "fccomodel"
runpy.run_module("fccomodel", run_name="__main__", alter_sys=False)
"""


@pytest.mark.parametrize(
    "name", ["fccomodel.core.diagnostics", "fccomodel.app.cli._main", "fccomodel.language", "torch"]
)
def test_during_imports(name: str, tmp_path) -> None:
    (tmp_path / "m.fcco").write_text("var w; minimize (w - 1)^2;")
    command = [sys.executable, "-c", PRESSED.format(name=name), "solve", str(tmp_path / "m.fcco"), "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (130, "fccomodel: interrupted\n")


def test_programs_that_import_the_package_keep_their_own() -> None:
    text = "import signal, fccomodel; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
    assert done.stdout == "True\n"
