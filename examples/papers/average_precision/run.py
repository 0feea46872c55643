"""Average precision: sox-2022, section 4.1 and Table 2.

    python examples/papers/average_precision/run.py [--seeds 0 1 2] [--steps 600]

The paper trains ResNets on imbalanced CIFAR; here a network of two layers of 32 ELUs finds the 0.96% of rows of cover type 4
among those of type 2 (covtype_odds), 70% of them to train on. Batches of 64: 32 positives as blocks, for each 16 positives and
16 negatives; a step chosen on a tenth of the training rows, divided by ten at half and at three quarters of the run; the last
iterate.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import common  # noqa: E402
from sklearn.metrics import average_precision_score  # noqa: E402

import fccomodel  # noqa: E402

MODEL = Path(__file__).with_name("average_precision.fcco")
PAPER = {"sox": "0.765 / 0.597", "soap": "0.762 / 0.575", "moap": "0.763 / 0.584", "bsgd": "0.762 / 0.582"}
GRID = (1e-2, 3e-2, 1e-1)
#: SGD-type steps; MOAP scales the sampled values by n / B1 = 12, so that its gamma must be of the size of B1 / n
OPTIONS = {
    "sox": {"step": "momentum", "gamma": 0.1},
    "soap": {"step": "plain", "gamma": 0.1},
    "moap": {"step": "momentum", "gamma": 0.05},
    "bsgd": {"step": "plain"},
}


def main() -> None:
    parser = common.arguments(__doc__, seeds=[0, 1, 2], steps=600, rows=20_000, algorithms=list(OPTIONS))
    args = parser.parse_args()
    frame = common.read(args.data, "covtype_odds.parquet")
    x, y = frame.drop(columns="label").to_numpy(float), frame["label"].to_numpy(int)
    chosen = np.random.default_rng(0).permutation(len(y))[: args.rows]
    x, y = x[chosen], y[chosen]
    model, table = fccomodel.compile(MODEL), []

    def run(rows: np.ndarray, name: str, eta: float, seed: int, others: Sequence[np.ndarray]) -> list[float]:
        """The surrogate on the rows, and the average precision on each of the others."""
        z = (x - x[rows].mean(0)) / np.maximum(x[rows].std(0), 1e-6)
        bound = model.bind(
            D={"x": z[rows], "y": y[rows]}, params={"positive": y[rows].mean()}, nets={"s": "mlp(32, 32, activation=elu)"}
        )
        options = OPTIONS[name] | {"schedule": "decay", "eta": eta, "budget": f"{args.steps}it", "seed": seed}
        found = common.attempt(bound, algorithm=name, outer_batch=32, inner_batch=16, **options)
        if isinstance(found, str):  # a step that is too large
            return [np.nan] * (1 + len(others))
        return [found.objective, *(average_precision_score(y[o], common.scores(found, z[o])) for o in others)]

    for name in args.algorithms:
        fit, held = (common.split(len(y), 0.7, args.seeds[0])[0][part] for part in common.split(int(0.7 * len(y)), 0.9, 100))
        eta = common.least(GRID, lambda step: -run(fit, name, step, args.seeds[0], [held])[1])  # noqa: B023
        figures = []
        for seed in args.seeds:
            train, test = common.split(len(y), 0.7, seed)
            figures.append(run(train, name, eta, seed, [train, test]))
            print(f"{name}, seed {seed}, step {eta:g}:", *(f"{v:.4f}" for v in figures[-1]), flush=True)
        table.append([name, PAPER.get(name, ""), *(common.spread(v) for v in zip(*figures, strict=True)), f"{eta:g}"])
    columns = ["algorithm", "paper, test AP (CIFAR-10 / 100)", "surrogate, train", "AP, train", "AP, test", "step"]
    common.show("Average precision on covtype_odds", columns, table)


if __name__ == "__main__":
    main()
