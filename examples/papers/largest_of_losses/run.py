"""The largest of four losses: hscg-2020, Figures 2 and 6.

    python examples/papers/largest_of_losses/run.py [--passes 200]

Objective after 10, 50 and 200 passes over the data, batches of N/32 rows, for HSCG, the stochastic compositional gradient
method (on the smoothed function) and the prox-linear method. rcv1 and url are not to be had: reuters stands in for them.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import common  # noqa: E402

import fccomodel  # noqa: E402

MODEL = Path(__file__).with_name("largest_of_losses.fcco")
PASSES = (10, 50, 200)


def covtype(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Class 2 against the rest, features scaled to [0, 1]."""
    frame = common.read(folder, "covtype_sample93k.parquet")
    x = frame.drop(columns="Cover_Type").to_numpy(float)
    return (x - x.min(0)) / np.maximum(np.ptp(x, 0), 1), np.where(frame["Cover_Type"] == 2, 1, -1)


def phishing(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """30 categorical columns as 68 binary ones, rows of unit norm: LIBSVM's file."""
    frame = common.read(folder, "phishing_uci.parquet")
    x = pd.get_dummies(frame.drop(columns="Result").astype("category")).to_numpy(float)
    return x / np.sqrt(30), frame["Result"].to_numpy()


def reuters(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Sparse text, the 1,000 most frequent of its 8,315 terms."""
    frame = common.read(folder, "reuters_lasvm.parquet")
    x = np.zeros((len(frame), 8315))
    for row, (where, values) in enumerate(zip(frame["indices"], frame["values"], strict=True)):
        x[row, np.asarray(where)] = values
    frequent = np.argsort(-(x != 0).sum(0))[:1000]
    return x[:, frequent], frame["label"].to_numpy()


def main() -> None:
    parser = common.arguments(__doc__, passes=200, seeds=[0], algorithms=["hscg", "scgd", "prox_linear"])
    args = parser.parse_args()
    model = fccomodel.compile(MODEL)
    table = []
    for name, (x, y) in {f.__name__: f(args.data) for f in (phishing, covtype, reuters)}.items():
        bound, n = model.bind(D={"x": x, "y": y}), len(y)
        for algorithm in args.algorithms:
            runs = [
                common.attempt(bound, algorithm=algorithm, seed=s, inner_batch=n // 32, budget=f"{args.passes * n}oracles")
                for s in args.seeds
            ]
            if isinstance(runs[0], str):
                table.append([f"{name}, {algorithm}", runs[0]])
                continue
            curve = [np.mean([common.at(r.history, p * n) for r in runs]) for p in PASSES]
            table.append([f"{name}, {algorithm}", *[f"{v:.6f}" for v in curve], f"{np.mean([r.objective for r in runs]):.6f}"])
    common.show("The largest of four losses", ["", *[f"after {p} passes" for p in PASSES], "at the end"], table)


if __name__ == "__main__":
    main()
