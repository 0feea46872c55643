"""State that all threads of the process share, changed for a time: threads that do so at once do not disturb one another."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from fccomodel.core.lazy import torch

#: Held while torch's own random numbers, the filters of warnings, or the way in which modules are called are changed.
ALONE = threading.RLock()

_COUNTING = threading.Lock()
_deep: list[int] = []
_before = 0


@contextmanager
def own_randomness() -> Iterator[None]:
    """Modules are made inside: torch's random numbers go on afterwards as if none had been drawn."""
    with ALONE, torch.random.fork_rng(devices=[]):
        yield


@contextmanager
def frames(count: int) -> Iterator[None]:
    """Room for recursion down so many Python frames; the limit of before is back once no thread needs more."""
    global _before
    with _COUNTING:
        if not _deep:
            _before = sys.getrecursionlimit()
        _deep.append(count)
        sys.setrecursionlimit(max([_before, *_deep]))
    try:
        yield
    finally:
        with _COUNTING:
            _deep.remove(count)
            sys.setrecursionlimit(max([_before, *_deep]))
