"""A policy from logged actions, its mean cost bounded: guess the digit, but name large ones rarely.

An action is a guess of the digit. A right guess pays 1; guesses of 5 and above cost 1.

    python examples/recipes/cost_policy.py
"""

from __future__ import annotations

import numpy as np
import torch
from common import HERE, digits, outputs, tensor

import fccomodel as fc


def main(epochs: int = 60) -> dict[str, float]:
    """Mean reward and cost of the policy on test images; the bound on the cost is 0.2."""
    train, test = digits()
    rng = np.random.default_rng(0)
    n = 4 * len(train.x)
    x, digit = np.tile(train.x.reshape(-1, 64), (4, 1)), np.tile(train.digit, 4)
    action = rng.integers(0, 10, size=n)
    table = {
        "x": x,
        "hot": np.eye(10)[action],
        "logp": np.full(n, -np.log(10)),
        "reward": (action == digit).astype(float),
        "cost": (action >= 5).astype(float),
    }
    net = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ELU(), torch.nn.Linear(32, 10))
    problem = fc.compile(HERE / "cost_policy.fcco").bind(D=table, nets={"s": net})
    criterion = problem.criterion(batch=256)
    optimizer = torch.optim.AdamW(net.parameters(), 5e-3)
    images = tensor(x)
    for _ in range(epochs):
        for rows in criterion.sampler(seed=0):
            loss = criterion(rows, s=net(images[rows]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            criterion.step()
    policy = torch.from_numpy(outputs(net, test.x.reshape(-1, 64))).softmax(-1).numpy()
    reward = policy[np.arange(len(policy)), test.digit].mean()
    return {"reward": float(reward), "cost": float(policy[:, 5:].sum(1).mean())}


if __name__ == "__main__":
    print(main())
