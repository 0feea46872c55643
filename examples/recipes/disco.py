"""A small transformer learns sums from its own answers, of which only right or wrong is known: DisCO, a
constrained policy optimisation.

    python examples/recipes/disco.py
"""

from __future__ import annotations

import copy

import numpy as np
import torch
from common import HERE, fit
from language import Language, pretrained

import fccomodel as fc

#: answers that are sampled for each question
ANSWERS = 16


def sums(rng: np.random.Generator, n: int) -> np.ndarray:
    """Two digits and the two digits of their sum; some of the sums are wrong."""
    a, b = rng.integers(0, 10, size=(2, n))
    total = np.where(rng.random(n) < 0.5, a + b, rng.integers(0, 19, size=n))
    return np.stack([a, b, total // 10, total % 10], axis=1)


def answered(net: Language, questions: torch.Tensor, greedy: bool) -> torch.Tensor:
    """The questions with answers of two digits: sampled, or the likeliest."""
    tokens = questions
    with torch.no_grad():
        for _ in range(2):
            chances = net.logits(tokens)[:, -1].softmax(-1)
            if greedy:
                following = chances.argmax(-1, keepdim=True)
            else:
                following = torch.multinomial(chances, 1)
            tokens = torch.cat([tokens, following], dim=1)
    return tokens


def right(tokens: torch.Tensor) -> torch.Tensor:
    """Whether each answer is the sum."""
    return tokens[:, 0] + tokens[:, 1] == 10 * tokens[:, 2] + tokens[:, 3]


def main(epochs: int = 50) -> dict[str, float]:
    """Share of sampled answers that are right before and after; the drift, which is bounded by 0.2."""
    rng = np.random.default_rng(0)
    old = pretrained(Language(10, 4, 2), torch.from_numpy(sums(rng, 4000)), 300)
    grid = torch.cartesian_prod(torch.arange(10), torch.arange(10))
    tokens = answered(old, grid.repeat_interleave(ANSWERS, 0), greedy=False)
    mixed = right(tokens).reshape(100, ANSWERS).double().mean(1)
    asked = ((mixed > 0) & (mixed < 1)).repeat_interleave(ANSWERS)
    tokens = tokens[asked]
    with torch.no_grad():
        before = old(tokens).double()
    table = {
        "x": tokens.numpy().astype(float),
        "right": right(tokens).long().numpy(),
        "old": before.numpy(),
        "q": (10 * tokens[:, 0] + tokens[:, 1]).numpy(),
    }
    shape = torch.nn.Sequential(torch.nn.Linear(4, 1), torch.nn.Flatten(0))
    problem = fc.compile(HERE / "disco.fcco").bind(D=table, nets={"s": shape})
    criterion, net = problem.criterion(batch=128), copy.deepcopy(old)

    def scores(rows: list[int]) -> dict[str, torch.Tensor]:
        """Log-likelihoods of answers, by their number of tokens."""
        return {"s": net(tokens[rows])}

    def share(one: Language) -> float:
        """Of 3,200 answers, the share that is right."""
        torch.manual_seed(1)
        return float(right(answered(one, grid.repeat_interleave(32, 0), greedy=False)).double().mean())

    fit(criterion, [net], scores, epochs=epochs, lr=1e-3)
    with torch.no_grad():
        drift = float((before - net(tokens).double()).mean())
    return {"before": share(old), "after": share(net), "drift": drift}


if __name__ == "__main__":
    print(main())
