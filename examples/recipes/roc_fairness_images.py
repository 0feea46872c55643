"""Partial AUC with ROC fairness on images: find the digits above 4; the groups are thin and bold writing.

python examples/recipes/roc_fairness_images.py
"""

from __future__ import annotations

import numpy as np
import torch
from common import Images, bind, convnet, digits, fit, outputs, tensor, view
from sklearn.metrics import roc_auc_score


def bold(images: Images) -> np.ndarray:
    """1 for images with more ink than most of their digit."""
    ink = images.x.mean((1, 2, 3))
    usual = np.array([np.median(ink[images.digit == digit]) for digit in range(10)])
    return (ink > usual[images.digit]).astype(int)


def main(epochs: int = 15) -> dict[str, float]:
    """Partial AUC on test images; the largest violation of the training problem."""
    train, test = digits()
    high = (train.digit > 4).astype(int)
    problem = bind("roc_fairness_images", "s", 1, x=train.x, y=high, a=bold(train))
    criterion = problem.criterion(batch=96)
    net, x = convnet(), tensor(train.x)

    def scores(rows: list[int]) -> dict[str, torch.Tensor]:
        """Scores of randomly moved images."""
        return {"s": net(view(x[rows]))}

    fit(criterion, [net], scores, epochs=epochs)
    pauc = roc_auc_score(test.digit > 4, outputs(net, test.x), max_fpr=0.3)
    everything = [(np.arange(len(train.x)), x)]
    seen = criterion.evaluate(everything, inputs=lambda images: images, s=net)
    return {"partial auc": float(pauc), "violation": seen.violation}


if __name__ == "__main__":
    print(main())
