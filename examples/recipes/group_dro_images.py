"""A network for the worst groups: is the digit even? The groups are the ten digits; one of them is rare.

python examples/recipes/group_dro_images.py
"""

from __future__ import annotations

import numpy as np
import torch
from common import Images, bind, convnet, digits, fit, outputs, tensor, view


def main(epochs: int = 15) -> dict[str, float]:
    """Accuracy on test images: of the worst digit, and of all."""
    train, test = digits()
    rare = np.flatnonzero(train.digit == 8)[12:]
    train = Images(np.delete(train.x, rare, axis=0), np.delete(train.digit, rare))
    even = (train.digit % 2 == 0).astype(int)
    problem = bind("group_dro_images", "s", 1, x=train.x, y=even, g=train.digit)
    criterion = problem.criterion(batch=80)
    net, x = convnet(), tensor(train.x)

    def scores(rows: list[int]) -> dict[str, torch.Tensor]:
        """Scores of randomly moved images."""
        return {"s": net(view(x[rows]))}

    fit(criterion, [net, criterion], scores, epochs=epochs)
    right = (outputs(net, test.x) > 0) == (test.digit % 2 == 0)
    worst = min(right[test.digit == digit].mean() for digit in range(10))
    return {"worst digit": float(worst), "all": float(right.mean())}


if __name__ == "__main__":
    print(main())
