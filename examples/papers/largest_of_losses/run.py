"""The largest of four losses: hscg-2020, Figures 2 and 6.

    python examples/papers/largest_of_losses/run.py [--passes 50] [--sets phishing covtype reuters]

Objective after so many passes over the data, batches of N/32 rows, for HSCG, the stochastic
compositional gradient method and the prox-linear method. rcv1 and url are not to be had: reuters
stands in for them; covtype is a sixth of the rows.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import common  # noqa: E402

import fccomodel  # noqa: E402

MODEL = Path(__file__).with_name("largest_of_losses.fcco")
SHOWN = (5, 10, 20, 50)
#: SCG decays its steps as its theorems do; no theorem covers it on a maximum, whose subgradients it takes
OPTIONS: dict[str, dict[str, Any]] = {
    "hscg": {"look": 16},
    "scgd": {"warm": 1, "stage": 100, "unverified": True},
    "prox_linear": {"stage": 1},
}
#: first steps, of which the best after 10 passes is taken (prox-linear finds its own)
STEPS = {name: (5, 20, 50, 100, 200) for name in ("hscg", "scgd")}


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
    parser = common.arguments(
        __doc__,
        passes=50,
        seed=0,
        algorithms=["hscg", "scgd", "prox_linear"],
        sets=["phishing", "covtype", "reuters"],
    )
    args = parser.parse_args()
    model, table = fccomodel.compile(MODEL), []
    for read in (phishing, covtype, reuters):
        if read.__name__ not in args.sets:
            continue
        x, y = read(args.data)
        bound, n = model.bind(D={"x": x, "y": y}), len(y)
        for algorithm in args.algorithms:
            options = {"algorithm": algorithm, "seed": args.seed, "inner_batch": n // 32} | OPTIONS.get(
                algorithm, {}
            )
            tried = {
                eta: bound.solve(budget=f"{10 * n}oracles", eta=eta, **options)
                for eta in STEPS.get(algorithm, ())
            }
            if tried:
                options["eta"] = min(tried, key=lambda eta: tried[eta].objective)
            result = bound.solve(budget=f"{args.passes * n}oracles", **options)
            curve = [f"{common.at(result.history, passes * n):.4f}" for passes in SHOWN]
            table.append(
                [
                    f"{read.__name__}, {algorithm}",
                    f"{options.get('eta', '')}",
                    *curve,
                    f"{result.objective:.4f}",
                ]
            )
            print(*table[-1], sep=" | ", flush=True)
    common.show(
        "The largest of four losses", ["", "eta", *[f"after {p} passes" for p in SHOWN], "at the end"], table
    )


if __name__ == "__main__":
    main()
