"""Partial AUC at a bounded true positive rate: alexr-2025, section 5.2 and Figure 2.

    python examples/papers/partial_auc/run.py [--seeds 0 1 2] [--steps 10000]

Covtype (a sixth of the paper's rows), 99.5% of the positives removed, 75% to train on; a linear model; 16 positives and 16
negatives in each step. The paper shows curves of the partial AUC on the held-out rows.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import common  # noqa: E402

import fccomodel  # noqa: E402

MODEL = Path(__file__).with_name("partial_auc.fcco")


def partial_auc(scores: np.ndarray, positive: np.ndarray, alpha: float) -> float:
    """The share of right pairs between the worst-ranked 1 - alpha of the positives and all negatives."""
    low = np.sort(scores[positive])[: max(1, int(np.ceil((1 - alpha) * positive.sum())))]
    negatives = np.sort(scores[~positive])
    return float(np.mean(np.searchsorted(negatives, low, side="left") / len(negatives)))


def main() -> None:
    parser = common.arguments(
        __doc__, seeds=[0, 1, 2], steps=10_000, algorithms=["alexr", "sonex", "sox", "msvr", "bsgd"], alphas=[0.5, 0.75]
    )
    args = parser.parse_args()
    frame = common.read(args.data, "covtype_sample93k.parquet")
    x, y = frame.drop(columns="Cover_Type").to_numpy(float), (frame["Cover_Type"] == 2).to_numpy(int)
    x = (x - x.min(0)) / np.maximum(np.ptp(x, 0), 1)
    keep = (y == 0) | (np.random.default_rng(0).random(len(y)) < 0.005)
    x, y = x[keep], y[keep]
    model = fccomodel.compile(MODEL)
    for alpha in args.alphas:
        table = []
        for name in args.algorithms:
            objective, held = [], []
            for seed in args.seeds:
                train, test = common.split(len(y), 0.75, seed)
                bound = model.bind(D={"x": x[train], "y": y[train]}, params={"alpha": alpha})
                batches = {"outer_batch": 16, "inner_batch": 16}
                found = common.attempt(bound, algorithm=name, seed=seed, budget=f"{args.steps}it", **batches)
                if isinstance(found, str):
                    table.append([name, found])
                    break
                objective.append(found.objective)
                held.append(partial_auc(x[test] @ found.variables["w"], y[test] == 1, alpha))
            else:
                table.append([name, common.spread(objective), common.spread(held)])
        common.show(f"Partial AUC, TPR >= {alpha}", ["algorithm", "train objective", "partial AUC, held out"], table)


if __name__ == "__main__":
    main()
