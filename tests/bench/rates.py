"""The rates by which work is counted, measured on this machine beside those of the table
(``fccomodel/core/work.py``).

    python tests/bench/rates.py

Each is the least of many times, on one thread, less what the parts counted otherwise take.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import fields

import torch

from fccomodel.core.work import Rates

MANY = 30


def least(work: Callable[[], object]) -> float:
    """Seconds of one call, the least of many."""
    taken = []
    for _ in range(MANY):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return min(taken)


def small() -> float:
    """Seconds of an operation and of its differentiation on three numbers, by the operations that
    torch is asked for."""
    x = torch.ones(3, requires_grad=True)

    def chain() -> None:
        y = x
        for _ in range(20):
            y = (y * 1.01).clamp(min=0) + 0.1
        torch.autograd.grad(y.sum(), x)

    return least(chain) / 140


def measured() -> dict[str, float]:
    n, k = 200_000, 300
    x, y, index = (
        torch.rand(n, dtype=torch.float64),
        torch.rand(n, dtype=torch.float64),
        torch.randint(n, (n,)),
    )
    a, b = torch.rand(k, k, dtype=torch.float64), torch.rand(k, k, dtype=torch.float64)
    long = torch.rand(20 * n, dtype=torch.float64)
    byte = least(lambda: long + long) / (24 * 20 * n)
    return {
        "call": small(),
        "byte": byte,
        "product": least(lambda: a @ b) / k**3,
        "curved": max(least(f) / n - 16 * byte for f in (x.exp, x.log1p, x.sigmoid)),
        "moved": max(least(lambda: x[index]), least(lambda: torch.zeros_like(x).index_add_(0, index, y))) / n,
        "drawn": least(lambda: torch.rand(n)) / n,
        "ordered": least(x.sort) / n,
    }


def main() -> None:
    torch.set_num_threads(1)
    found, table = measured(), Rates()
    print(f"{'rate':<10}{'here':>12}{'table':>12}{'ratio':>8}")
    for entry in fields(table):
        here, there = found[entry.name], getattr(table, entry.name)
        print(f"{entry.name:<10}{here:>12.2e}{there:>12.2e}{here / there:>8.2f}")


if __name__ == "__main__":
    main()
