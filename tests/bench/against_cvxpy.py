"""Neyman-Pearson classification on ``covtype_odds``: time to a gap of 1e-3 and peak memory, beside
CVXPY with Clarabel.

    python tests/bench/against_cvxpy.py [--rows 1000 10000 100000 280000] [--limit 300]

Each run is a process of its own. ``seconds`` are those of the solve, data in memory at the start
(of ours: binding, solving and the report; ``to 1e-3`` of the steps alone, until objective and
violation are within 1e-3 of the optimum); ``peak`` is the process's largest resident memory less
that before the data were read. The optimum is CVXPY's, or where it takes too long ours with its
proved gap.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from support.places import SHARED  # noqa: E402

DATA = SHARED / "data" / "covtype_odds.parquet"
MODEL = """
model neyman_pearson; dim d; data D : table(x: real[d], y: {0, 1}); var w[d];
minimize false_alarms: E[z ~ D | z.y == 0] log1pexp(dot(w, z.x)) + 0.005 * sumsq(w);
subject to misses: E[z ~ D | z.y == 1] log1pexp(-dot(w, z.x)) <= 0.4;
"""
TAU, MU, GOAL = 0.4, 0.005, 1e-3


def peak() -> float:
    """The largest resident memory of this process, in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def table(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Standardised features with an intercept, and labels, of rows chosen at random."""
    import pandas

    frame = pandas.read_parquet(DATA).sample(rows, random_state=0)
    x = frame.drop(columns=["label"]).select_dtypes("number").to_numpy(float)
    x = (x - x.mean(0)) / np.maximum(x.std(0), 1e-12)
    return np.column_stack([x, np.ones(rows)]), frame["label"].to_numpy(int)


def ours(rows: int) -> dict[str, float]:
    import torch

    import fccomodel

    torch.set_num_threads(1)
    before, (x, y) = peak(), table(rows)
    read = peak() - before
    began = time.perf_counter()
    result = fccomodel.compile(MODEL).bind(D={"x": x, "y": y}).solve(seed=0, budget="60s")
    seconds = time.perf_counter() - began
    history = [[float(e["seconds"]), float(e["objective"]), float(e["violation"])] for e in result.history]
    gap = result.report.gap
    proved = None if gap is None else gap.value
    record = {"seconds": seconds, "objective": result.objective, "violation": result.report.feasibility}
    record |= {"peak": peak() - before, "read": read}
    return record | {"history": history, "proved": proved}


def cvxpy(rows: int) -> dict[str, float]:
    import cvxpy as cp

    before, (x, y) = peak(), table(rows)
    began = time.perf_counter()
    w = cp.Variable(x.shape[1])
    losses = [
        cp.sum(cp.logistic(sign * (x[y == k] @ w))) / int((y == k).sum()) for k, sign in ((0, 1), (1, -1))
    ]
    problem = cp.Problem(cp.Minimize(losses[0] + MU * cp.sum_squares(w)), [losses[1] <= TAU])
    problem.solve(solver="CLARABEL")
    seconds = time.perf_counter() - began
    violation = max(0.0, float(losses[1].value) - TAU)
    return {
        "seconds": seconds,
        "objective": float(problem.value),
        "violation": violation,
        "peak": peak() - before,
    }


def measured(which: str, rows: int, limit: float) -> dict[str, float] | None:
    """What a process of its own says; None where it took more than ``limit`` seconds or the memory."""
    command = [sys.executable, __file__, "--run", which, "--rows", str(rows)]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=True)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
        print(
            f"    {which}, {rows:,} rows: {type(error).__name__} {getattr(error, 'stderr', '') or ''}"[:300],
            flush=True,
        )
        return None
    return json.loads(found.stdout.splitlines()[-1])


def to_goal(history: list[list[float]], optimum: float) -> float:
    """Seconds until the best point so far is within the goal of the optimum."""
    near = [s for s, f, v in history if f - optimum <= GOAL * max(1.0, abs(optimum)) and v <= GOAL]
    return near[0] if near else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 10_000, 100_000, 280_000])
    parser.add_argument("--limit", type=float, default=300.0, help="seconds that CVXPY may take")
    parser.add_argument("--run", choices=("ours", "cvxpy"), help="one run, its record as JSON")
    arguments = parser.parse_args()
    if arguments.run:
        print(json.dumps({"ours": ours, "cvxpy": cvxpy}[arguments.run](arguments.rows[0])))
        return
    if not DATA.exists():
        print(f"{DATA} is not here")
        return
    print(f"{'':9}|{'fccomodel':^62}|{'CVXPY + Clarabel':^40}")
    columns = f"{'gap':>9}{'violation':>11}{'proved':>9}{'to 1e-3 s':>11}{'seconds':>10}{'peak MiB':>11} "
    print(f"{'rows':>9}|{columns}|{'violation':>12}{'seconds':>12}{'peak MiB':>14}")
    for rows in arguments.rows:
        mine, theirs = measured("ours", rows, 600.0), measured("cvxpy", rows, arguments.limit)
        if mine is None:
            continue
        optimum = theirs["objective"] if theirs is not None else mine["objective"] - (mine["proved"] or 0.0)
        gap, proved = mine["objective"] - optimum, mine["proved"]
        figures = f"{gap:9.0e}{mine['violation']:11.0e}{'-' if proved is None else f'{proved:.0e}':>9}"
        figures += f"{to_goal(mine['history'], optimum):11.1f}{mine['seconds']:10.1f}{mine['peak']:11.0f} "
        other = (
            f"{theirs['violation']:12.0e}{theirs['seconds']:12.1f}{theirs['peak']:14.0f}"
            if theirs
            else f"{'not in time':>38}"
        )
        print(f"{rows:9,}|{figures}|{other}", flush=True)


if __name__ == "__main__":
    main()
