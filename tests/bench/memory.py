"""Memory that ``explain`` foresees, beside what a solve takes, for models of different kinds of plans.

    python tests/bench/memory.py [NAME ...] [--budget 5s] [--write]

Each model is solved in a process of its own, after a small one that loads the libraries. Taken is
the most that the process held, less what it held before. ``--write`` keeps ``memory.md``. Exit
status 1 if a solve took more than it was foreseen to take.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from fuzz.pair_forms import case

Data = dict[str, Any]
#: The most memory that a process held, and what it holds, in its status.
MOST, NOW = "VmHWM", "VmRSS"
#: Bytes of a megabyte.
MB = 1e6
HERE = Path(__file__)


def rows(n: int, width: int, groups: int = 20) -> Data:
    """Rows with classes, groups and numbers."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, width))
    y = np.where(x[:, 0] + rng.normal(size=n) > 0, 1, -1)
    return {"D": {"x": x, "y": y, "t": x[:, 1] + rng.normal(size=n), "g": np.arange(n) % groups}}


def images(n: int) -> Data:
    """Noise with labels."""
    rng = np.random.default_rng(0)
    return {"D": {"x": rng.normal(size=(n, 1, 28, 28)), "y": rng.integers(0, 2, n) * 2 - 1}}


def convolutions() -> Any:
    """A small net of images."""
    import torch

    layers = torch.nn
    return layers.Sequential(
        layers.Conv2d(1, 16, 3, padding=1),
        layers.ELU(),
        layers.AvgPool2d(2),
        layers.Conv2d(16, 32, 3, padding=1),
        layers.ELU(),
        layers.AvgPool2d(2),
        layers.Flatten(),
        layers.Linear(32 * 49, 1),
    )


HEAD = "dim d; set G; data D : table(x: real[d], y: {-1, 1}, t: real, g: G);\n"
IMAGES = """data D : table(x: real[1, 28, 28], y: {-1, 1});
net s : real[1, 28, 28] -> real; var w = params(s);
minimize E[z ~ D] log1pexp(-z.y * s(w; z.x));
"""
PAIRS_OF_IMAGES = """data D : table(x: real[1, 28, 28], y: {-1, 1});
net s : real[1, 28, 28] -> real; var w = params(s);
minimize E[p ~ D, n ~ D | p.y == 1 and n.y == -1] sqhinge(1 - s(w; p.x) + s(w; n.x));
"""


def form(seed: int) -> Callable[[], tuple[str, Data, Data]]:
    """A random form over pairs or triples."""

    def made() -> tuple[str, Data, Data]:
        """Its text and data."""
        one = case(seed)
        return one.text, one.data, {}

    return made


def on_rows(body: str, n: int, width: int, groups: int = 20) -> Callable[[], tuple[str, Data, Data]]:
    """A model of ``HEAD``'s rows."""
    return lambda: (HEAD + body, rows(n, width, groups), {})


