"""What the recipes share: digits as images, two small networks, and the training loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits

import fccomodel as fc

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Images:
    """Pixels in [0, 1] of shape (n, 1, 8, 8), and the digit that each image shows."""

    x: np.ndarray
    digit: np.ndarray


def digits() -> tuple[Images, Images]:
    """The 1,797 handwritten digits that come with scikit-learn: two thirds to train on, a third to test."""
    data = load_digits()
    x = (data.images / 16).astype(np.float32)[:, None]
    order = np.random.default_rng(0).permutation(len(x))
    train, test = np.split(order, [1200])
    return Images(x[train], data.target[train]), Images(x[test], data.target[test])


def tensor(x: np.ndarray) -> torch.Tensor:
    """An array as a tensor of float32."""
    return torch.from_numpy(np.asarray(x, dtype=np.float32))


def view(x: torch.Tensor) -> torch.Tensor:
    """Images moved by at most one pixel, each in a direction of its own, with a little noise."""
    padded = torch.nn.functional.pad(x, (1, 1, 1, 1))
    across, down = torch.randint(0, 3, (2, len(x))).tolist()
    moved = [image[:, d : d + 8, a : a + 8] for image, a, d in zip(padded, across, down, strict=True)]
    return torch.stack(moved) + 0.1 * torch.randn_like(x)


def convnet(outputs: int = 1) -> torch.nn.Module:
    """A small convolutional network with batch normalisation; one output is a number for each image."""
    nn = torch.nn
    torch.manual_seed(0)
    layers = [nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)]
    layers += [nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Flatten()]
    layers += [nn.Linear(512, outputs)]
    if outputs == 1:
        layers += [nn.Flatten(0)]
    return nn.Sequential(*layers)


def bind(name: str, net: str, outputs: int, params: Mapping[str, Any] | None = None, **columns: Any) -> Any:
    """The recipe's model with the columns of its table ``D``.

    ``net`` is the name of the network in the model; a linear map stands for it until the loop gives scores.
    """
    first = next(iter(columns.values()))
    size = int(np.prod(first.shape[1:]))
    layers = [torch.nn.Flatten(), torch.nn.Linear(size, outputs)]
    if outputs == 1:
        layers += [torch.nn.Flatten(0)]
    model = fc.compile(HERE / f"{name}.fcco")
    return model.bind(D=columns, nets={net: torch.nn.Sequential(*layers)}, params=dict(params or {}))


def fit(
    criterion: Any,
    modules: Iterable[torch.nn.Module],
    scores: Callable[[list[int]], Mapping[str, Any]],
    *,
    epochs: int,
    lr: float = 2e-3,
) -> None:
    """The training loop. ``scores(rows)`` gives the network's outputs under its name in the model."""
    parameters = [p for module in modules for p in module.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=lr)
    sampler = criterion.sampler(seed=0)
    for _ in range(epochs):
        for rows in sampler:
            loss = criterion(rows, **scores(rows))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            criterion.step()


def outputs(net: torch.nn.Module, x: np.ndarray) -> np.ndarray:
    """The network's outputs in evaluation mode."""
    net.eval()
    with torch.no_grad():
        return net(tensor(x)).double().numpy()
