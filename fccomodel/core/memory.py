"""How much memory this process may still take: of the machine, of its control group, and by its own
limits."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

#: Where the kernel says what memory there is and what this process uses of it (Linux).
MEMORY_OF_MACHINE = Path("/proc/meminfo")
MEMORY_OF_PROCESS = Path("/proc/self/statm")
GROUPS_OF_PROCESS = Path("/proc/self/cgroup")
#: The control groups of both versions of the kernel's interface, and their files: the limit, and
#: what is used of it.
GROUPS = Path("/sys/fs/cgroup")
LIMITS_AND_USES = (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes"))
#: In a group's statistics what it keeps of files, and gives back where memory is wanted.
STATISTICS = "memory.stat"
KEPT_OF_FILES = ("inactive_file", "total_inactive_file")
#: Limits from this on are none (version 1 writes the largest multiple of a page for none).
NO_LIMIT = 1 << 60
#: Bytes that are taken without asking what there is.
SMALL = 1 << 26
#: A kibibyte, the unit of ``MEMORY_OF_MACHINE``, in bytes.
KIB = 1024


def available() -> int:
    """Bytes that this process may still take; ``NO_LIMIT`` where the system does not say."""
    return max(int(min([NO_LIMIT, *_of_machine(), *_of_groups(), *_of_process()])), 0)


def lacking(size: float) -> float | None:
    """The bytes that are available, where an array of so many is more; None where it fits. Small ones
    are not asked about."""
    if size <= SMALL:
        return None
    left = available()
    return left if size > left else None


def in_words(size: float) -> str:
    """A number of bytes as people read it: ``1.2 GB``."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size:.0f} bytes"


def _of_machine() -> Iterator[float]:
    """What the machine has left without taking it from others."""
    try:
        lines = MEMORY_OF_MACHINE.read_text(encoding="ascii").splitlines()
        yield from (float(line.split()[1]) * KIB for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, IndexError):
        if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
            yield float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")


def _of_groups() -> Iterator[float]:
    """What the control groups that this process is in, and those around them, leave it."""
    try:
        lines = GROUPS_OF_PROCESS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        if controllers:
            root = GROUPS / "memory"
        else:
            root = GROUPS
        inner = root / path.lstrip("/")
        for folder in [inner, *inner.parents]:
            if folder == root.parent:
                break
            yield from _of_group(folder)


def _of_group(folder: Path) -> Iterator[float]:
    """What one control group leaves, where it has a limit."""
    for limit, used in LIMITS_AND_USES:
        try:
            most, now = (float((folder / name).read_text(encoding="ascii")) for name in (limit, used))
        except (OSError, ValueError):  # there is none, or it is "max"
            continue
        if most < NO_LIMIT:
            yield most - now + _kept_of_files(folder)


def _kept_of_files(folder: Path) -> float:
    """What a control group keeps of files that it can give back."""
    try:
        lines = (folder / STATISTICS).read_text(encoding="ascii").splitlines()
    except OSError:
        return 0.0
    numbers = dict(line.split()[:2] for line in lines)
    return max((float(numbers[name]) for name in KEPT_OF_FILES if name in numbers), default=0.0)


def _of_process() -> Iterator[float]:
    """What the limits of this process leave it (``ulimit -v``, ``ulimit -d``)."""
    try:
        import resource

        pages = MEMORY_OF_PROCESS.read_text(encoding="ascii").split()
    except (ImportError, OSError):
        return
    size = resource.getpagesize()
    for kind, used in ((resource.RLIMIT_AS, pages[0]), (resource.RLIMIT_DATA, pages[5])):
        most = resource.getrlimit(kind)[0]
        if most != resource.RLIM_INFINITY:
            yield most - float(used) * size