#: text, data and nets by name
MODELS: dict[str, Callable[[], tuple[str, Data, Data]]] = {
    "steps: logistic, 200,000 x 50": on_rows(
        "var w[d]; minimize E[z ~ D] log1pexp(-z.y * dot(w, z.x)) + 0.01 * sumsq(w);", 200_000, 50
    ),
    "tail: cvar, 1,000,000 x 4": on_rows(
        "var w[d]; minimize cvar(tail = 0.1)[z in D] log1pexp(-z.y * dot(w, z.x)) + 0.01 * sumsq(w);",
        1_000_000,
        4,
    ),
    "segments: max over rows of means over their groups, 12,000": on_rows(
        "var w[d]; minimize max[i in D] E[j ~ D | j.g == i.g] log1pexp(-j.y * dot(w, j.x) + i.t)"
        " + 0.01 * sumsq(w);",
        12_000,
        8,
        600,
    ),
    "family: pairs of groups, 12,000 rows (form 12)": form(12),
    "family: half of 12,000 rows in one group (form 11)": form(11),
    "triples, 150 groups (form 62)": form(62),
    "triples, half of 3,000 rows in one group (form 59)": form(59),
    "maximum inside logmeanexp (form 3)": form(3),
    "largest values in groups, 3,000 rows (form 129)": form(129),
    "tail of 24 million pairs (form 131)": form(131),
    "pairs: variance, 6,000 rows": on_rows(
        "var w[d] in box(-3, 3); minimize variance[i ~ D, j ~ D | i.t < j.t] dot(w, i.x - j.x)^2"
        " + E[z ~ D] log1pexp(-z.y * dot(w, z.x));",
        6_000,
        8,
    ),
    "conic: absolute deviations, 40,000 x 20": on_rows(
        "var w[d]; minimize mean[z in D] abs(z.t - dot(w, z.x)) + 0.001 * norm1(w);", 40_000, 20
    ),
    "conic: second order, 800 norms of 60": on_rows(
        "param k default 1; var w[d]; minimize mean[z in D] norm2(w - z.x) + sum[j in d] abs(w[j]);", 800, 60
    ),
    "conic: quadratic, 1,200 columns": on_rows(
        "var w[d] in box(0, 1); minimize mean[z in D] (z.t - dot(w, z.x))^2 + 0.1 * sum[j in d] abs(w[j] - 0.5);",
        2_000,
        1_200,
    ),
    "net: images, 6,000": lambda: (IMAGES, images(6_000), {"s": convolutions()}),
    "net: pairs of images, 3,000": lambda: (PAIRS_OF_IMAGES, images(3_000), {"s": convolutions()}),
    "distribution: log E exp of normals, 2,000 rows": on_rows(
        "var w[d] in box(-1, 1); minimize mean[z in D] log(E[e ~ normal(0, 1)] exp(z.t * e - dot(w, z.x)))"
        " + sumsq(w);",
        2_000,
        8,
    ),
}


def held(name: str) -> float:
    """A number of this process's status, in bytes."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(float(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def child(name: str, budget: str) -> dict[str, Any]:
    """Bytes foreseen for a model, and taken by its solve."""
    import fccomodel

    fccomodel.compile("var x; minimize (x - 1)^2 + abs(x);").bind().solve(budget="100it")
    text, data, nets = MODELS[name]()
    bound = fccomodel.compile(text).bind(data=data, nets=nets)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = held(NOW)
    needed = bound.explain(budget=budget).memory
    foreseen = {}
    if needed is not None:
        foreseen = {"run": needed.run, "interior": needed.interior, "report": needed.report or 0.0}
        foreseen["total"] = needed.total
    explaining = held(MOST) - before
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = held(NOW)
    try:
        result = bound.solve(budget=budget)
        said = result.algorithm
    except fccomodel.FccoError as error:
        said = error.diagnostics[0].code
    return {"foreseen": foreseen, "taken": held(MOST) - before, "explaining": explaining, "said": said}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*")
    parser.add_argument("--budget", default="5s")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--child", default="")
    given = parser.parse_args()
    if given.child:
        print(json.dumps(child(given.child, given.budget)))
        return 0
    lines = [
        "| model | method | foreseen, MB | taken, MB | foreseen / taken | to explain, MB |",
        "|---|---|---|---|---|---|",
    ]
    print(*lines, sep="\n", flush=True)
    missed = 0
    for name in MODELS:
        if given.names and not any(part in name for part in given.names):
            continue
        command = [sys.executable, str(HERE), "--child", name, "--budget", given.budget]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(name, done.stderr[-2000:])
            missed += 1
            continue
        found = json.loads(done.stdout.strip().rpartition("\n")[2])
        foreseen = found["foreseen"].get("total", 0.0)
        missed += found["taken"] > foreseen
        ratio = foreseen / max(found["taken"], 1.0)
        lines.append(
            f"| {name} | {found['said']} | {foreseen / MB:.0f} | {found['taken'] / MB:.0f} | {ratio:.2g} "
            f"| {found['explaining'] / MB:.0f} |"
        )
        print(lines[-1], {k: round(v / MB) for k, v in found["foreseen"].items()}, flush=True)
    if given.write:
        HERE.with_suffix(".md").write_text("\n".join([INTRODUCTION, *lines, ""]), encoding="utf-8")
    return int(missed > 0)


INTRODUCTION = """# Memory foreseen and taken

`python tests/bench/memory.py --write`. Foreseen is what `explain` says of a solve; taken is the most that the
process held during the solve, less what it held before, the data included in neither. Some 100 MB are taken by every
first solve, whatever the model: heaps, and code that is loaded late.
"""

if __name__ == "__main__":
    sys.exit(main())
