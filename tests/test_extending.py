"""What the page on adding says: each of its files, put into a copy of the package, is found by itself,
kept to what it declares, and solves its model."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.places import ROOT

PAGE = ROOT / "tutorials" / "03_extending.md"
FILES = dict(
    re.findall(r"^```python\n# (fccomodel/\S+\.py)\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
)
BLOCKS = re.findall(r"^```fcco\nmodel (\w+);(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
MODELS = {name: f"model {name};{text}" for name, text in BLOCKS}
PYTHON = """
import json, sys
import numpy as np
import fccomodel
rng = np.random.default_rng(0)
x = rng.normal(size=(60, 4))
y = x @ [0.5, -1.0, 0.0, 2.0] + rng.normal(size=60)
with open("rows.jsonl", "w") as file:
    for a, b in zip(x.tolist(), y.tolist()):
        print(json.dumps({f"x{k}": v for k, v in enumerate(a)} | {"y": b}), file=file)
table = {"data": {"D": {"x": x, "y": y}}}
rows = {"spec": {"D": {"source": "rows.jsonl", "x": {"columns": [f"x{k}" for k in range(4)]}}}}


def solved(name, given=table, **options):
    found = fccomodel.compile(f"{name}.fcco").bind(**given).solve(budget="2000it", **options)
    return {"w": found.variables["w"].tolist(), "epsilon": found.report.epsilon, "objective": found.objective}


answers = {name: solved(name) for name in sys.argv[1:]}
answers["rows"] = solved("linf", rows)
answers["named"] = solved("rms", algorithm="normalised_sox")
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with the page's files in it."""
    home = tmp_path_factory.mktemp("extended")
    for folder in ("fccomodel", "grammar"):
        shutil.copytree(ROOT / folder, home / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in FILES.items():
        assert not (home / name).exists(), f"{name} is in the package already"
        (home / name).write_text(text)
    return home


def run(home: Path, *command: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(home), "XDG_CONFIG_HOME": str(home), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *command], cwd=home, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def solved(home: Path) -> dict[str, dict]:
    """The answers to the page's models, all of one process."""
    for name, text in MODELS.items():
        (home / f"{name}.fcco").write_text(text)
    return json.loads(run(home, "-c", PYTHON, *MODELS).splitlines()[-1])


@pytest.mark.parametrize("name", MODELS)
def test_each_model_is_solved(solved: dict[str, dict], name: str) -> None:
    assert solved[name]["epsilon"] <= 1e-3


def test_answers_are_those_of_what_was_added(solved: dict[str, dict]) -> None:
    plain = np.array(solved["linf"]["w"])
    assert (
        np.abs(plain).max() - np.sort(np.abs(plain))[-2] >= 0
        and abs(np.array(solved["slab"]["w"]).sum()) <= 0.2 + 1e-6
    )


def test_rows_of_the_new_source(solved: dict[str, dict]) -> None:
    assert solved["rows"]["objective"] == pytest.approx(solved["linf"]["objective"], rel=1e-5)


def test_the_algorithm_runs_when_it_is_named(solved: dict[str, dict]) -> None:
    assert solved["named"]["objective"] == pytest.approx(solved["rms"]["objective"], rel=1e-2)


def test_each_keeps_what_it_declares(home: Path) -> None:
    """The tests of each kind, on the new ones among it; a reduction's values by brute force are a
    table of the tests."""
    names = " or ".join(Path(name).stem for name in FILES)
    chosen = f"({names}) and not brute_force and not where_elements_are"
    run(home, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(ROOT / "tests" / "library"), "-k", chosen)
