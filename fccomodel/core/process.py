"""Temporary changes of state that all threads share, safe for threads, and the end of a process."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fccomodel.core.lazy import torch

#: Held while torch's random state, the warning filters, or the way in which modules are called change.
ALONE = threading.RLock()

#: The exit status of a process that SIGTERM ended, as shells report it.
TERMINATED = 143

#: glibc's option for the bytes of freed memory that a process keeps.
M_TRIM_THRESHOLD = -1
#: glibc's option for the bytes of the largest array that comes from that memory.
M_MMAP_THRESHOLD = -3
#: Settings of ``mallopt`` while memory is held, in bytes.
HELD = {M_TRIM_THRESHOLD: 64 << 20, M_MMAP_THRESHOLD: 32 << 20}

#: Held while the two variables below and Python's recursion limit change.
_COUNTING = threading.Lock()
#: The recursion limits that running threads need.
_needed: list[int] = []
#: The recursion limit before the first of them asked.
_before = 0


@contextmanager
def own_randomness() -> Iterator[None]:
    """Restore torch's random state afterwards, so that draws inside (of new modules) do not show."""
    with ALONE, torch.random.fork_rng(devices=[]):
        yield


@contextmanager
def holding_memory() -> Iterator[None]:
    """Keep freed memory inside, up to a bound (``HELD``), and give it back afterwards.

    Passes over pairs need the same memory for each slice, and page faults are a third of their cost.
    Without glibc this does nothing.
    """
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


#: Python frames that the stages need for the deepest model: tens for each of its levels.
FRAMES = 40_000


@contextmanager
def frames(count: int = FRAMES) -> Iterator[None]:
    """Raise Python's recursion limit to ``count`` frames; it is lowered once no thread needs more."""
    global _before
    with _COUNTING:
        if not _needed:
            _before = sys.getrecursionlimit()
        _needed.append(count)
        sys.setrecursionlimit(max([_before, *_needed]))
    try:
        yield
    finally:
        with _COUNTING:
            _needed.remove(count)
            sys.setrecursionlimit(max([_before, *_needed]))


def launched() -> bool:
    """Whether a launcher of torch programs started this process (torchrun even as the only one)."""
    return "RANK" in os.environ and (
        "TORCHELASTIC_RUN_ID" in os.environ or int(os.environ.get("WORLD_SIZE", 1)) > 1
    )


def rank() -> int:
    """The number of this process among the launched ones; 0 without a launcher."""
    if launched():
        return int(os.environ["RANK"])
    return 0


def _end() -> None:
    raise SystemExit(TERMINATED)


@contextmanager
def killable() -> Iterator[None]:
    """Let SIGTERM end the process at once, also while it waits inside a library.

    There Python would not handle signals.
    """
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
    """Let SIGTERM call ``asked``; by default it raises SystemExit, so that other processes end too.

    Only in the main thread, where Python handles signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda number, frame: asked())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
