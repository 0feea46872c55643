"""Five new digits without forgetting the first five.

python examples/recipes/continual_images.py
"""

from __future__ import annotations

import copy

import numpy as np
import torch
from common import bind, convnet, digits, fit, outputs, tensor


def losses(net: torch.nn.Module, x: np.ndarray, digit: np.ndarray) -> np.ndarray:
    """The cross-entropy of each image."""
    logits, truth = torch.from_numpy(outputs(net, x)), torch.from_numpy(digit)
    return torch.nn.functional.cross_entropy(logits, truth, reduction="none").numpy()


def learned_before(x: np.ndarray, digit: np.ndarray) -> torch.nn.Module:
    """A network that knows these digits alone."""
    net = convnet(10)
    optimizer = torch.optim.AdamW(net.parameters(), 2e-3)
    for _ in range(60):
        loss = torch.nn.functional.cross_entropy(net(tensor(x)), torch.from_numpy(digit))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return net


def main(epochs: int = 12) -> dict[str, float]:
    """Test accuracy on old and new digits; by how much the bounds on the old digits' losses are violated."""
    train, test = digits()
    old = train.digit < 5
    before = learned_before(train.x[old], train.digit[old])
    problem = bind(
        "continual_images",
        "s",
        10,
        x=train.x,
        hot=np.eye(10)[train.digit],
        **{"class": train.digit, "new": (~old).astype(int), "old": losses(before, train.x, train.digit)},
    )
    criterion = problem.criterion(batch=80)
    net, x = copy.deepcopy(before), tensor(train.x)

    def scores(rows: list[int]) -> dict[str, torch.Tensor]:
        """Logits, batch normalisation as it was."""
        return {"s": net(x[rows])}

    fit(criterion, [net.eval()], scores, epochs=epochs)
    right = outputs(net, test.x).argmax(1) == test.digit
    kept = losses(net, train.x, train.digit) - losses(before, train.x, train.digit)
    rise = max(kept[train.digit == digit].mean() for digit in range(5))
    return {
        "old digits": float(right[test.digit < 5].mean()),
        "new digits": float(right[test.digit >= 5].mean()),
        "violation": max(0.0, float(rise) - 0.05),
    }


if __name__ == "__main__":
    print(main())
