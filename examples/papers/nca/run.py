"""Neighbourhood component analysis on usps: sox-2022, Figure 3.

    python examples/papers/nca/run.py [--rows 1500] [--splits 2] [--steps 1000]

90% of the rows to train on, 10% to test, batches of 64: 32 rows, for each 16 others of its class and 16 of the other classes; a
projection to 16 dimensions; a step chosen on a tenth of the first split's training rows, divided by ten at half and at three
quarters of the run; the last iterate. The paper shows curves.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy.spatial.distance import cdist

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import common  # noqa: E402

import fccomodel  # noqa: E402

MODEL = Path(__file__).with_name("nca.fcco")
GRID = (3.0, 10.0, 30.0)
#: SGD-type steps; the estimates fall by orders of magnitude as A grows, so that gamma is large; MOAP scales the sampled values by
#: n / B1 = 42, so that its gamma must be of the size of B1 / n
OPTIONS = {
    "sox": {"step": "momentum", "gamma": 0.9},
    "soap": {"step": "plain", "gamma": 0.9},
    "moap": {"step": "momentum", "gamma": 0.01},
    "bsgd": {"step": "plain"},
}


def tables(x: np.ndarray, c: np.ndarray) -> dict[str, np.ndarray]:
    """Columns of the model: ``share`` is the part of the other rows that has the row's class."""
    counts = np.bincount(c)
    return {"x": x, "c": c, "share": (counts[c] - 1) / (len(c) - 1)}


def loss(A: np.ndarray, x: np.ndarray, c: np.ndarray) -> float:
    """Minus the mean chance of a neighbour of the same class, over all pairs."""
    distance = cdist(x @ A.T, x @ A.T, "sqeuclidean")
    np.fill_diagonal(distance, np.inf)
    weight = np.exp(distance.min(1, keepdims=True) - distance)
    return -float(((weight * (c[:, None] == c)).sum(1) / weight.sum(1)).mean())


def main() -> None:
    parser = common.arguments(__doc__, rows=1500, splits=2, steps=1000, algorithms=list(OPTIONS))
    args = parser.parse_args()
    frame = common.read(args.data, "usps.parquet")
    frame = frame.iloc[np.random.default_rng(0).permutation(len(frame))[: args.rows]]
    x, c = frame.filter(regex=r"^p\d+$").to_numpy(float) / 1000, frame["label"].to_numpy(int)
    x = (x - x.mean(0)) / np.sqrt(((x - x.mean(0)) ** 2).sum(1).mean())  # mean squared norm 1
    model = fccomodel.compile(MODEL)

    def run(rows: np.ndarray, name: str, eta: float, seed: int) -> np.ndarray:
        bound = model.bind(D=tables(x[rows], c[rows]))
        options = OPTIONS[name] | {"schedule": "decay", "eta": eta, "budget": f"{args.steps}it", "seed": seed}
        found = common.attempt(bound, algorithm=name, outer_batch=32, inner_batch=16, **options)
        return np.full((16, x.shape[1]), np.nan) if isinstance(found, str) else found.variables["A"]  # a step that is too large

    table = []
    for name in args.algorithms:
        train, test = common.split(len(c), 0.9, 0)
        fit, held = (train[part] for part in common.split(len(train), 0.9, 100))
        eta = common.least(GRID, lambda step: loss(run(fit, name, step, 0), x[held], c[held]))  # noqa: B023
        losses = []
        for seed in range(args.splits):
            train, test = common.split(len(c), 0.9, seed)
            A = run(train, name, eta, seed)
            losses.append([loss(A, x[rows], c[rows]) for rows in (train, test)])
            print(f"{name}, split {seed}: step {eta:g}, train {losses[-1][0]:.4f}, test {losses[-1][1]:.4f}", flush=True)
        table.append([name, *(common.spread(values) for values in zip(*losses, strict=True)), f"{eta:g}"])
    title = f"NCA on {args.rows} rows of usps: minus the chance of a neighbour of the same class"
    common.show(title, ["algorithm", "train", "test", "step"], table)


if __name__ == "__main__":
    main()
