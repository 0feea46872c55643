"""Sparse mean-variance portfolios: ascvrg-2021, Figures 1 to 4, and hscg-2020, Figure 1.

    python examples/papers/portfolios/run.py [--figure ascvrg|hscg] [--first 0] [--sets 21] [--longer 1]
        [--algorithms ascvrg apg ...]

Gradients of single samples, divided by the number of days, until the objective is within 1e-4 and
1e-8 of its optimum.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import common  # noqa: E402

import fccomodel  # noqa: E402

MODEL = Path(__file__).with_name("portfolio.fcco")


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure's setting: the model's parameters, the gaps to reach, rows of a batch for n days; by
    algorithm the passes over the data, options, and the grid that they are chosen from by the
    objective after ``trial`` passes."""

    params: dict[str, float]
    gaps: tuple[float, float]
    batch: Callable[[int], int]
    passes: dict[str, int]
    options: dict[str, dict[str, Any]]
    grids: dict[str, dict[str, Sequence[float]]]
    trial: int


FALLING = {"eta": (0.1, 0.05, 0.01)}
#: of the trials of hscg-2020, appendix D, those that are of the size of 1 / L here
TRIALS = {"eta": (1, 0.5, 0.1, 0.05)}
EPOCHS = TRIALS | {
    "stage": (8, 24, 72)
}  # one, three and nine passes of batches (Theorem 4.1 and CIVR: one, begun on all rows)
EIGHT = {"look": 8}  # the objective after every pass or two
SAME = EIGHT | {"growth": 1.0, "gain": 1e-9}
FIGURES = {
    "ascvrg": Figure(
        params={"rho": 1.0, "lam": 5e-7},
        gaps=(1e-4, 1e-8),
        batch=lambda n: 5,
        passes={"ascvrg": 50, "vrsc_pg": 110, "apg": 4000, "asc_pg": 15, "scgd": 10},
        options={"ascvrg": {"stage": 200, "epochs": 9}, "vrsc_pg": {"stage": 200}},
        grids={"asc_pg": FALLING, "scgd": FALLING},  # with untuned steps they diverge on some sets
        trial=2,
    ),
    "hscg": Figure(
        params={"rho": 0.2, "lam": 0.01},
        gaps=(1e-3, 1e-5),
        batch=lambda n: n // 8,
        passes={"hscg": 300, "civr": 300, "asc_pg": 300},
        options={"hscg": SAME | {"unverified": True}, "civr": SAME, "asc_pg": EIGHT},
        grids={"hscg": EPOCHS | {"theta": (1, 0.5, 0.1)}, "civr": EPOCHS, "asc_pg": TRIALS},
        trial=60,
    ),
}


def sets(folder: Path) -> dict[str, np.ndarray]:
    """The 21 panels of daily returns in percent, by name; missing returns are -99.99, as in the
    authors' files."""
    small, large = (
        common.read(folder, "ff25_developed_daily.parquet"),
        common.read(folder, "ff100_us_daily.parquet"),
    )
    found = {f"100 portfolios {key}": part for key, part in large.groupby("sort", observed=True)}
    found |= {
        f"{region} {sort}": part for (region, sort), part in small.groupby(["region", "sort"], observed=True)
    }
    return {
        key: part.filter(regex=r"^ME\d+_Q\d+$").fillna(-99.99).to_numpy(float) for key, part in found.items()
    }


def optimum(returns: np.ndarray, rho: float, lam: float) -> float:
    """The least cost, by CVXPY."""
    import cvxpy as cp

    x, mean = cp.Variable(returns.shape[1]), returns.mean(0)
    root = np.linalg.cholesky(np.cov(returns.T, bias=True) + 0.0 * np.eye(returns.shape[1]))
    problem = cp.Problem(cp.Minimize(rho * cp.sum_squares(root.T @ x) - mean @ x + lam * cp.norm1(x)))
    return float(problem.solve(solver=cp.CLARABEL))


def tuned(bound: Any, grid: dict[str, Sequence[float]], calls: int, **options: Any) -> dict[str, float]:
    """The best of a grid's combinations by the objective after so many oracle calls."""
    found = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    if len(found) == 1:
        return found[0]
    return min(found, key=lambda choice: bound.solve(budget=f"{calls}oracles", **options, **choice).objective)


def main() -> None:
    parser = common.arguments(__doc__, figure="ascvrg", first=0, sets=21, seed=0, longer=1)
    parser.add_argument("--algorithms", nargs="*", help="of the figure's; all of them unless given")
    args = parser.parse_args()
    figure, model, table = FIGURES[args.figure], fccomodel.compile(MODEL), []
    wanted = {
        name: args.longer * passes
        for name, passes in figure.passes.items()
        if name in (args.algorithms or figure.passes)
    }
    for name, returns in list(sets(args.data).items())[args.first : args.first + args.sets]:
        bound, n = model.bind(R={"r": returns}, params=figure.params), len(returns)
        least, cells = optimum(returns, **figure.params), [name]
        for algorithm, passes in wanted.items():
            options = {
                "algorithm": algorithm,
                "seed": args.seed,
                "precision": "float64",
            } | figure.options.get(algorithm, {})
            options |= {} if algorithm == "apg" else {"inner_batch": figure.batch(n)}
            options |= tuned(bound, figure.grids.get(algorithm, {}), figure.trial * n, **options)
            history = bound.solve(budget=f"{passes * n}oracles", **options).history
            calls = [common.reached(history, least, gap) / n for gap in figure.gaps]
            cells.append(" / ".join(f"{c:.0f}" if np.isfinite(c) else "-" for c in calls))
        table.append(cells)
        print(*cells, sep=" | ", flush=True)
    passes = ", ".join(f"{name} {count}" for name, count in wanted.items())
    title = "Gradients / n until the gap is {:g} / {:g}".format(*figure.gaps)
    common.show(title, ["data", *wanted], table, f"-: not within the passes given ({passes}).")


if __name__ == "__main__":
    main()
