"""Budgets of whole commands: models by budgets, seconds of the clock and of the process beside what is asked.

    python tests/bench/budgets.py [--models 20] [--budgets 2s 5s 15s] [--large]

Models of textbooks; ``--large``: of all pairs of rows instead, whose passes and reports take seconds each, and a net with
constraints, whose steps may be compiled.

kept   the command took at most 1.3 times its budget and 5 s, and ended with a point and its report (exit status 0); on a busy
       machine the seconds of the process tell whether it was its work

Exit status 1 if any other than by the load was not kept.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pairs  # times by the processor from here on
import steps
from books import MODELS

from fccomodel.core.options import parse_budget

TIMES, MORE = 1.3, 5.0
NET = ["--net", "s=mlp(64, 64, activation=elu)"]


def table(made: tuple[np.ndarray, np.ndarray]) -> dict[str, Any]:
    """Rows and classes as the table of a model of pairs."""
    return {"D": {"x": made[0], "y": made[1]}}


#: texts, data and further arguments by name
LARGE: dict[str, Callable[[], tuple[str, dict[str, Any], list[str]]]] = {
    "nca, 8,000 x 16": lambda: (pairs.NCA, table(pairs.letters(8000)), []),
    "nca, 4,000 x 16": lambda: (pairs.NCA, table(pairs.letters(4000)), []),
    "ranking, 50,000 x 300": lambda: (pairs.PAUC, table(pairs.sparse(50_000)), []),
    "14 constraints, net": lambda: (steps.model(steps.GROUPS, True).text, steps.data(), NET),
    "pairs, net": lambda: (steps.model(steps.PAUC, True).text, steps.data(), NET),
}


def read(name: str) -> tuple[str, dict[str, Any], list[str]]:
    """Text, data and further arguments of a model."""
    if name in LARGE:
        return LARGE[name]()
    model = MODELS[name]()
    return model.text, model.data, []


def written(name: str, folder: Path) -> list[str]:
    """The model with its data in files; the command's arguments."""
    text, data, more = read(name)
    (folder / "model.fcco").write_text(text)
    lines = []
    for key, value in data.items():
        if isinstance(value, dict):
            columns = {c: np.asarray(x) for c, x in value.items()}
            np.savez(folder / f"{key}.npz", **columns)
            lines += [f"[{key}]", f'source = "{key}.npz"', *(f'{c} = "{c}"' for c in columns)]
        else:
            np.save(folder / f"{key}.npy", np.asarray(value))
            lines += [f"[{key}]", f'source = "{key}.npy"']
    (folder / "model.toml").write_text("\n".join(lines) + "\n")
    return ["solve", str(folder / "model.fcco"), "--bind", str(folder / "model.toml"), "--quiet", *more]


def measured(arguments: list[str]) -> tuple[float, float, int, str]:
    """Seconds of the clock and of the process, the exit status, the last line."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run([sys.executable, "-m", "fccomodel", *arguments], capture_output=True, text=True, env=os.environ)
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, used, done.returncode, (done.stdout + done.stderr).strip().rpartition("\n")[2][:60]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--budgets", nargs="*", default=["2s", "5s", "15s"])
    parser.add_argument("--large", action="store_true")
    given = parser.parse_args()
    missed = 0
    print(f"{'model':32}{'budget':>8}{'clock s':>9}{'process s':>11}  kept")
    for name in LARGE if given.large else list(MODELS)[:: max(len(MODELS) // given.models, 1)][: given.models]:
        for budget in given.budgets:
            with tempfile.TemporaryDirectory() as folder:
                wall, used, status, said = measured([*written(name, Path(folder)), "--budget", budget])
            most = TIMES * (parse_budget(budget).seconds or 0.0) + MORE
            kept = "yes" if wall <= most and not status else "by load" if used <= most and not status else "no"
            missed += kept == "no"
            print(f"{name:32}{budget:>8}{wall:9.1f}{used:11.1f}  {kept:8}{said if status else ''}", flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
