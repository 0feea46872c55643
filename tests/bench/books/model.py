"""What a model of a textbook is, and the data that several share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import cvxpy as cp
import numpy as np

Array = np.ndarray


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model's text and data, and the same problem written by hand."""

    text: str
    data: dict[str, Any] = field(default_factory=dict)
    problem: cp.Problem


def minimum(objective: Any, *constraints: Any) -> cp.Problem:
    return cp.Problem(cp.Minimize(objective), list(constraints))


def maximum(objective: Any, *constraints: Any) -> cp.Problem:
    return cp.Problem(cp.Maximize(objective), list(constraints))


def tail(losses: cp.Expression, share: float) -> cp.Expression:
    """Conditional value at risk: the mean of the largest share."""
    t = cp.Variable()
    return t + cp.sum(cp.pos(losses - t)) / (share * losses.size)


def returns(n: int, d: int, seed: int) -> Array:
    """Daily returns in percent: a market, two factors, and noise with heavy tails."""
    random = np.random.default_rng(seed)
    loadings = np.column_stack([random.uniform(0.5, 1.5, d), random.normal(scale=0.4, size=(d, 2))])
    noise = random.standard_t(4, size=(n, d)) * random.uniform(0.5, 1.2, d)
    return random.normal(size=(n, 3)) @ loadings.T + noise + random.uniform(0.0, 0.1, d)


def regression(
    n: int, d: int, seed: int, *, noise: float = 1.0, sparse: int | None = None
) -> tuple[Array, Array]:
    """Features, and targets of a linear model with heavy-tailed noise."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, d))
    weights = random.normal(size=d)
    weights[d if sparse is None else sparse :] = 0
    return x, x @ weights + noise * random.standard_t(4, size=n)


def classes(n: int, d: int, seed: int, *, noise: float = 1.0) -> tuple[Array, Array]:
    """Features, and labels -1 and 1 of a noisy plane."""
    x, score = regression(n, d, seed, noise=noise)
    return x, np.where(score > 0, 1, -1)
