"""AUC with ROC fairness constraints: sonex-alexr2-2025, Figure 3, Tables 4 and 5.

    python examples/papers/roc_fairness/run.py [--dataset adult] [--seeds 0 1 2 3 4] [--steps 15000]

A network of two hidden layers, seven thresholds, tolerance 0.005, 60 passes with batches of 128. AUC is blind to shifting and
scaling the scores while the thresholds are not: the surrogate objective and the 0-1 rates are shown beside it.
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

MODEL = Path(__file__).with_name("roc_fairness.fcco")
PAPER = {"alexr2": "0.8975", "alexr2, momentum": "0.861"}
#: algorithm (and step) -> its options, as the paper fixed them
RUNS: dict[str, dict[str, Any]] = {
    "alexr2": {"algorithm": "alexr2", "step": "adam"},
    "alexr2, momentum": {"algorithm": "alexr2", "step": "momentum"},
    "sonex": {"algorithm": "sonex"},
    "sonx": {"algorithm": "sonx"},
    "icppac": {"algorithm": "icppac"},
    "squared_hinge_sox": {"algorithm": "squared_hinge_sox"},
}
CATEGORIES = {
    "adult": ["workclass", "education", "marital-status", "occupation", "relationship", "race", "sex", "native-country"],
    "compas": ["sex", "c_charge_degree", "race", "age_cat"],
}
NUMBERS = {
    "adult": ["age", "fnlwgt", "education-num", "hours-per-week", "capital-gain", "capital-loss"],
    "compas": ["age", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count"],
}


def load(folder: Path, dataset: str) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Train and test tables: x standardised by the train rows, y in {-1, 1}, a in {0, 1}. COMPAS has no split of its own:
    80% of the rows to train on."""
    frame = common.read(folder, {"adult": "adult.parquet", "compas": "compas_two_years.parquet"}[dataset])
    x = pd.get_dummies(frame[CATEGORIES[dataset]].astype("category")).to_numpy(float)
    x = np.hstack([frame[NUMBERS[dataset]].to_numpy(float), x])
    if dataset == "adult":
        y, a = np.where(frame["income"] == ">50K", 1, -1), (frame["sex"] == "Male").to_numpy(int)
        train = (frame["split"] == "train").to_numpy()
    else:
        y, a = np.where(frame["two_year_recid"] == 1, 1, -1), (frame["race"] == "Caucasian").to_numpy(int)
        train = np.isin(np.arange(len(frame)), common.split(len(frame), 0.8, 0)[0])
    scale = x[train].std(0)
    x = (x - x[train].mean(0)) / np.where(scale > 0, scale, 1)
    parts = [{"x": x[rows], "y": y[rows], "a": a[rows]} for rows in (train, ~train)]
    return parts[0], parts[1]


def rates(scores: np.ndarray, rows: dict[str, np.ndarray]) -> float:
    """The largest difference between the groups' true (false) positive rates, 0-1, at the seven thresholds."""
    gaps = []
    for label in (1, -1):
        for t in range(-3, 4):
            shares = [np.mean(scores[(rows["y"] == label) & (rows["a"] == c)] > t) for c in (0, 1)]
            gaps.append(abs(shares[0] - shares[1]))
    return max(gaps)


def main() -> None:
    parser = common.arguments(__doc__, dataset="adult", seeds=[0, 1, 2, 3, 4], steps=6000, runs=list(RUNS))
    args = parser.parse_args()
    train, test = load(args.data, args.dataset)
    bound = fccomodel.compile(MODEL).bind(D=train, nets={"s": "mlp(64, 64, activation=elu)"})
    table = []
    for name in args.runs:
        figures = []
        for seed in args.seeds:
            found = common.attempt(bound, seed=seed, budget=f"{args.steps}it", **RUNS[name])
            if isinstance(found, str):
                break
            on_train, on_test = common.scores(found, train["x"]), common.scores(found, test["x"])
            worst = max(found.constraints[label] for label in found.constraints if label != "centred")
            gaps = [rates(on_train, train), rates(on_test, test)]
            figures.append([common.auc(on_test, test["y"] == 1), max(0.0, worst), found.objective, *gaps])
            print(name, seed, *(f"{v:.4f}" for v in figures[-1]), flush=True)
        if not figures:
            table.append([name, PAPER.get(name, ""), found])
            continue
        table.append(
            [name, PAPER.get(name, "") if args.dataset == "adult" else "", *map(common.spread, zip(*figures, strict=True))]
        )
    columns = ["run", "paper's AUC", "test AUC", "train violation", "train surrogate", "train 0-1 gap", "test 0-1 gap"]
    common.show(f"AUC with ROC fairness, {args.dataset}", columns, table, "violation: largest of the 14 constraints, above 0.005")


if __name__ == "__main__":
    main()
