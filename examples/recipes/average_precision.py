"""A network for average precision: find the eights among the digits.

python examples/recipes/average_precision.py
"""

from __future__ import annotations

import torch
from common import bind, convnet, digits, fit, outputs, tensor, view
from sklearn.metrics import average_precision_score


def main(epochs: int = 12) -> dict[str, float]:
    """Average precision on test images."""
    train, test = digits()
    problem = bind("average_precision", "s", 1, x=train.x, y=(train.digit == 8).astype(int))
    criterion = problem.criterion(batch=64)
    net, x = convnet(), tensor(train.x)

    def scores(rows: list[int]) -> dict[str, torch.Tensor]:
        """Scores of randomly moved images."""
        return {"s": net(view(x[rows]))}

    fit(criterion, [net], scores, epochs=epochs)
    return {"average precision": float(average_precision_score(test.digit == 8, outputs(net, test.x)))}


if __name__ == "__main__":
    print(main())
