"""The memory of this machine."""

from __future__ import annotations

import os
from pathlib import Path

#: Where Linux says how much memory is free, and how much a container may have and has.
FREE = Path("/proc/meminfo")
GROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
GROUP_USED = Path("/sys/fs/cgroup/memory.current")
#: Bytes of memory where nothing says how much there is.
UNKNOWN = 1 << 40


def available() -> int:
    """Bytes that can be taken now: what is free, or all of the machine's memory where only that is known."""
    return max(0, min(_free(), _left_in_group()))


def _free() -> int:
    try:
        entries = dict(line.split(":", 1) for line in FREE.read_text().splitlines())
        return int(entries["MemAvailable"].split()[0]) * 1024
    except (OSError, ValueError, KeyError):
        return _physical()


def _physical() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return UNKNOWN


def _left_in_group() -> int:
    """What a container leaves; pages of files that it holds count as taken, so this is no more than is there."""
    try:
        return int(GROUP_LIMIT.read_text()) - int(GROUP_USED.read_text())
    except (OSError, ValueError):  # no limit is the word `max`
        return UNKNOWN
