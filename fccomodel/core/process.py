"""State that all threads of the process share, changed for a time: threads that do so at once do not
disturb one another; and how a process ends that is asked to."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fccomodel.core.lazy import torch

#: Held while torch's own random numbers, the filters of warnings, or the way in which modules are
#: called are changed.
ALONE = threading.RLock()

#: The exit status of a process that SIGTERM ended, as shells give it.
TERMINATED = 143

#: Bytes of freed memory that a process may hold while it works, and the largest array that these
#: are for, by the numbers that glibc's ``mallopt`` knows them by (M_TRIM_THRESHOLD,
#: M_MMAP_THRESHOLD).
HELD = {-1: 64 << 20, -3: 32 << 20}

_COUNTING = threading.Lock()
_deep: list[int] = []
_before = 0


@contextmanager
def own_randomness() -> Iterator[None]:
    """Modules are made inside: torch's random numbers go on afterwards as if none had been drawn."""
    with ALONE, torch.random.fork_rng(devices=[]):
        yield


@contextmanager
def holding_memory() -> Iterator[None]:
    """Freed memory is held inside, up to a bound (``HELD``): passes over pairs take the same for each
    slice, and to fault every page in again is a third of what they cost. Afterwards it is given
    back. Without glibc nothing changes."""
    try:
        libc = ctypes.CDLL(None)
        held = all([libc.mallopt(number, bound) for number, bound in HELD.items()])
    except (OSError, AttributeError, TypeError):
        held = False
    try:
        yield
    finally:
        if held:
            libc.malloc_trim(0)


@contextmanager
def frames(count: int) -> Iterator[None]:
    """Room for recursion down so many Python frames; the limit of before is back once no thread needs
    more."""
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


def launched() -> bool:
    """torchrun, or another launcher of torch programs, started this process as one of several (or
    alone: torchrun)."""
    return "RANK" in os.environ and (
        "TORCHELASTIC_RUN_ID" in os.environ or int(os.environ.get("WORLD_SIZE", 1)) > 1
    )


def rank() -> int:
    """Which of the launched processes this is; 0 without a launcher."""
    if launched():
        return int(os.environ["RANK"])
    return 0


def _end() -> None:
    raise SystemExit(TERMINATED)


@contextmanager
def killable() -> Iterator[None]:
    """SIGTERM ends the process at once: it waits inside a library, where Python does not hear of signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def terminable(asked: Callable[[], None] = _end) -> Iterator[None]:
    """SIGTERM calls ``asked``; by default it ends the block as an exception does, so that other
    processes are ended too. Only in the main thread, where Python hears of signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda number, frame: asked())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
