"""Seconds to each of twelve milestones of a new user, in a new clone with a new environment.

    python tests/bench/first_hour.py [--env DIR]

Each milestone is a command or a script of its own, in a folder outside of the clone, as the README and the
guide tell it; so imports count each time. A table says how long each took. The exit status is 1 if one fails.
With ``--env`` an environment that has fccomodel is used, and the clone's is not installed: its milestone is
left out.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = ("data", "report")

DATA = """
import pandas as pd
from sklearn.datasets import load_breast_cancer
frame = load_breast_cancer(as_frame=True).frame
frame["size"] = pd.cut(frame["mean area"], 3, labels=["small", "medium", "large"]).astype(str)
frame.to_csv("patients.csv", index=False)
"""
MODEL = """
import fccomodel as fc
from fccomodel import E, dot, log1pexp, real, sumsq

m = fc.Model("patients")
m.d = fc.dim()
m.D = fc.table(x=real[m.d], target={0, 1})
m.tau = fc.param(ge=0, default=0.1)
m.w = fc.var(m.d)
m.b = fc.var()
D, w, b = m.D, m.w, m.b
ill, well = D.where(D.target == 0), D.where(D.target == 1)
m.minimize(alarms=E(log1pexp(-(dot(w, z.x) + b)) for z in well) + 0.01 * sumsq(w))
m.subject_to(misses=E(log1pexp(dot(w, z.x) + b) for z in ill) <= m.tau)
"""
SOLVE = """
import pandas as pd
from model import m
frame = pd.read_csv("patients.csv")
problem = m.bind(spec={"D": {"x": {"columns": "*", "scale": "standard"}}}, D=frame.drop(columns="size"))
result = problem.solve(seed=0)
"""
FILE = """
model ranks;
dim d;
data D : table(x: real[d], y: {0, 1});
var w[d];
minimize auc: E[p ~ D, n ~ D | p.y == 1 and n.y == 0] log1pexp(dot(w, n.x - p.x)) + 0.01 * sumsq(w);
"""
BINDING = """
[D]
source = "patients.csv"
x = { columns = "*", scale = "standard" }
y = { column = "target" }
"""
NETWORK = """
import numpy as np
import torch
import fccomodel as fc

