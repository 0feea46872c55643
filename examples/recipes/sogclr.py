"""Embeddings of digits without labels, by a global contrastive loss: SogCLR.

python examples/recipes/sogclr.py
"""

from __future__ import annotations

import numpy as np
import torch
from common import bind, convnet, digits, fit, outputs, tensor, view


def main(epochs: int = 12, model: str = "sogclr") -> dict[str, float]:
    """Accuracy on test images with five labels for each digit, by embeddings before and after training."""
    train, test = digits()
    problem = bind(model, "e", 32, {"m": 32}, a=train.x, b=train.x)
    criterion = problem.criterion(batch=64)
    net, x = convnet(32), tensor(train.x)

    def accuracy() -> float:
        """Share of test images whose nearest labelled image shows the same digit."""
        labelled = np.concatenate([np.flatnonzero(train.digit == digit)[:5] for digit in range(10)])
        normal = [torch.nn.functional.normalize(torch.from_numpy(outputs(net, x))) for x in (train.x, test.x)]
        nearest = (normal[1] @ normal[0][labelled].T).argmax(1).numpy()
        return float((train.digit[labelled][nearest] == test.digit).mean())

    def scores(rows: list[int]) -> dict[str, dict[str, torch.Tensor]]:
        """Embeddings of two random views of the images."""
        net.train()
        one, other = net(torch.cat([view(x[rows]), view(x[rows])])).chunk(2)
        return {"e": {"a": one, "b": other}}

    before = accuracy()
    fit(criterion, [net, criterion], scores, epochs=epochs)
    return {"before": before, "after": accuracy()}


if __name__ == "__main__":
    print(main())
