"""What the exercises of the course are checked by; answers are in ``answers.py``, to be read last.

``check("1.1", answer)`` says whether an answer is right; an answer that is still ``...`` is left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

import fccomodel as fc

CHECKS: dict[str, Callable[[Any], bool]] = {}


def exercise(name: str) -> Callable[[Callable[[Any], bool]], Callable[[Any], bool]]:
    """Registers the check of an exercise."""

    def register(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
        CHECKS[name] = test
        return test

    return register


def check(name: str, answer: Any) -> bool | None:
    """Whether the answer is right, in words as well; None where there is none yet."""
    if answer is ...:
        print(f"{name}: no answer yet")
        return None
    right = bool(CHECKS[name](answer))
    print(f"{name}: {'right' if right else 'not yet right'}")
    return right


@exercise("1.1")
def _(ending: float) -> bool:
    return abs(ending - 1 / (1 + 2**2 / 4)) < 1e-6


@exercise("1.2")
def _(text: str) -> bool:
    problem = fc.compile(text).bind()
    where = float(problem.solve(budget="1s").variables["w"])
    given = {"inner_batch": 1, "eta": 0.02, "schedule": "decay", "budget": "6000it", "seed": 1, "unverified": True}
    plain = problem.solve(algorithm="bsgd", **given)
    return "normal(1, 1)" in text and abs(float(plain.variables["w"]) - where) < 0.05


@exercise("2.1")
def _(variance: float) -> bool:
    return abs(variance - 0.1 / (2 - 0.1)) < 1e-6


@exercise("2.2")
def _(gammas: list[float]) -> bool:
    slow, fast = gammas
    return slow < fast


@exercise("3.1")
def _(value: float) -> bool:
    return abs(value - 3.75) < 1e-6


@exercise("3.2")
def _(centre: float) -> bool:
    return abs(centre - 4.0) < 1e-6


@exercise("4.1")
def _(next_y: float) -> bool:
    return abs(next_y - 1.5) < 1e-6


@exercise("4.2")
def _(y: list[float]) -> bool:
    """Slopes of absolute values that cancel, so that the bound has no w, and is 5."""
    value = -(y[0] * 1 + y[1] * 2 + y[2] * 6)
    return max(map(abs, y)) <= 1 and abs(sum(y)) < 1e-9 and abs(value - 5) < 1e-6


@exercise("5.1")
def _(multiplier: float) -> bool:
    return abs(multiplier - 2.0) < 1e-6


@exercise("5.2")
def _(text: str) -> bool:
    result = fc.compile(text).bind().solve(budget="5s")
    active = {label for label, row in result.report.constraints.items() if abs(row.value) < 1e-4}
    return "subject to" in text and bool(active) and all(abs(result.report.constraints[k].multiplier) < 1e-3 for k in active)


@exercise("6.1")
def _(variance: float) -> bool:
    return abs(variance - 0.1 / 1.9) < 1e-3


@exercise("6.2")
def _(calls: int) -> bool:
    return calls == 5 * 1000 + 2 * (10 + 20 + 40 + 80 + 160)


@exercise("7.1")
def _(cvar: float) -> bool:
    return abs(cvar - (10 + 9 + 0.5 * 8) / 2.5) < 1e-6


@exercise("7.2")
def _(text: str) -> bool:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 2))
    y = np.where(x[:, 0] + rng.normal(size=30) > 0, 1, -1)
    result = fc.compile(text).bind(D={"x": x, "y": y}).solve(seed=0)
    w = result.variables["w"]
    moved = x - 0.1 * y[:, None] * np.sign(w)
    return abs(result.objective - np.logaddexp(0, -y * (moved @ w)).mean()) < 1e-6


@exercise("8.1")
def _(rows: float) -> bool:
    return abs(rows / (132 * (0.128 / 0.02) ** 2) - 1) < 0.05


@exercise("8.2")
def _(text: str) -> bool:
    rng = np.random.default_rng(0)
    group = np.arange(120) % 2
    x = rng.normal(size=(120, 2)) + group[:, None]
    y = (x.sum(axis=1) + rng.normal(size=120) > 1).astype(int)
    table = {"x": x, "y": y, "g": np.array(["young", "old"])[group]}
    result = fc.compile(text).bind(D=table).solve(seed=0)
    chosen = 1 / (1 + np.exp(-(x @ result.variables["w"] + result.variables["b"])))
    young, old = (chosen[(y == 0) & (group == k)].mean() for k in (0, 1))
    return abs(abs(young - old) - 0.03) < 1e-3


@exercise("9.1")
def _(areas: list[float]) -> bool:
    return np.allclose(areas, [0.75, 0.5])


@exercise("9.2")
def _(text: str) -> bool:
    rng = np.random.default_rng(0)
    y = (np.arange(60) % 3 == 0).astype(int)
    x = rng.normal(size=(60, 2)) + y[:, None]
    result = fc.compile(text).bind(D={"x": x, "y": y}).solve(seed=0)
    score = x @ result.variables["w"]
    each = (np.maximum(1 + score[y == 0] - score[y == 1][:, None], 0) ** 2).mean(axis=1)
    value = np.sort(each)[-10:].mean() + 0.001 * (result.variables["w"] ** 2).sum()
    return result.report.solved and abs(result.objective - value) < 1e-6


@exercise("10.1")
def _(rho: float) -> bool:
    return abs(rho - 0.25) < 1e-4


@exercise("10.2")
def _(step: Callable[..., Any]) -> bool:
    import torch

    state = SimpleNamespace(w=torch.tensor([1.0, 2.0, 3.0]), v=torch.tensor([0.5, -0.5, 0.1]))
    sizes = step(state, torch.tensor([1.0, 1.0, -1.0]), SimpleNamespace(eta=0.1, beta=0.2))
    right = torch.allclose(state.v, torch.tensor([0.6, -0.2, -0.12])) and torch.allclose(state.w, torch.tensor([0.9, 2.1, 3.1]))
    return right and torch.allclose(torch.as_tensor(sizes), torch.tensor(0.1))
