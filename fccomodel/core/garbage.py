"""When Python looks for cycles among objects: not over and over in what imports leave, which stays.

A search of the oldest generation goes over all that torch's modules are made of: a tenth of a second. What is changed here is
changed for a time only: a program's own settings are back afterwards, and its objects are looked through as ever.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

#: New objects after which cycles are looked for while we work; Python's own count is some hundreds.
OBJECTS = 10_000

#: Packages that complain about objects of theirs that are there when the process ends.
LOUD = {"duckdb"}

_COUNTING = threading.Lock()
_working = 0
_before = (0, 0, 0)
_ours = False


@contextmanager
def rarely_collected() -> Iterator[None]:
    """Cycles are looked for after so many new objects (``OBJECTS``), if not more rarely already. The thresholds of before are
    back once no thread works, unless others have been set meanwhile."""
    global _working, _before
    with _COUNTING:
        _working += 1
        if _working == 1:
            _before = gc.get_threshold()
            if 0 < _before[0] < OBJECTS:
                gc.set_threshold(OBJECTS, *_before[1:])
    try:
        yield
    finally:
        with _COUNTING:
            _working -= 1
            if not _working and gc.get_threshold() == (OBJECTS, *_before[1:]):
                gc.set_threshold(*_before)


@contextmanager
def importing() -> Iterator[None]:
    """A package of hundreds of modules is imported inside: no cycles are looked for meanwhile, and what is there then counts as
    old at once, as it would after three searches. In a process of ours (:func:`ours`) it is not looked through later either."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if _ours or not gc.get_freeze_count():
            gc.freeze()
            if not _ours:
                gc.unfreeze()
        if enabled:
            gc.enable()


@contextmanager
def ours() -> Iterator[None]:
    """The process is a command, and ends with the block: what is there at the end is left to the system. Python would look
    through all of it first, which takes as long as a third of importing torch. It does so where a package that lists, on the
    terminal, whatever is left of it (``LOUD``) was used."""
    global _ours
    _ours = True
    try:
        yield
    finally:
        _ours = False
        if LOUD & set(sys.modules):
            gc.unfreeze()
        else:
            gc.freeze()
