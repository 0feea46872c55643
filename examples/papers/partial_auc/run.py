"""Partial AUC at a bounded true positive rate: alexr-2025, section 5.2 and Figure 2.

    python examples/papers/partial_auc/run.py [--seeds 0 1 2] [--calls 1e6]

Covtype (a sixth of the paper's rows), 99.5% of the positives removed, 75% to train on; a linear
model; 16 positives and 16 negatives in each step, the same oracle calls (losses of a pair at one
point) for every method, steps that fall linearly with the budget, the first chosen by the train
objective of a run with a seed of its own. The paper shows curves of the partial AUC on the held-out
rows.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import common  # noqa: E402

import fccomodel  # noqa: E402

MODEL = Path(__file__).with_name("partial_auc.fcco")
GRID = {"eta": (0.02, 0.1, 0.5, 2.0)}
#: no theorem covers SOX, MSVR and BSGD on a non-smooth f; one stage of whatever length
OPTIONS = {
    "outer_batch": 16,
    "inner_batch": 16,
    "stage": 10**9,
    "longest": 10**9,
    "unverified": True,
    "polish": False,
}
STEPS = {"sox": "momentum", "sonex": "momentum"}
TUNING = 100


def partial_auc(scores: np.ndarray, positive: np.ndarray, alpha: float) -> float:
    """The share of right pairs between the worst-ranked 1 - alpha of the positives and all negatives."""
    low = np.sort(scores[positive])[: max(1, int(np.ceil((1 - alpha) * positive.sum())))]
    negatives = np.sort(scores[~positive])
    return float(np.mean(np.searchsorted(negatives, low, side="left") / len(negatives)))


def main() -> None:
    parser = common.arguments(
        __doc__,
        seeds=[0, 1, 2],
        calls=1e6,
        tuning=2e5,
        algorithms=["alexr", "sonex", "sox", "msvr", "bsgd"],
        alphas=[0.5, 0.75],
    )
    args = parser.parse_args()
    frame = common.read(args.data, "covtype_sample93k.parquet")
    x, y = frame.drop(columns="Cover_Type").to_numpy(float), (frame["Cover_Type"] == 2).to_numpy(int)
    x = (x - x.min(0)) / np.maximum(np.ptp(x, 0), 1)
    keep = (y == 0) | (np.random.default_rng(0).random(len(y)) < 0.005)
    x, y = x[keep], y[keep]
    model = fccomodel.compile(MODEL)

    def solved(name: str, alpha: float, seed: int, calls: float, **given: float) -> tuple[float, float]:
        """Train objective, and partial AUC on the rows held out."""
        train, test = common.split(len(y), 0.75, seed)
        bound = model.bind(D={"x": x[train], "y": y[train]}, params={"alpha": alpha})
        step = {"step": STEPS[name]} if name in STEPS else {}
        found = bound.solve(algorithm=name, seed=seed, budget=f"{calls:g}oracles", **OPTIONS, **step, **given)
        return found.objective, partial_auc(x[test] @ found.variables["w"], y[test] == 1, alpha)

    for alpha in args.alphas:
        table = []
        for name in args.algorithms:
            trial = partial(solved, name, alpha, TUNING, args.tuning)
            chosen = common.tuned(lambda trial=trial, **given: trial(**given)[0], GRID)
            runs = np.array([solved(name, alpha, seed, args.calls, **chosen) for seed in args.seeds])
            table.append([name, common.spread(runs[:, 0]), common.spread(runs[:, 1]), f"{chosen['eta']:g}"])
            print(*table[-1], sep=" | ", flush=True)
        columns = ["algorithm", "train objective", "partial AUC, held out", "step"]
        common.show(f"Partial AUC, TPR >= {alpha}, {args.calls:.0e} oracle calls", columns, table)


if __name__ == "__main__":
    main()
