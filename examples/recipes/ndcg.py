"""A network for NDCG: of the thirty images of a query, those that look like an eight come first.

python examples/recipes/ndcg.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from common import Images, bind, convnet, digits, fit, outputs, tensor
from sklearn.metrics import ndcg_score

#: images of a query
SIZE = 30
#: relevance of an eight, and of digits that are easily taken for one
RELEVANCE = {8: 3, 3: 1, 9: 1}


def queries(images: Images) -> dict[str, np.ndarray]:
    """The columns of the model's table: images in queries of thirty, one after another."""
    n = len(images.x) // SIZE * SIZE
    relevance = np.array([RELEVANCE.get(digit, 0) for digit in images.digit[:n]])
    gain = (2.0**relevance - 1).reshape(-1, SIZE)
    ideal = (np.sort(gain)[:, ::-1] / np.log2(np.arange(SIZE) + 2)).sum(1)
    numbers = np.repeat(np.arange(n // SIZE), SIZE)
    return {
        "x": images.x[:n],
        "gain": gain.reshape(-1),
        "ideal": ideal[numbers],
        "size": np.full(n, SIZE - 1.0),
        "q": numbers,
    }


def main(epochs: int = 12) -> dict[str, float]:
    """The mean NDCG of test queries."""
    train, test = (queries(images) for images in digits())
    criterion = bind("ndcg", "s", 1, **train).criterion(batch=96)
    net, x = convnet(), tensor(train["x"])

    def scores(rows: list[int]) -> dict[str, torch.Tensor]:
        """Scores of the images."""
        return {"s": net(x[rows])}

    def judged(columns: dict[str, Any]) -> float:
        """Mean NDCG over the queries of a table."""
        gain, found = columns["gain"].reshape(-1, SIZE), outputs(net, columns["x"]).reshape(-1, SIZE)
        return float(ndcg_score(gain, found))

    fit(criterion, [net], scores, epochs=epochs)
    return {"ndcg": judged(test)}


if __name__ == "__main__":
    print(main())
