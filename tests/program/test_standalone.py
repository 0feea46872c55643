"""A solver by itself: its text and its data in an empty folder, torch and the standard library alone."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from support.emitted_models import Made, finish, make
from support.places import SHARED

from fccomodel import pipeline
from fccomodel.core.files import model_source
from fccomodel.execution import run

MODELS = sorted(p.stem for p in (SHARED / "models").glob("*.fcco")) if (SHARED / "data").is_dir() else []
SMALL = [
    "constraint_family",
    "cvar_rows",
    "net_and_more",
    "risk_set",
    "simple_sets",
    "affine_set",
    "noise",
    "dro_kl",
    "table_family",
]


Runner = Callable[[Path, list[str]], str]


def by_itself(folder: Path, given: list[str]) -> str:
    """What a program prints in a process of its own, where a warning is an error."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "solver.py", *given], cwd=folder, capture_output=True, text=True, timeout=300,
        env={**os.environ, "PYTHONPATH": "", "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def reproduces(
    case: Made, folder: Path, steps: int, runner: Runner = by_itself, **options: str
) -> dict[str, torch.Tensor]:
    """The program run alone ends where it ends when it is run from here, from the same seed."""
    (folder / "solver.py").write_text(case.program.text)
    torch.save(dict(case.program.data), folder / "data.pt")
    here = run.run(case.program, case.bound, run.RunSettings(seed=4, iterations=steps))
    given = [
        "--seed",
        "4",
        "--iterations",
        str(steps),
        "--out",
        "w.pt",
        *(x for k, v in options.items() for x in (f"--{k}", v)),
    ]
    text = runner(folder, given)
    data = case.solver.prepare_full(case.solver.as_namespace(dict(case.program.data), "cpu", torch.float64))
    found = torch.load(folder / "w.pt", weights_only=True)
    w = torch.cat([found[name].reshape(-1) for name in case.program.layout])
    with torch.no_grad():
        objective, _ = case.solver.evaluate(data, w)
    printed = re.search(r"^objective (\S+) ", text, re.M)
    assert printed is not None and float(printed[1]) == pytest.approx(
        case.solver.SIGN * float(objective), rel=1e-6
    )
    for name, value in here.variables.items():
        assert torch.allclose(
            found[name], torch.as_tensor(value).reshape(found[name].shape), rtol=1e-4, atol=1e-6
        ), name
    return found


@pytest.mark.parametrize("name", SMALL)
def test_small(name: str, tmp_path: Path, here: Runner) -> None:
    reproduces(make(name), tmp_path, 60, here)


def test_options(tmp_path: Path, here: Runner) -> None:
    case = make("risk_set", precision="float64")
    found = reproduces(case, tmp_path, 60, here, precision="float32", device="cpu", seconds="100")
    assert found["w"].dtype == torch.float64


@pytest.mark.parametrize("name", MODELS)
def test_shared_models(name: str, tmp_path: Path, here: Runner) -> None:
    compiled = pipeline.compile_model(model_source(SHARED / "models" / f"{name}.fcco"))
    bound = pipeline.bind(
        compiled, pipeline.Binding(spec=SHARED / "models" / f"{name}.toml", data_dir=SHARED / "data")
    )
    reproduces(
        finish(name, compiled.problem, bound, {}), tmp_path, 24, by_itself if name == MODELS[0] else here
    )


@pytest.mark.parametrize("name", SMALL)
def test_text(name: str) -> None:
    """It imports torch and the standard library alone (another backend than eager, which it does
    without, from the package), defines nothing it does not use, and its lines are not long."""
    text = make(name).program.text
    tree = ast.parse(text)
    backends = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Try) and "equip_program" in ast.unparse(node.body)
    ]
    assert len(backends) == 1 and backends[0].handlers[0].type.id == "ImportError"
    backends[0].body = [ast.Pass()]
    modules = {
        alias.name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    modules |= {str(node.module).split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert modules <= {"torch", *sys.stdlib_module_names}
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} | {
        n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)
    }
    defined = [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("__")
    ]
    asked_by_torch = {"_should_skip_dynamo"}
    assert [name for name in defined if name not in used | asked_by_torch] == []
    steps = text[text.index("# ---- f and g") : text.index("# ---- the loop")].partition(
        "# ---- the smoothed problem"
    )[0]
    assert [line for line in steps.splitlines() if len(line) > 140] == []
