"""Sparse mean-variance portfolios: ascvrg-2021, Figures 1 to 4, and hscg-2020, Figure 1.

    python examples/papers/portfolios/run.py [--figure ascvrg] [--first 0] [--sets 21] [--longer 1]

Gradients of single samples, divided by the number of days, until the objective is within 1e-4 and 1e-8 of its optimum.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import common  # noqa: E402

import fccomodel  # noqa: E402

MODEL = Path(__file__).with_name("portfolio.fcco")
#: figure -> algorithms in the paper's order with their passes over the data, parameters of the model, gaps
FIGURES = {
    "ascvrg": ({"ascvrg": 50, "vrsc_pg": 110, "apg": 4000, "asc_pg": 15, "scgd": 10}, {"rho": 1.0, "lam": 5e-7}, (1e-4, 1e-8)),
    "hscg": ({"hscg": 300, "civr": 300, "asc_pg": 300}, {"rho": 0.2, "lam": 0.01}, (1e-3, 1e-5)),
}
#: both start with epochs of 200 steps; ASCVRG's double, nine times
EPOCHS = {"ascvrg": {"stage": 200, "epochs": 9}, "vrsc_pg": {"stage": 200}}
#: algorithms whose step falls towards zero diverge, or stall, with an untuned one: it is the best of these after 2 passes
STEPS, TUNED = (0.1, 0.05, 0.01), ("asc_pg", "scgd")


def sets(folder: Path) -> dict[str, np.ndarray]:
    """The 21 panels of daily returns in percent, by name; missing returns are -99.99, as in the authors' files."""
    small, large = common.read(folder, "ff25_developed_daily.parquet"), common.read(folder, "ff100_us_daily.parquet")
    found = {f"100 portfolios {key}": part for key, part in large.groupby("sort", observed=True)}
    found |= {f"{region} {sort}": part for (region, sort), part in small.groupby(["region", "sort"], observed=True)}
    return {key: part.filter(regex=r"^ME\d+_Q\d+$").fillna(-99.99).to_numpy(float) for key, part in found.items()}


def optimum(returns: np.ndarray, rho: float, lam: float) -> float:
    """The least cost, by CVXPY."""
    import cvxpy as cp

    x, mean = cp.Variable(returns.shape[1]), returns.mean(0)
    root = np.linalg.cholesky(np.cov(returns.T, bias=True) + 0.0 * np.eye(returns.shape[1]))
    problem = cp.Problem(cp.Minimize(rho * cp.sum_squares(root.T @ x) - mean @ x + lam * cp.norm1(x)))
    return float(problem.solve(solver=cp.CLARABEL))


def tuned(bound: Any, algorithm: str, n: int, **options: Any) -> dict[str, float]:
    """The best of some first step sizes for an algorithm that needs one."""
    if algorithm not in TUNED:
        return {}
    runs = {eta: bound.solve(algorithm=algorithm, eta=eta, budget=f"{2 * n}oracles", **options) for eta in STEPS}
    return {"eta": min(runs, key=lambda eta: runs[eta].objective)}


def main() -> None:
    parser = common.arguments(__doc__, figure="ascvrg", first=0, sets=21, seed=0, longer=1)
    args = parser.parse_args()
    algorithms, params, gaps = FIGURES[args.figure]
    model = fccomodel.compile(MODEL)
    table = []
    for name, returns in list(sets(args.data).items())[args.first : args.first + args.sets]:
        bound, n = model.bind(R={"r": returns}, params=params), len(returns)
        batch = 5 if args.figure == "ascvrg" else n // 8  # section 4 of ascvrg-2021, section 5.1 of hscg-2020
        least, cells = optimum(returns, **params), [name]
        for algorithm, passes in algorithms.items():
            options = {"seed": args.seed, "precision": "float64"} | ({} if algorithm == "apg" else {"inner_batch": batch})
            options |= EPOCHS.get(algorithm, {}) | tuned(bound, algorithm, n, **options)
            run = common.attempt(bound, algorithm=algorithm, budget=f"{args.longer * passes * n}oracles", **options)
            calls = [common.reached(run.history, least, gap) / n for gap in gaps]
            cells.append(" / ".join(f"{c:.0f}" if np.isfinite(c) else "-" for c in calls))
        table.append(cells)
        print(*cells, sep=" | ", flush=True)
    title = f"Gradients / n until the gap is {gaps[0]:g} / {gaps[1]:g}"
    passes = ", ".join(f"{name} {args.longer * count}" for name, count in algorithms.items())
    common.show(title, ["data", *algorithms], table, f"-: not within the passes given ({passes}).")


if __name__ == "__main__":
    main()