rng = np.random.default_rng(0)
D = {"x": rng.normal(size=(400, 5)), "y": np.arange(400) % 2}
text = "data D : table(x: real[5], y: {0, 1}); net s : real[5] -> real; var v = params(s); "
text += "minimize E[z ~ D | z.y == 0] log1pexp(s(v; z.x)); "
text += "subject to q: E[z ~ D | z.y == 1] log1pexp(-s(v; z.x)) <= 0.6;"
net = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.ELU(), torch.nn.Linear(8, 1))
criterion = fc.compile(text).bind(D=D, nets={"s": net}).criterion(batch=32)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
x = torch.as_tensor(D["x"], dtype=torch.float32)
for rows in criterion.sampler(seed=0):
    loss = criterion(torch.as_tensor(rows), s=net(x[rows]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    criterion.step()
assert np.isfinite(float(loss))
"""
#: A cell of a notebook runs in a kernel, and must show a picture.
JUPYTER = """
import nbformat
from nbclient import NotebookClient
code = open("solve.py").read()
cells = [nbformat.v4.new_code_cell(code), nbformat.v4.new_code_cell("result.plot()")]
book = NotebookClient(nbformat.v4.new_notebook(cells=cells), timeout=300).execute()
assert any("image/png" in shown.get("data", {}) for shown in book.cells[1].outputs), book.cells[1].outputs
"""


@dataclass(frozen=True)
class Milestone:
    """Something that a new user does: files to write first, then what runs.

    script   a Python script; or else ``command``, the arguments of ``fccomodel``
    needs    a package without which the milestone is left out
    """

    name: str
    files: tuple[tuple[str, str], ...] = ()
    script: str = ""
    command: tuple[str, ...] = ()
    needs: str = ""


MILESTONES = (
    Milestone(
        "first solve",
        command=("solve", "{root}/examples/neyman_pearson.fcco", "--bind", "{root}/examples/neyman_pearson.toml", "--out", "out"),
    ),
    Milestone("report understood", script="import fccomodel as fc\nprint(fc.load('out').in_words)"),
    Milestone("own model in Python", (("data.py", DATA), ("model.py", MODEL), ("solve.py", SOLVE)), script="import data, solve\nassert solve.result.status == 'solved', solve.result.status"),
    Milestone("as a file", script="from model import m\nopen('patients.fcco', 'w').write(str(m))\nimport fccomodel as fc\nfc.compile('patients.fcco')"),
    Milestone("plot in Jupyter", script=JUPYTER, needs="nbclient"),
    Milestone("predict", script="from solve import result, frame\nlabels = result.predict(frame)\nassert (labels == frame.target).mean() > 0.9\nprint(result.coef_)"),
    Milestone("change a parameter", script="from solve import problem, result\ntighter = problem.with_params(tau=0.08).solve(start=result)\nassert tighter.objective > result.objective"),
    Milestone("sweep", script="from solve import problem\ncurve = problem.sweep(tau=[0.12, 0.1, 0.08])\nprint(curve)\ncurve.plot().savefig('curve.png')"),
    Milestone("report page", command=("report", "out", "-o", "page.html")),
    Milestone("ranking model", (("ranks.fcco", FILE), ("ranks.toml", BINDING)), command=("solve", "ranks.fcco", "--bind", "ranks.toml", "--quiet")),
    Milestone("network", script=NETWORK),
)


def installed(clone: Path) -> tuple[Path, float]:
    """The interpreter of a new environment in a new clone, and the seconds that the installation took."""
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(clone)], check=True)
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "venv", ".venv"], cwd=clone, check=True)
    python = clone / ".venv" / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "--quiet", "-c", ".ci/constraints.txt", f".[{','.join(EXTRAS)}]"]
    subprocess.run(install, cwd=clone, check=True)
    return python, time.perf_counter() - start


def seconds(milestone: Milestone, python: Path, root: Path, folder: Path) -> float | str:
    """How long a milestone took, or why it failed."""
    for name, text in milestone.files:
        (folder / name).write_text(text.lstrip(), encoding="utf-8")
    arguments = ["-m", "fccomodel", *(part.format(root=root) for part in milestone.command)]
    if milestone.script:
        (folder / "step.py").write_text(milestone.script.lstrip(), encoding="utf-8")
        arguments = ["step.py"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    start = time.perf_counter()
    ran = subprocess.run([str(python), *arguments], cwd=folder, env=environment, capture_output=True, text=True)
    if ran.returncode:
        return (ran.stderr or ran.stdout).strip()[-600:] or f"exit status {ran.returncode}"
    return time.perf_counter() - start


def has(python: Path, package: str) -> bool:
    """Whether an environment has a package."""
    return subprocess.run([str(python), "-c", f"import {package}"], capture_output=True).returncode == 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; the exit status is 1 if a milestone fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", type=Path, help="an environment that has fccomodel")
    given = parser.parse_args(arguments)
    failed = 0
    print("| milestone | seconds |\n|---|---|")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "work"
        folder.mkdir()
        root, python = ROOT, given.env and given.env.absolute() / "bin" / "python"
        if python is None:
            root = Path(place) / "clone"
            python, took = installed(root)
            print(f"| install | {took:.1f} |", flush=True)
        for milestone in MILESTONES:
            if milestone.needs and not has(python, milestone.needs):
                print(f"| {milestone.name} | not measured: {milestone.needs} is not installed |", flush=True)
                continue
            took = seconds(milestone, python, root, folder)
            shown = f"{took:.1f}" if isinstance(took, float) else f"FAILED: {' '.join(took.split())}"
            failed += isinstance(took, str)
            print(f"| {milestone.name} | {shown} |", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
