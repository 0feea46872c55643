"""Solves that are killed at random instants and go on from their checkpoints: ``python
tests/bench/resume.py [--kills 50]``.

Each case is solved once as it is, then with checkpoints in processes that are killed (SIGKILL and
SIGTERM in turn, anywhere between the first step and the end of the report) until its share of kills
has been done. What is left to do is then done, and variables, multipliers, steps and the reason to
stop are compared with the first: to the bit.
"""

from __future__ import annotations

import argparse
import os
import pickle
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import fccomodel

HINGE = """dim d; data D : table(x: real[d], y: real); var w[d];
minimize E[z ~ D] pos(1 - z.y * dot(w, z.x)) + 0.05 * norm2(w)^2;
subject to size: E[z ~ D] abs(dot(w, z.x)) <= 0.5;"""
BLOCKS = """dim d; data D : table(x: real[d], y: real); var w[d];
set P = {p in D | p.y > 0}; set N = {n in D | n.y < 0};
minimize mean[p in P] log(E[n ~ N] exp(dot(w, n.x) - dot(w, p.x))) + 0.1 * norm2(w)^2;"""
SHARED = """dim d; data D : table(x: real[d], y: real); var w[d];
minimize log(E[z ~ D] exp(-z.y * dot(w, z.x))) + 0.05 * norm2(w)^2;"""
MEDIAN = """dim d; data D : table(x: real[d], y: real); var w[d];
minimize mean[z in D] abs(dot(w, z.x) - z.y) subject to few: norm1(w) <= 0.4;"""
NET = """dim d; data D : table(x: real[d], y: real); net s : real[d] -> real; var v = params(s);
minimize E[z ~ D] softplus(-z.y * s(v; z.x));
subject to centred: abs(E[z ~ D] s(v; z.x)) <= 0.05;"""
#: name -> model, options, nets
CASES: dict[str, tuple[str, dict[str, Any], dict[str, str]]] = {
    "sonex": (HINGE, {"algorithm": "sonex", "budget": "1500it"}, {}),
    "sonex, float64": (BLOCKS, {"algorithm": "sonex", "budget": "800it", "precision": "float64"}, {}),
    "alexr2": (HINGE, {"algorithm": "alexr2", "budget": "1500it", "precision": "float64"}, {}),
    "msvr": (BLOCKS, {"algorithm": "msvr", "budget": "800it"}, {}),
    "sox, theory": (BLOCKS, {"algorithm": "sox", "budget": "800it", "schedule": "theory"}, {}),
    "hscg": (HINGE, {"algorithm": "hscg", "budget": "5e5oracles"}, {}),
    "ascvrg": (SHARED, {"algorithm": "ascvrg", "budget": "5e5oracles", "precision": "float64"}, {}),
    "race": (BLOCKS, {"algorithm": "race", "budget": "1500it"}, {}),
    "finish": (BLOCKS, {"budget": "600s", "precision": "float64"}, {}),
    "median": (MEDIAN, {"budget": "600s"}, {}),
    "net": (NET, {"budget": "1500it"}, {"s": "mlp(8)"}),
}


def posed(text: str, nets: dict[str, str], rows: int = 600) -> Any:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, 6))
    y = np.sign(x[:, 0] + 0.5 * x[:, 1] + 0.5 * rng.normal(size=rows))
    return fccomodel.compile(text).bind(data={"D": {"x": x, "y": y}}, nets=nets)


def solved(problem: Any, options: dict[str, Any], file: Path, **kept: Any) -> Callable[[], None]:
    """A solve whose end is written to a file."""

    def work() -> None:
        result = problem.solve(**options, **kept)
        solution = result.outcome.solution
        last = (solution.iterations, solution.stopped, result.objective, result.algorithm)
        file.write_bytes(pickle.dumps((dict(solution.variables), dict(solution.multipliers), last)))

    return work


def child(work: Callable[[], None], said: Path) -> int:
    """A process that does this; what it says of errors goes to a file."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
            work()
            status = 0
        except SystemExit as end:
            status = int(end.code or 0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return pid


def same(one: Any, other: Any) -> bool:
    """Two ends to the bit."""
    alike = all(np.array_equal(one[0][name], other[0][name]) for name in one[0])
    return alike and one[0].keys() == other[0].keys() and one[1:] == other[1:]


def killed(name: str, kills: int, rng: random.Random, folder: Path) -> tuple[Counter, bool]:
    """How many were killed, and with what; whether the end is that of a solve that was not."""
    text, options, nets = CASES[name]
    problem, found = posed(text, nets), Counter()
    began = time.perf_counter()
    os.waitpid(child(solved(problem, options, folder / "first"), folder / "said"), 0)
    long = time.perf_counter() - began
    for k in range(20 * kills):
        if found["SIGKILL", "with a checkpoint"] + found["SIGTERM", "with a checkpoint"] >= kills:
            break
        every, signals = rng.choice([0.0, 0.05, 0.2]), (signal.SIGKILL, signal.SIGTERM)
        pid = child(
            solved(problem, options, folder / "again", checkpoint=folder / "kept", every=every),
            folder / "said",
        )
        time.sleep(rng.uniform(0.05, 1.2) * long)
        os.kill(pid, signals[k % 2])
        status = os.waitpid(pid, 0)[1]
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
            found["ended"] += 1
            continue
        stopped = os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 143
        assert stopped, f"{name}: exit status {status}\n{(folder / 'said').read_text()}"
        where = sorted((folder / "kept").glob("*/[0-9]*/manifest.json"))
        found[signals[k % 2].name, "with a checkpoint" if where else "before the first"] += 1
    pid = child(
        solved(problem, options, folder / "again", checkpoint=folder / "kept", every=60.0), folder / "said"
    )
    assert os.waitpid(pid, 0)[1] == 0, f"{name}: the last did not end"
    ends = [pickle.loads((folder / file).read_bytes()) for file in ("first", "again")]
    return found, same(*ends)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", default=list(CASES), help="some of them")
    parser.add_argument("--kills", type=int, default=50, help="in all")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng, failed = random.Random(given.seed), 0
    each = -(-given.kills // len(given.cases))
    for name in given.cases:
        with tempfile.TemporaryDirectory() as folder:
            found, alike = killed(name, each, rng, Path(folder))
        failed += not alike
        counts = ", ".join(
            f"{n} {key if isinstance(key, str) else ' '.join(key)}"
            for key, n in sorted(found.items(), key=str)
        )
        print(f"{name:16} {'the same bits' if alike else 'ANOTHER END'}   {counts}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
