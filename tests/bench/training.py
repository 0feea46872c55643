"""A small network on real images, three ways: ``solve``, the criterion in a plain loop, and a loop of
the same formulas written by hand.

    python tests/bench/training.py [--seconds 10 20] [--only solve criterion hand]

The images are those of ``../shared/data/pneumoniamnist.parquet`` (4,708 of 28 x 28 to train on). The
problem is a partial AUC by the KL formula (SOPA-s), with a bound on the misses of each of three
groups. Seconds are those of the processor, of one thread. Judged on validation images: partial AUC
up to 30% of false positives, and the largest violation.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.metrics import roc_auc_score

import fccomodel

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "pneumoniamnist.parquet"
#: misses of each group, at most
MISSES = 0.1
#: rows of a batch, half of them positive in the loop by hand
BATCH = 64
MODEL = f"""
model pauc; dim c; dim h; dim v; set G;
data D : table(x: real[c, h, v], y: {{0, 1}}, g: G);
set P = {{z in D | z.y == 1}};
set N = {{z in D | z.y == 0}};
net s : real[c, h, v] -> real;
var w = params(s);
minimize pauc: E[p ~ P] log(E[n ~ N] exp(square(max(1 - (s(w; p.x) - s(w; n.x)), 0)) / 0.5));
subject to misses[k in G]: E[p ~ P | p.g == k] sigmoid(-s(w; p.x)) <= {MISSES};
"""
Images = tuple[np.ndarray, np.ndarray, np.ndarray]


def images() -> tuple[Images, Images]:
    """Pixels in [0, 1], labels and groups: to train on, and to judge by."""
    table = pd.read_parquet(DATA)
    first = table.pixels.iloc[0]
    rows = [np.frombuffer(v, np.uint8) if isinstance(first, bytes) else np.asarray(v) for v in table.pixels]
    x = np.stack(rows).astype(np.float32).reshape(-1, 1, 28, 28) / 255
    y = table.label.to_numpy().astype(int)
    g = np.array(["a", "b", "c"])[np.random.default_rng(0).integers(3, size=len(y))]
    train, held = ((table.split == name).to_numpy() for name in ("train", "val"))
    return (x[train], y[train], g[train]), (x[held], y[held], g[held])


def network() -> torch.nn.Module:
    """Two convolutions: 6,369 weights."""
    torch.manual_seed(0)
    nn = torch.nn
    first = nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)
    second = nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)
    return nn.Sequential(*first, *second, nn.Flatten(), nn.Linear(1568, 1), nn.Flatten(-2))


def bound(train: Images) -> Any:
    """The model with its images."""
    x, y, g = train
    return fccomodel.compile(MODEL).bind(D={"x": x, "y": y, "g": g}, nets={"s": network()})


def by_solve(train: Images, seconds: float) -> tuple[torch.nn.Module, int]:
    """The net of a solve with this budget, and its steps."""
    result = bound(train).solve(budget=f"{seconds:g}s", unverified=True, seed=0)
    return result.module("s").float(), result.outcome.solution.iterations


def by_criterion(train: Images, seconds: float) -> tuple[torch.nn.Module, int]:
    """The criterion in a plain loop."""
    criterion, net = bound(train).criterion(batch=BATCH), network()
    x = torch.from_numpy(train[0])

    def batches() -> Iterator[list[int]]:
        sampler = criterion.sampler(seed=0)
        while True:
            yield from sampler

    def loss(rows: list[int]) -> torch.Tensor:
        return criterion(rows, s=net(x[rows]))

    return net, trained(net, batches(), loss, criterion.step, seconds)


def by_hand(train: Images, seconds: float) -> tuple[torch.nn.Module, int]:
    """SOPA-s with moving averages, and an augmented Lagrangian by moving averages."""
    x, y, g = (
        torch.from_numpy(train[0]),
        train[1],
        torch.from_numpy(np.searchsorted(["a", "b", "c"], train[2])),
    )
    net, rng = network(), np.random.default_rng(0)
    u, means = torch.full((len(y),), torch.nan), torch.full((3,), torch.nan)
    positive, negative = np.flatnonzero(y == 1), np.flatnonzero(y == 0)

    def batches() -> Iterator[torch.Tensor]:
        while True:
            halves = (rng.choice(rows, BATCH // 2, replace=False) for rows in (positive, negative))
            yield torch.from_numpy(np.concatenate(list(halves)))

    def loss(rows: torch.Tensor) -> torch.Tensor:
        p, scores = rows[: BATCH // 2], net(x[rows])
        sp, sn = scores[: BATCH // 2], scores[BATCH // 2 :]
        pairs = (1 - (sp[:, None] - sn)).clamp(min=0).square() / 0.5
        inner = torch.logsumexp(pairs, 1) - np.log(BATCH // 2)
        new, old = inner.detach(), u[p]
        u[p] = torch.where(old.isnan(), new, torch.logaddexp(old + np.log(0.9), new + np.log(0.1)))
        total = ((new - u[p]).clamp(max=5).exp() * inner).mean()
        misses = torch.sigmoid(-sp)
        for k in range(3):
            mine = g[p] == k
            if mine.any():
                value = misses[mine].mean()
                means[k] = value.detach() if means[k].isnan() else 0.9 * means[k] + 0.1 * value.detach()
                total = total + torch.relu(10 * (means[k] - MISSES)) * value
        return total

    return net, trained(net, batches(), loss, lambda: None, seconds)


def trained(
    net: torch.nn.Module,
    batches: Iterator[Any],
    loss: Callable[[Any], torch.Tensor],
    after: Callable[[], None],
    seconds: float,
) -> int:
    """Adam until the seconds of the processor are over; how many steps."""
    optimizer, began, steps = torch.optim.Adam(net.parameters(), 1e-3), time.process_time(), 0
    while time.process_time() - began < seconds:
        value = loss(next(batches))
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        after()
        steps += 1
    return steps


WAYS = {"solve": by_solve, "criterion": by_criterion, "hand": by_hand}


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, nargs="+", default=[10.0, 20.0])
    parser.add_argument("--only", nargs="+", choices=WAYS, default=list(WAYS))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    train, (x, y, g) = images()
    print("| budget | way | processor seconds | steps | pAUC | violation |\n|---|---|---|---|---|---|")
    for seconds in arguments.seconds:
        for name in arguments.only:
            began = time.process_time()
            net, steps = WAYS[name](train, seconds)
            spent = time.process_time() - began
            with torch.no_grad():
                scores = net.eval()(torch.from_numpy(x)).double()
            quality = roc_auc_score(y, scores.numpy(), max_fpr=0.3)
            misses = torch.sigmoid(-scores).numpy()
            worst = max(misses[(y == 1) & (g == k)].mean() - MISSES for k in "abc")
            print(
                f"| {seconds:g} s | {name} | {spent:.1f} | {steps:,} | {quality:.4f} | {max(worst, 0.0):.4f} |"
            )


if __name__ == "__main__":
    main()
