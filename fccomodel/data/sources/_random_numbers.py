"""The random numbers of torch, NumPy and Python, begun at a seed for a while and put back."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np

from fccomodel.core import process
from fccomodel.core.lazy import torch


def _alone() -> AbstractContextManager[Any]:
    """No other thread changes random states meanwhile; a worker has only one thread."""
    from torch.utils.data import get_worker_info

    if get_worker_info() is not None:
        return nullcontext()
    return process.ALONE


@contextmanager
def seeded(number: int) -> Iterator[None]:
    """The random numbers of torch, NumPy and Python begin at a seed; before and after they are others'."""
    with _alone():
        before = _states()
        seed(number)
        try:
            yield
        finally:
            _put_back(before)


@contextmanager
def watched() -> Iterator[Callable[[], bool]]:
    """A function that says whether somebody drew random numbers inside; they are put back."""
    drew = [False]
    with _alone():
        before = _states()
        try:
            yield lambda: drew[0]
        finally:
            after = _states()
            same = before[0] == after[0] and torch.equal(before[2], after[2])
            drew[0] = not same or not _same_numpy(before[1], after[1])
            _put_back(before)


def seed(number: int) -> None:
    """Begin the random numbers of torch, NumPy and Python at a seed."""
    random.seed(number)
    np.random.seed(number % (1 << 32))
    torch.default_generator.manual_seed(number)


def _states() -> tuple[Any, Any, Any]:
    return random.getstate(), np.random.get_state(), torch.default_generator.get_state()


def _same_numpy(a: Any, b: Any) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def _put_back(states: tuple[Any, Any, Any]) -> None:
    random.setstate(states[0])
    np.random.set_state(states[1])
    torch.default_generator.set_state(states[2])
