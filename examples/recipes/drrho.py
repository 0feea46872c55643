"""Training guided by a frozen reference network: a smaller one, trained on part of the data before.

python examples/recipes/drrho.py
"""

from __future__ import annotations

import numpy as np
import torch
from common import bind, convnet, digits, fit, outputs, tensor, view
from continual_images import learned_before, losses


def main(epochs: int = 30) -> dict[str, float]:
    """Test accuracy of the reference and of the network."""
    train, test = digits()
    reference = learned_before(train.x[:200], train.digit[:200])
    hot = np.eye(10)[train.digit]
    problem = bind("drrho", "s", 10, x=train.x, hot=hot, ref=losses(reference, train.x, train.digit))
    criterion = problem.criterion(batch=64)
    net, x = convnet(10), tensor(train.x)

    def scores(rows: list[int]) -> dict[str, torch.Tensor]:
        """Logits of randomly moved images."""
        return {"s": net(view(x[rows]))}

    fit(criterion, [net], scores, epochs=epochs)
    right = [(outputs(one, test.x).argmax(1) == test.digit).mean() for one in (reference, net)]
    return {"reference": float(right[0]), "network": float(right[1])}


if __name__ == "__main__":
    print(main())
