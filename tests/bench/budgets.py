"""Budgets of whole commands: models by budgets, seconds of the clock and of the process beside what is
asked, and memory.

    python tests/bench/budgets.py [--models 20] [--budgets 2s 5s 15s] [--large] [--pairs 200] [--first 0]

Models of textbooks; ``--large``: of all pairs of rows instead, whose passes and reports take
seconds each, and a net with constraints, whose steps may be compiled. ``--pairs``: so many random
forms over pairs and triples of 1,000 to 12,000 rows in place of these (``tests/fuzz/pair_forms.py``),
from the seed ``--first`` on, which may end with a coded refusal too (status 2) and take at most
1.5 GB.

kept   the command took at most 1.3 times its budget and 5 s, and ended with a point and its report
       (exit status 0); on a busy
       machine the seconds of the process tell whether it was its work

Exit status 1 if any other than by the load was not kept.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
import pairs  # times by the processor from here on
import steps
from books import MODELS
from fuzz.pair_forms import case

from fccomodel.core.options import parse_budget

#: A command in a budget of seconds takes at most so many times these, and so many seconds more.
TIMES = 1.3
MORE = 5.0
#: A command that takes longer is ended, in seconds.
LONGEST_COMMAND = 180.0
#: The memory that a command may take on a random form.
MOST_GB = 1.5
#: What the names of random forms begin with.
FORM = "form "
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
    if name.startswith(FORM):
        made = case(int(name.removeprefix(FORM)))
        return made.text, made.data, []
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


def measured(arguments: list[str]) -> tuple[float, float, float, int, str]:
    """Seconds of the clock and of the process, the most GB that it held, the exit status, the last line."""
    began = time.monotonic()
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(
            [sys.executable, "-m", "fccomodel", *arguments], stdout=said, stderr=said, env=os.environ
        )
        alarm = threading.Timer(LONGEST_COMMAND, child.kill)
        alarm.start()
        _, status, used = os.wait4(child.pid, 0)
        alarm.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read().decode(errors="replace")
    wall, seconds = time.monotonic() - began, used.ru_utime + used.ru_stime
    return wall, seconds, used.ru_maxrss * 1024 / 1e9, child.returncode, text.strip().rpartition("\n")[2][:60]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--budgets", nargs="*", default=["2s", "5s", "15s"])
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--pairs", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    missed = 0
    print(f"{'model':32}{'budget':>8}{'clock s':>9}{'process s':>11}{'GB':>7}  kept")
    books = list(MODELS)[:: max(len(MODELS) // given.models, 1)][: given.models]
    names = [f"{FORM}{seed}" for seed in range(given.first, given.first + given.pairs)] or (
        list(LARGE) if given.large else books
    )
    for name in names:
        for budget in given.budgets:
            with tempfile.TemporaryDirectory() as folder:
                wall, used, peak, status, said = measured([*written(name, Path(folder)), "--budget", budget])
            most = TIMES * (parse_budget(budget).seconds or 0.0) + MORE
            ended = not status or name.startswith(FORM) and status == 2 and "F0001" not in said
            kept = "no"
            small = peak <= MOST_GB or not name.startswith(FORM)
            if used <= most and ended and small:
                kept = "yes" if wall <= most else "by load"
            missed += kept == "no"
            print(
                f"{name:32}{budget:>8}{wall:9.1f}{used:11.1f}{peak:7.2f}  {kept:8}{said if status else ''}",
                flush=True,
            )
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
