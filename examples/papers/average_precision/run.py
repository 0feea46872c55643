"""Average precision: sox-2022, section 4.1 and Table 2.

    python examples/papers/average_precision/run.py [--seeds 0 1 2 3 4] [--steps 5000]

The paper trains ResNets on imbalanced CIFAR; here a network of two layers of 32 ELUs finds the 1.6%
of rows of cover type 5 among those of covtype, 70% of them to train on. As in the paper it is
trained by cross entropy first and gets a new last layer, then all its layers are trained. 32
positives are the blocks of a step, for each 32 positives and 32 negatives. Step and gamma are
chosen, one after the other, by the average precision on a tenth of the first seed's training rows;
the step is divided by ten at half and at three quarters of the run; the last iterate.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import common  # noqa: E402
from sklearn.metrics import average_precision_score  # noqa: E402

import fccomodel  # noqa: E402

HERE = Path(__file__).parent
PAPER = {"sox": "0.765 / 0.597", "soap": "0.762 / 0.575", "moap": "0.763 / 0.584", "bsgd": "0.762 / 0.582"}
BATCH = 32
ETA, GAMMA = (3e-3, 1e-2, 3e-2, 1e-1), (0.5, 0.1, 0.9)
#: MOAP scales the sampled values by n / B1, so that its gamma is of the size of B1 / n
GRID = {
    "sox": {"eta": ETA, "gamma": GAMMA},
    "soap": {"eta": ETA, "gamma": GAMMA},
    "moap": {"eta": ETA, "gamma": (1.0, 0.3, 3.0)},
    "bsgd": {"eta": ETA},
}
MOMENTUM = ("sox", "moap")


def network(d: int, weights: np.ndarray | None = None, seed: int = 0) -> torch.nn.Module:
    """A network with its own initialisation, or with these weights but for a new last layer."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        layers = [
            torch.nn.Linear(d, 32),
            torch.nn.ELU(),
            torch.nn.Linear(32, 32),
            torch.nn.ELU(),
            torch.nn.Linear(32, 1),
        ]
        net = torch.nn.Sequential(*layers, torch.nn.Flatten(-2))
        if weights is not None:
            torch.nn.utils.vector_to_parameters(torch.tensor(weights, dtype=torch.float32), net.parameters())
            net[4].reset_parameters()
    return net


class Rows:
    """Rows to train on, in their scale, and the network trained on them by cross entropy."""

    def __init__(self, before: fccomodel.Model, x: np.ndarray, y: np.ndarray, train: np.ndarray, seed: int):
        self.x, self.y, self.train, self.seed = (
            (x - x[train].mean(0)) / np.maximum(x[train].std(0), 1e-6),
            y,
            train,
            seed,
        )
        bound = before.bind(D={"x": self.x[train], "y": y[train]}, nets={"s": network(x.shape[1], seed=seed)})
        self.weights = bound.solve(algorithm="sgd", budget="1000it", seed=seed).variables["w"]

    def run(
        self, model: fccomodel.Model, name: str, steps: int, others: Sequence[np.ndarray], **given: float
    ) -> list[float]:
        """The surrogate on the rows, and the average precision on each of the others."""
        x, y, n = self.x, self.y, int(self.y[self.train].sum())
        if name == "moap":
            given["gamma"] = given.get("gamma", 1.0) * BATCH / n
        shares = {"positive": n / len(self.train), "own": 1 / n}
        net = network(x.shape[1], self.weights, self.seed)
        bound = model.bind(D={"x": x[self.train], "y": y[self.train]}, params=shares, nets={"s": net})
        step = "momentum" if name in MOMENTUM else "plain"
        options = {"step": step, "schedule": "decay", "outer_batch": BATCH, "inner_batch": BATCH, **given}
        found = common.attempt(bound, algorithm=name, budget=f"{steps}it", seed=self.seed, **options)
        if isinstance(found, str):  # a step that is too large
            return [np.nan] * (1 + len(others))
        return [
            found.objective,
            *(average_precision_score(y[rows], common.scores(found, x[rows])) for rows in others),
        ]


def main() -> None:
    parser = common.arguments(__doc__, seeds=[0, 1, 2, 3, 4], steps=5000, algorithms=GRID)
    args = parser.parse_args()
    frame = common.read(args.data, "covtype_sample93k.parquet")
    x, y = frame.drop(columns="Cover_Type").to_numpy(float), (frame["Cover_Type"] == 5).to_numpy(int)
    model, before = (
        fccomodel.compile(HERE / f"{name}.fcco") for name in ("average_precision", "cross_entropy")
    )
    splits = [common.split(len(y), 0.7, seed) for seed in args.seeds]
    fit, held = (splits[0][0][part] for part in common.split(len(splits[0][0]), 0.9, 100))
    tuning = Rows(before, x, y, fit, args.seeds[0])
    rows = [Rows(before, x, y, train, seed) for seed, (train, _) in zip(args.seeds, splits, strict=True)]
    table = []
    for name in args.algorithms:

        def error(**given: float) -> float:
            return -np.nan_to_num(tuning.run(model, name, args.steps, [held], **given)[1], nan=-np.inf)  # noqa: B023

        chosen, figures = common.tuned(error, GRID[name]), []
        for own, split in zip(rows, splits, strict=True):
            figures.append(own.run(model, name, args.steps, split, **chosen))
            print(f"{name}, seed {own.seed}, {chosen}:", *(f"{v:.4f}" for v in figures[-1]), flush=True)
        values = ", ".join(f"{key} {value:g}" for key, value in chosen.items())
        table.append(
            [name, PAPER.get(name, ""), *(common.spread(v) for v in zip(*figures, strict=True)), values]
        )
    columns = [
        "algorithm",
        "paper, test AP (CIFAR-10 / 100)",
        "surrogate, train",
        "AP, train",
        "AP, test",
        "chosen",
    ]
    common.show("Average precision, cover type 5", columns, table, "MOAP: gamma in units of B1 / n.")


if __name__ == "__main__":
    main()
