"""Budgets of whole commands: models by budgets, seconds of the clock and of the process beside what is asked.

    python tests/bench/budgets.py [--models 20] [--budgets 2s 5s 15s]

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
from pathlib import Path

import numpy as np
from books import MODELS

from fccomodel.core.options import parse_budget

TIMES, MORE = 1.3, 5.0


def written(name: str, folder: Path) -> list[str]:
    """The model with its data in files; the command's arguments."""
    model = MODELS[name]()
    (folder / "model.fcco").write_text(model.text)
    lines = []
    for key, value in model.data.items():
        if isinstance(value, dict):
            columns = {c: np.asarray(x) for c, x in value.items()}
            np.savez(folder / f"{key}.npz", **columns)
            lines += [f"[{key}]", f'source = "{key}.npz"', *(f'{c} = "{c}"' for c in columns)]
        else:
            np.save(folder / f"{key}.npy", np.asarray(value))
            lines += [f"[{key}]", f'source = "{key}.npy"']
    (folder / "model.toml").write_text("\n".join(lines) + "\n")
    return ["solve", str(folder / "model.fcco"), "--bind", str(folder / "model.toml"), "--quiet"]


def measured(arguments: list[str]) -> tuple[float, float, int, str]:
    """Seconds of the clock and of the process, the exit status, the last line."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "fccomodel", *arguments], capture_output=True, text=True, env=os.environ)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, used, done.returncode, (done.stdout + done.stderr).strip().rpartition("\n")[2][:60]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--budgets", nargs="*", default=["2s", "5s", "15s"])
    given = parser.parse_args()
    missed = 0
    print(f"{'model':32}{'budget':>8}{'clock s':>9}{'process s':>11}  kept")
    for name in list(MODELS)[:: max(len(MODELS) // given.models, 1)][: given.models]:
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
