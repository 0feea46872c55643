"""Neighbourhood component analysis on usps: sox-2022, Figure 3.

    python examples/papers/nca/run.py [--splits 5] [--steps 4000]

90% of the rows to train on, 10% to test, batches of 64 (B1 = B2 = 32); a projection to 16 dimensions. The paper shows curves.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import common  # noqa: E402

import fccomodel  # noqa: E402

MODEL = Path(__file__).with_name("nca.fcco")


def tables(x: np.ndarray, c: np.ndarray) -> dict[str, np.ndarray]:
    """Columns of the model: ``share`` is the part of the other rows that has the row's class."""
    counts = np.bincount(c)
    return {"x": x, "c": c, "share": (counts[c] - 1) / (len(c) - 1)}


def main() -> None:
    parser = common.arguments(__doc__, splits=5, steps=4000, algorithms=["sox", "soap", "moap", "bsgd"])
    args = parser.parse_args()
    frame = common.read(args.data, "usps.parquet")
    x, c = frame.filter(regex=r"^p\d+$").to_numpy(float) / 1000, frame["label"].to_numpy(int)
    x = (x - x.mean(0)) / np.sqrt(((x - x.mean(0)) ** 2).sum(1).mean())  # mean squared norm 1
    model = fccomodel.compile(MODEL)
    train_of: dict[str, list[float]] = {name: [] for name in args.algorithms}
    test_of: dict[str, list[float]] = {name: [] for name in args.algorithms}
    for seed in range(args.splits):
        train, test = common.split(len(c), 0.9, seed)
        bound = model.bind(D=tables(x[train], c[train]))
        for name in args.algorithms:
            found = bound.solve(algorithm=name, seed=seed, outer_batch=32, inner_batch=32, budget=f"{args.steps}it")
            train_of[name].append(-found.objective)
            test_of[name].append(-common.elsewhere(found, D=tables(x[test], c[test])).objective)
            print(f"split {seed}, {name}: test loss {test_of[name][-1]:.4f}", flush=True)
    rows = [[name, common.spread(train_of[name]), common.spread(test_of[name])] for name in args.algorithms]
    common.show("NCA on usps: minus the chance of a neighbour of the same class", ["algorithm", "train", "test"], rows)


if __name__ == "__main__":
    main()
