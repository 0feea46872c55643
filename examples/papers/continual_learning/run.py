"""Continual learning with non-forgetting constraints: sonex-alexr2-2025, section F.3, Figures 3 to 5.

    python examples/papers/continual_learning/run.py [--seeds 0 1 2] [--steps 3000]

The paper fine-tunes CLIP on driving images. Here: scikit-learn's digits, a network of 32 ELUs that
maps an image to 16 numbers, fixed random vectors as the classes' texts. The old model has learned
the classes 0 to 6; the target task is the classes 7 to 9; the constraints say that the logistic
loss on each old class may not rise. rho is chosen on seed 0, of both from {1, 10} (the paper tunes
it too), lam of SONEX from {0.1, 0.3}.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import common  # noqa: E402

import fccomodel  # noqa: E402

MODEL = Path(__file__).with_name("continual_learning.fcco")
TAU, OLD = 0.1, 7
OPTIONS = {"sonex": {"rho": 1.0, "lam": 0.1}, "squared_hinge_sox": {"rho": 10.0}}


def network(seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ELU(), torch.nn.Linear(32, 16))


def logits(net: torch.nn.Module, x: torch.Tensor, texts: torch.Tensor) -> torch.Tensor:
    """Cosines between images and texts, divided by the temperature."""
    e = net(x)
    return (e / (e.square().sum(-1, keepdim=True) + 1e-6).sqrt()) @ texts.T / TAU


def old_model(x: torch.Tensor, c: torch.Tensor, texts: torch.Tensor, seed: int) -> torch.nn.Module:
    """A network trained on the old classes by softmax regression."""
    net = network(seed)
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-2)
    for _ in range(300):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(logits(net, x, texts), c).backward()
        optimiser.step()
    return net


def main() -> None:
    parser = common.arguments(__doc__, seeds=[0, 1, 2], steps=3000, algorithms=OPTIONS)
    args = parser.parse_args()
    images, digits = load_digits(return_X_y=True)
    texts = np.random.default_rng(0).standard_normal((10, 16))
    texts /= np.sqrt((texts**2).sum(1, keepdims=True) + 1e-6)
    x, c, t = (
        torch.tensor(images / 16, dtype=torch.float32),
        torch.tensor(digits),
        torch.tensor(texts, dtype=torch.float32),
    )
    train, test = (torch.tensor(rows) for rows in common.split(len(c), 0.7, 0))
    model, table = fccomodel.compile(MODEL), []

    def accuracy(net: torch.nn.Module, rows: torch.Tensor, new: bool) -> float:
        rows = rows[(c[rows] >= OLD) == new]
        return 100 * float((logits(net, x[rows], t).argmax(1) == c[rows]).double().mean())

    for name in args.algorithms:
        figures = []
        for seed in args.seeds:
            old, new = train[c[train] < OLD], train[c[train] >= OLD]
            start = old_model(x[old], c[old], t, seed)
            with torch.no_grad():
                loss = torch.nn.functional.cross_entropy(
                    logits(start, x[old], t), c[old], reduction="none"
                ) - np.log(10)
                before = [float(loss[c[old] == k].mean()) for k in range(OLD)]
                accuracies = [accuracy(start, test, True), accuracy(start, test, False)]
            tables: dict[str, Any] = {
                "T": {"t": texts, "c": np.arange(10)}, "D": {"x": x[new].numpy(), "t": texts[c[new]]},
                "O": {"x": x[old].numpy(), "t": texts[c[old]], "k": c[old].numpy()}, "old": dict(enumerate(before)),
            }  # fmt: skip
            bound = model.bind(data=tables, nets={"e": start}, params={"tau": TAU})
            found = common.attempt(
                bound, algorithm=name, seed=seed, budget=f"{args.steps}it", **OPTIONS.get(name, {})
            )
            if isinstance(found, str):
                break
            torch.nn.utils.vector_to_parameters(
                torch.tensor(found.variables["w"], dtype=torch.float32), start.parameters()
            )
            with torch.no_grad():
                figures.append([
                    found.objective, max(0.0, *found.constraints.values()),
                    *accuracies, accuracy(start, test, True), accuracy(start, test, False),
                ])  # fmt: skip
            print(name, seed, *(f"{v:.4g}" for v in figures[-1]), flush=True)
        if not figures:
            table.append([name, found])
            continue
        table.append([name, *(common.spread(v, 4) for v in list(zip(*figures, strict=True)))])
    columns = [
        "algorithm",
        "contrastive loss",
        "violation",
        "new, before",
        "old, before",
        "new, after",
        "old, after",
    ]
    common.show("Continual learning on digits: test accuracy in % of new and old classes", columns, table)


if __name__ == "__main__":
    main()
