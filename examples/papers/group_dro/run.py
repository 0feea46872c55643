"""Group-robust classification on Adult: alexr-2025, Table 2 and Figure 1.

    python examples/papers/group_dro/run.py [--seeds 0 1 2 3 4] [--steps 20000]

83 groups, 123 binary features, the source's own train and test rows; each step samples 8 groups and 8 rows of each; weight
decay 0.05; the step is chosen from a grid by the train objective, and divided by ten at half and at three quarters of the run;
the last iterate counts. Accuracy is over the test rows of the worst 10% (15%) of the groups; the gap is that of the train
objective.
"""

from __future__ import annotations

import sys
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import common  # noqa: E402
from groups import adult  # noqa: E402

import fccomodel  # noqa: E402

MODEL = Path(__file__).with_name("group_dro.fcco")
PAPER = {
    "sgd": ("0.71 ± 0.20", "1.87 ± 0.25"), "sgd_uw": ("23.70 ± 1.01", "26.26 ± 1.06"), "ooa": ("51.46 ± 2.21", "54.12 ± 2.04"),
    "bsgd": ("55.81 ± 0.70", "58.58 ± 0.61"), "sox": ("56.34 ± 1.15", "58.36 ± 0.44"), "msvr": ("47.78 ± 1.06", "49.49 ± 0.95"),
    "alexr": ("56.58 ± 0.69", "58.52 ± 0.71"),
}  # fmt: skip
CALLS = (1e5, 3e5)
GRID = (0.005, 0.02, 0.05)
#: no theorem covers these on a non-smooth f, as the paper says of MSVR
OPTIONS = {"sox": {"step": "momentum", "unverified": True}, "msvr": {"unverified": True}, "bsgd": {"unverified": True}}


def tables(frame: pd.DataFrame) -> dict[str, Any]:
    return {"x": np.stack(frame["x"]), "y": frame["y"].to_numpy(), "g": frame["g"].to_numpy()}


def worst(w: np.ndarray, frame: pd.DataFrame, alpha: float) -> tuple[float, float]:
    """Accuracy in percent on the worst ``ceil(alpha n)`` groups: over their rows, and the mean over the groups."""
    right = np.where(np.stack(frame["x"]) @ w > 0, 1, -1) == frame["y"].to_numpy()
    groups = (
        pd.DataFrame({"g": frame["g"], "right": right}).groupby("g")["right"].agg(["mean", "sum", "size"]).sort_values("mean")
    )
    chosen = groups.head(ceil(alpha * len(groups)))
    return 100 * chosen["sum"].sum() / chosen["size"].sum(), 100 * chosen["mean"].mean()


def main() -> None:
    parser = common.arguments(__doc__, seeds=[0, 1, 2, 3, 4], steps=10_000, algorithms=list(PAPER), shares=[0.1, 0.15])
    args = parser.parse_args()
    frame = adult(args.data)
    train, test = frame[frame["split"] == "train"], frame[frame["split"] == "test"]
    model = fccomodel.compile(MODEL)
    chosen: dict[str, float] = {}
    for k, alpha in enumerate(args.shares):
        bound = model.bind(D=tables(train), params={"alpha": alpha})
        best = bound.solve(budget="60s", seed=0)
        optimum, limit = best.objective, worst(best.variables["w"], test, alpha)
        rows = [["the optimum", "", f"{limit[0]:.2f}", f"{limit[1]:.2f}", "0", *[""] * len(CALLS)]]
        for name in args.algorithms:
            options = {"algorithm": name, "schedule": "decay", "budget": f"{args.steps}it", "outer_batch": 8, "inner_batch": 8}
            options |= OPTIONS.get(name, {})
            if name not in chosen:
                trials = {eta: common.attempt(bound, seed=100, eta=eta, **options) for eta in GRID}
                chosen[name] = min(trials, key=lambda eta: trials[eta].objective if not isinstance(trials[eta], str) else np.inf)
            runs = [common.attempt(bound, seed=seed, eta=chosen[name], **options) for seed in args.seeds]
            if isinstance(runs[0], str):
                rows.append([name, PAPER[name][k], runs[0]])
                continue
            accuracy = np.array([worst(r.variables["w"], test, alpha) for r in runs])
            gaps = [r.objective - optimum for r in runs]
            curve = [np.mean([common.at(r.history, calls) for r in runs]) - optimum for calls in CALLS]
            rows.append([
                name, PAPER[name][k], common.spread(accuracy[:, 0], 2), common.spread(accuracy[:, 1], 2),
                f"{np.mean(gaps):.1e}", *[f"{g:.1e}" for g in curve], f"{chosen[name]:g}",
            ])  # fmt: skip
            print(*rows[-1], sep=" | ", flush=True)
        columns = ["algorithm", "paper", "rows of worst groups", "mean of worst groups", "gap"]
        columns += [*[f"gap after {c:.0e} calls" for c in CALLS], "step"]
        note = f"Train optimum {optimum:.6f}. The grouping fits the paper's text; the authors' own recipe is not published."
        common.show(f"Adult, accuracy in % on the worst {alpha:.0%} of 83 groups", columns, rows, note)


if __name__ == "__main__":
    main()
