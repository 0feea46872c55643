"""Parts of torch that are read when they are touched, in the process of a command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from fccomodel.core import ir, late
from fccomodel.data import nets

EXAMPLES = Path(__file__).parents[2] / "examples"

COMMAND = """
import importlib.machinery as machinery, inspect, sys, threading, warnings
from pathlib import Path
from types import ModuleType

loaded, made = [], machinery.ExtensionFileLoader.create_module
machinery.ExtensionFileLoader.create_module = lambda self, spec: (loaded.append(spec.name), made(self, spec))[1]
started, start = [], threading.Thread.start
threading.Thread.start = lambda self: (started.append(len(loaded)), start(self))[1]
sys.argv = ["fccomodel", "solve", "neyman_pearson.fcco", "--bind", "neyman_pearson.toml", "--quiet"]
from fccomodel.app.cli import command
assert command() == 0

import torch
from fccomodel.core import late
parts = [sys.modules[name] for name in late.MODULES]
untouched = lambda: all(type(part) is late._Late for part in parts)
assert untouched() and not {"sympy", "pandas", "scipy"} & set(sys.modules)
# The library was on its way before torch, and nothing waited for it.
if sys.platform == "linux":
    assert not {"torch._C", "_posixsubprocess"} & set(loaded[: started[0]])
    assert loaded[started[0]] in ("_socket", "_posixsubprocess", "array"), loaded[started[0]]

# Looks at all modules touch nothing.
inspect.modulesbyfile.clear()
inspect.getmodule(inspect.currentframe(), "nowhere.py")
with warnings.catch_warnings():
    warnings.simplefilter("error")
assert all(Path(part.__file__).is_file() and not hasattr(part, "__warningregistry__") for part in parts) and untouched()
torch.func  # was there

# One touch reads all, into the same objects, and submodules once.
import torch.export.graph_signature as signature
assert all(type(part) is ModuleType and part is sys.modules[part.__name__] for part in parts)
assert signature is torch.export.graph_signature is sys.modules["torch.export.graph_signature"]
assert torch.export.ExportGraphSignature is signature.ExportGraphSignature and late._FINDER not in sys.meta_path
empty = torch.ones(3, device="meta")
assert torch.lerp(empty, empty, 0.5).shape == torch.ops.aten.lerp.Scalar(empty, empty, 0.5).shape == (3,)
"""


def test_a_solve_reads_nothing_of_them_and_one_touch_all():
    done = subprocess.run([sys.executable, "-c", COMMAND], cwd=EXAMPLES, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_all_is_read_before_the_users_code(tmp_path, monkeypatch):
    order: list[str] = []
    monkeypatch.setattr("builtins.order", order, raising=False)
    monkeypatch.setattr(late, "whole", lambda: order.append("whole"))
    (tmp_path / "net.py").write_text("import torch\norder.append('theirs')\ndef make():\n    return torch.nn.Linear(3, 2)\n")
    nets.build(ir.Net(name="s", input=(3,), output=(2,)), f"{tmp_path / 'net.py'}:make", {}, allow_python=True)
    assert order == ["whole", "theirs"]
