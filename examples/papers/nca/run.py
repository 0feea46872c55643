"""Neighbourhood component analysis on usps: sox-2022, Figure 3.

    python examples/papers/nca/run.py [--rows 4000] [--splits 3] [--steps 5000]

90% of the rows to train on, 10% to test, batches of 64: 32 rows, for each 16 others of its class
and 16 of the other classes; a projection to 16 dimensions; step and gamma chosen, one after the
other, on a tenth of the first split's training rows, the step divided by ten at half and at three
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
BATCH = 32
ETA = (10.0, 30.0, 100.0)
#: the estimates fall by orders of magnitude as A grows, so that gamma is large; MOAP, whose gamma
#: is in units of B1 / n, scales the sampled values by n / B1
GRID = {
    "sox": {"eta": ETA, "gamma": (0.9, 0.5)},
    "soap": {"eta": ETA, "gamma": (0.9, 0.5)},
    "moap": {"eta": ETA, "gamma": (1.0, 0.5)},
    "bsgd": {"eta": ETA},
}
MOMENTUM = ("sox", "moap")


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
    parser = common.arguments(__doc__, rows=4000, splits=3, steps=5000, algorithms=GRID)
    args = parser.parse_args()
    frame = common.read(args.data, "usps.parquet")
    frame = frame.iloc[np.random.default_rng(0).permutation(len(frame))[: args.rows]]
    x, c = frame.filter(regex=r"^p\d+$").to_numpy(float) / 1000, frame["label"].to_numpy(int)
    x = (x - x.mean(0)) / np.sqrt(((x - x.mean(0)) ** 2).sum(1).mean())  # mean squared norm 1
    model = fccomodel.compile(MODEL)

    def run(rows: np.ndarray, name: str, seed: int, **given: float) -> np.ndarray:
        bound = model.bind(D=tables(x[rows], c[rows]))
        options = {name: values[0] for name, values in GRID[name].items()} | given
        if name == "moap":
            options["gamma"] *= BATCH / len(rows)
        options |= {
            "step": "momentum" if name in MOMENTUM else "plain",
            "outer_batch": BATCH,
            "inner_batch": BATCH // 2,
        }
        options |= {"schedule": "decay", "budget": f"{args.steps}it", "stage": args.steps, "seed": seed}
        found = common.attempt(bound, algorithm=name, **options)
        return (
            np.full((16, x.shape[1]), np.nan) if isinstance(found, str) else found.variables["A"]
        )  # a step that is too large

    table = []
    for name in args.algorithms:
        train, test = common.split(len(c), 0.9, 0)
        fit, held = (train[part] for part in common.split(len(train), 0.9, 100))

        def error(**given: float) -> float:
            return np.nan_to_num(loss(run(fit, name, 0, **given), x[held], c[held]), nan=np.inf)  # noqa: B023

        chosen, losses = common.tuned(error, GRID[name]), []
        for seed in range(args.splits):
            train, test = common.split(len(c), 0.9, seed)
            A = run(train, name, seed, **chosen)
            losses.append([loss(A, x[rows], c[rows]) for rows in (train, test)])
            print(
                f"{name}, split {seed}: {chosen}, train {losses[-1][0]:.4f}, test {losses[-1][1]:.4f}",
                flush=True,
            )
        values = ", ".join(f"{key} {value:g}" for key, value in chosen.items())
        table.append([name, *(common.spread(values) for values in zip(*losses, strict=True)), values])
    title = f"NCA on {args.rows} rows of usps: minus the chance of a neighbour of the same class"
    common.show(title, ["algorithm", "train", "test", "chosen"], table, "MOAP: gamma in units of B1 / n.")


if __name__ == "__main__":
    main()
