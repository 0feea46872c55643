"""Average precision: sox-2022, section 4.1 and Table 2.

    python examples/papers/average_precision/run.py [--seeds 0 1 2] [--steps 4000]

The paper trains ResNets on imbalanced CIFAR; here a network of two layers of 32 ELUs finds the 0.96% of rows of cover type 4
among those of type 2 (covtype_odds), 70% of them to train on; batches of 64 (B1 = B2 = 32) as in the paper.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import common  # noqa: E402
from sklearn.metrics import average_precision_score  # noqa: E402

import fccomodel  # noqa: E402

MODEL = Path(__file__).with_name("average_precision.fcco")


def main() -> None:
    parser = common.arguments(__doc__, seeds=[0, 1, 2], steps=4000, rows=60_000, algorithms=["sox", "soap", "moap", "bsgd"])
    args = parser.parse_args()
    frame = common.read(args.data, "covtype_odds.parquet")
    x, y = frame.drop(columns="label").to_numpy(float), frame["label"].to_numpy(int)
    chosen = np.random.default_rng(0).permutation(len(y))[: args.rows]
    x, y = x[chosen], y[chosen]
    model, table = fccomodel.compile(MODEL), []
    for name in args.algorithms:
        train_ap, test_ap, surrogate = [], [], []
        for seed in args.seeds:
            train, test = common.split(len(y), 0.7, seed)
            centre, scale = x[train].mean(0), x[train].std(0)
            z = (x - centre) / scale
            bound = model.bind(D={"x": z[train], "y": y[train]}, nets={"s": "mlp(32, 32, activation=elu)"})
            found = bound.solve(algorithm=name, seed=seed, outer_batch=32, inner_batch=32, budget=f"{args.steps}it")
            surrogate.append(found.objective)
            for rows, into in ((train, train_ap), (test, test_ap)):
                into.append(average_precision_score(y[rows], common.scores(found, z[rows])))
        table.append([name, common.spread(surrogate), common.spread(train_ap), common.spread(test_ap)])
        print(*table[-1], flush=True)
    common.show("Average precision on covtype_odds", ["algorithm", "surrogate, train", "AP, train", "AP, test"], table)


if __name__ == "__main__":
    main()
