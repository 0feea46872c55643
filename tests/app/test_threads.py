"""Solves in several threads at once give what they give alone, and leave the process as it was."""

from __future__ import annotations

import random
import sys
import threading
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from support.places import ROOT

import fccomodel
from fccomodel.core import process

NET = """
dim d;
data D : table(x: real[d], y: {0, 1});
net s : real[d] -> real;
var w = params(s);
minimize risk: E[z ~ D] log1pexp(-(2 * z.y - 1) * s(w; z.x));
subject to recall: E[z ~ D | z.y == 1] log1pexp(-s(w; z.x)) <= 0.3;
"""
LINEAR = (ROOT / "examples" / "neyman_pearson.fcco").read_text()


def answer(k: int) -> fccomodel.Result:
    """Every other one of a net, whose first weights are drawn and whose forward is traced."""
    rng = np.random.default_rng(k)
    x = rng.normal(size=(60, 4))
    data = {"x": x, "y": (x[:, 0] + rng.normal(size=60) > 0).astype(int)}
    model = fccomodel.compile(NET if k % 2 else LINEAR)
    return model.bind(D=data, nets={"s": "mlp(4)"} if k % 2 else {}).solve(budget="40it", seed=k)


def state() -> tuple[Any, ...]:
    torch_state = (
        torch.get_num_threads(),
        torch.get_default_dtype(),
        torch.is_grad_enabled(),
        torch.get_rng_state().tolist(),
    )
    return sys.getrecursionlimit(), list(warnings.filters), np.geterr(), random.getstate(), torch_state


def at_once(jobs: list[Any]) -> list[Any]:
    found: list[Any] = [None] * len(jobs)

    def run(k: int) -> None:
        try:
            found[k] = jobs[k]()
        except BaseException as error:
            found[k] = error

    threads = [threading.Thread(target=run, args=(k,)) for k in range(len(jobs))]
    switching = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(switching)
    return found


@pytest.mark.slow
def test_solves_at_once() -> None:
    alone = [answer(k) for k in range(4)]
    before = state()
    assert answer(1).objective == alone[1].objective and state() == before
    for one, other in zip(alone, at_once([lambda k=k: answer(k) for k in range(4)]), strict=True):
        assert isinstance(other, fccomodel.Result), other
        assert one.objective == other.objective and one.report.epsilon == other.report.epsilon
        assert all(np.array_equal(value, other.variables[name]) for name, value in one.variables.items())
    assert state() == before


def test_room_for_recursion_is_counted() -> None:
    """One thread that ends does not take the room of another, and the last one leaves the limit as it was."""
    before, first, second = sys.getrecursionlimit(), process.frames(before_plus := 5000), process.frames(9000)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert sys.getrecursionlimit() == 9000 > before_plus
    second.__exit__(None, None, None)
    assert sys.getrecursionlimit() == before


def test_a_net_is_applied_while_another_is_followed() -> None:
    """Tracing goes through the modules of the whole process; those of other threads work on."""
    inside, done = threading.Event(), threading.Event()
    other, found = torch.nn.Linear(2, 1), []

    class Slow(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            inside.set()
            done.wait(10)
            return self.layer(x)

    from fccomodel.data.nets import walk

    slow = Slow()
    tracing = threading.Thread(target=lambda: found.append(walk(slow)))
    tracing.start()
    assert inside.wait(10)
    try:
        value, same = other(torch.ones(1, 2)), slow.layer(torch.ones(1, 2))
    finally:
        done.set()
        tracing.join()
    assert isinstance(value, torch.Tensor) and isinstance(same, torch.Tensor)
    assert found[0].affine
