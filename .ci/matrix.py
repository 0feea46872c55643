"""Whether the package installs and solves with other versions of Python and of its dependencies.

    python .ci/matrix.py PYTHON [PYTHON ...] [--oldest]

PYTHON is an interpreter of the machine. Each gets an environment of its own with the newest versions
that pip finds or, with ``--oldest``, with the lower bounds of ``pyproject.toml``. There a wheel of this
checkout solves examples from another folder, runs an emitted program, and trains with a criterion. A
line of a Markdown table says which versions did; the exit status is 1 if one did not.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: The packages whose versions the table shows.
SHOWN = ("torch", "numpy", "scipy", "pandas", "scikit-learn")
#: Packages whose version torch decides.
LEFT_TO_TORCH = ("sympy",)
VERSIONS = f"""
import platform
from importlib.metadata import version
print("|", platform.python_version(), "|", " | ".join(version(name) for name in {SHOWN}), end=" |")
"""
SESSION = """
import numpy as np, torch
import fccomodel as fc
rng = np.random.default_rng(0)
D = {"x": rng.normal(size=(64, 3)), "y": np.arange(64) % 2}
pairs = "data D : table(x: real[3], y: {0, 1}); net s : real[3] -> real; var v = params(s); "
pairs += "minimize E[z ~ D | z.y == 0] log1pexp(s(v; z.x)); "
pairs += "subject to q: E[z ~ D | z.y == 1] log1pexp(-s(v; z.x)) <= 0.5;"
net = torch.nn.Linear(3, 1)
criterion = fc.compile(pairs).bind(D=D, nets={"s": net}).criterion(batch=16)
optimizer = torch.optim.Adam(net.parameters())
x = torch.as_tensor(D["x"], dtype=torch.float32)
for rows in criterion.sampler(seed=0):
    loss = criterion(torch.as_tensor(rows), s=net(x[rows]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    criterion.step()
result = fc.compile("var w[2]; minimize sumsq(w - [1, 2]); subject to s: sum(w) <= 1;").bind().solve()
assert result.status == "solved", result.status
"""


def lower_bounds() -> list[str]:
    """The lower bounds of the dependencies and of the extra ``data`` as exact versions."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    bounds = [*project["dependencies"], *project["optional-dependencies"]["data"]]
    exact = [re.sub(r">=", "==", bound) for bound in bounds]
    return [bound for bound in exact if bound.partition("==")[0] not in LEFT_TO_TORCH]


def check(python: str, oldest: bool, folder: Path) -> None:
    """Install and solve with one interpreter. Raises CalledProcessError if anything fails."""
    quiet = {"check": True, "stdout": subprocess.DEVNULL, "cwd": folder}
    subprocess.run([python, "-m", "venv", "env"], **quiet)
    own = folder / "env" / "bin" / "python"
    versions = lower_bounds() if oldest else []
    subprocess.run([own, "-m", "pip", "install", "--quiet", f"{ROOT}[data]", *versions], **quiet)
    for name in ("neyman_pearson", "portfolio", "auc_net"):
        model = ROOT / "examples" / name
        command = [own, "-m", "fccomodel", "solve", f"{model}.fcco", "--bind", f"{model}.toml"]
        subprocess.run([*command, "--quiet", "--budget", "5s", "--out", name], **quiet)
    subprocess.run([own, "neyman_pearson/solver.py"], **quiet)
    subprocess.run([own, "-c", SESSION], **quiet)
    print(subprocess.run([own, "-c", VERSIONS], check=True, capture_output=True, text=True).stdout, flush=True)


def main() -> int:
    """Check each interpreter, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python", nargs="+", help="an interpreter")
    parser.add_argument("--oldest", action="store_true", help="the lower bounds of pyproject.toml")
    given = parser.parse_args()
    print(f"| Python | {' | '.join(SHOWN)} |\n|---|{'---|' * len(SHOWN)}")
    failed = 0
    for python in given.python:
        with tempfile.TemporaryDirectory() as folder:
            try:
                check(python, given.oldest, Path(folder))
            except subprocess.CalledProcessError as error:
                failed += 1
                print(f"| {python} | failed: {' '.join(map(str, error.cmd))[:300]} |", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
