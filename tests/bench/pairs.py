"""Models of all pairs of rows beside full-batch L-BFGS, objective against objective after the same
processor seconds.

    python tests/bench/pairs.py [--rows 4000] [--wide 50000] [--seconds 60] [--write]

Neighbourhood component analysis of generated letters (16 numbers, 26 classes of three clusters)
beside scikit-learn's, and one-way partial AUC of a generated sparse table (300 columns, 3%
positive) beside SciPy's L-BFGS on passes over blocks of pairs. Budgets are in seconds of the
processor, on one thread, so that a busy machine changes little. ``--write`` keeps ``pairs.md``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import torch
from scipy.optimize import minimize
from sklearn.neighbors import NeighborhoodComponentsAnalysis

time.perf_counter = time.process_time  # budgets are of the processor

import fccomodel  # noqa: E402

NCA = """
dim d; const k = 16; set G;
data D : table(x: real[d], y: G);
var A[k, d];
maximize mean[i in D] (sum[j in D | j.y == i.y and j != i] exp(-sumsq(A @ (i.x - j.x))))
    / (sum[j in D | j != i] exp(-sumsq(A @ (i.x - j.x))));
"""
PAUC = """
dim d;
data D : table(x: real[d], y: {0, 1});
set P = {z in D | z.y == 1}; set N = {z in D | z.y == 0};
var w[d];
minimize mean[p in P] log(E[n ~ N] exp(sqhinge(1 - dot(w, p.x - n.x)))) + 0.0005 * sumsq(w);
"""


class TimeIsUp(Exception):
    """A peer has used its seconds."""


def letters(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Whole numbers from 0 to 15, standardised, and classes that overlap."""
    rng = np.random.default_rng(0)
    centres, y = rng.normal(size=(26, 3, 16)), rng.integers(0, 26, rows)
    noise = rng.normal(size=(rows, 16)) @ rng.normal(size=(16, 16)) / 4
    x = np.clip(np.round(7.5 + 1.6 * (centres[y, rng.integers(0, 3, rows)] + 2.2 * noise)), 0, 15)
    return (x - x.mean(0)) / x.std(0), y


def sparse(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns that are 1 for one row in 26, a few of them more often in the positive class."""
    rng = np.random.default_rng(1)
    y = (rng.random(rows) < 0.03).astype(int)
    rate = np.where(y[:, None] == 1, 1 / 26 * np.exp(0.6 * rng.normal(size=300)), 1 / 26)
    return (rng.random((rows, 300)) < rate).astype(float), y


def chance(A: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
    """The objective of NCA."""
    z = x @ A.T
    distance = (z**2).sum(1)[:, None] + (z**2).sum(1) - 2 * z @ z.T
    np.fill_diagonal(distance, np.inf)
    weight = np.exp(distance.min(1, keepdims=True) - distance)
    return float(((weight * (y[:, None] == y)).sum(1) / weight.sum(1)).mean())


def scikit(x: np.ndarray, y: np.ndarray, seconds: float) -> float:
    """What scikit-learn's NCA comes to."""
    last, began = [np.zeros((16, x.shape[1]))], time.process_time()

    def look(transformation: np.ndarray, iteration: int) -> None:
        last[0] = transformation.reshape(16, -1)
        if time.process_time() - began > seconds:
            raise TimeIsUp

    with suppress(TimeIsUp):
        NeighborhoodComponentsAnalysis(max_iter=10_000, tol=1e-9, random_state=0, callback=look).fit(x, y)
    return chance(last[0], x, y)


def ranking(x: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    """Value and gradient of the partial AUC's loss, by blocks of pairs."""
    rows, positive = torch.from_numpy(x), torch.from_numpy(y == 1)
    above, below = rows[positive], rows[~positive]

    def at(point: np.ndarray) -> tuple[float, np.ndarray]:
        w = torch.from_numpy(point).requires_grad_()
        scores, total = below @ w, 0.0
        held, gradient = scores.detach().requires_grad_(), torch.zeros_like(w)
        for part in above.split(16):
            margin = (1 - (part @ w)[:, None] + held).clamp(min=0).square()
            value = margin.logsumexp(1).sum() / len(above)
            more = torch.autograd.grad(value, (w, held))
            total, gradient = total + value.item(), gradient + more[0] + more[1] @ below
        weight = 0.0005 * w.detach()
        return total - np.log(len(below)) + float(weight @ w.detach()), (gradient + 2 * weight).numpy()

    return at


def plain(x: np.ndarray, y: np.ndarray, seconds: float) -> float:
    """What SciPy's L-BFGS comes to."""
    at, best, began = ranking(x, y), [np.inf], time.process_time()

    def timed(w: np.ndarray) -> tuple[float, np.ndarray]:
        found = at(w)
        best[0] = min(best[0], found[0])
        if time.process_time() - began > seconds:
            raise TimeIsUp
        return found

    with suppress(TimeIsUp):
        minimize(
            timed,
            np.zeros(x.shape[1]),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 10_000, "maxfun": 10_000},
        )
    return best[0]


def ours(model: str, x: np.ndarray, y: np.ndarray, seconds: float) -> tuple[float, str]:
    """What a solve with default options comes to, and how."""
    began = time.process_time()
    found = fccomodel.compile(model).bind(D={"x": x, "y": y}).solve(budget=f"{seconds:g}s")
    solution = found.outcome.solution
    how = f"{solution.iterations:,} steps, {solution.passes} passes, {solution.wall_s:.0f} s and in all"
    return found.objective, f"{how} {time.process_time() - began:.0f} s with the report"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--wide", type=int, default=50_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    lines = ["| model | rows | here | peer | here / peer | how |", "|---|---|---|---|---|---|"]
    for name, model, peer, made, rows in (
        ("NCA, larger is better", NCA, scikit, letters, args.rows),
        ("one-way partial AUC, smaller is better", PAUC, plain, sparse, args.wide),
    ):
        if rows:
            x, y = made(rows)
            (here, how), there = ours(model, x, y, args.seconds), peer(x, y, args.seconds)
            lines.append(f"| {name} | {rows:,} | {here:.5g} | {there:.5g} | {here / there:.4g} | {how} |")
            print(lines[-1], flush=True)
    if args.write:
        head = (
            f"# Pairs of rows beside full-batch L-BFGS\n\nAfter {args.seconds:g} processor seconds "
            "each, one thread"
        )
        text = f"{head} (`python {' '.join(sys.argv)}`).\n\n" + "\n".join(lines) + "\n"
        Path(__file__).with_suffix(".md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
