"""The memory that this process may still use, by the machine, its control groups and its own limits."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: Linux: the machine's memory.
MEMORY_OF_MACHINE = Path("/proc/meminfo")
#: Linux: the memory that this process uses, in pages.
MEMORY_OF_PROCESS = Path("/proc/self/statm")
#: Linux: the control groups that this process is in.
GROUPS_OF_PROCESS = Path("/proc/self/cgroup")
#: The root of all control groups.
GROUPS = Path("/sys/fs/cgroup")
#: A group's files for its limit and its use, in versions 2 and 1 of the kernel's interface.
LIMITS_AND_USES = (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes"))
#: A group's file of statistics.
STATISTICS = "memory.stat"
#: Its entries for cached file contents, which the kernel frees when memory is needed (versions 2, 1).
KEPT_OF_FILES = ("inactive_file", "total_inactive_file")
#: Bytes from which a limit counts as none (version 1 writes the largest multiple of a page).
NO_LIMIT = 1 << 60
#: Bytes that are allocated without asking what is available.
UNASKED_BYTES = 1 << 26
#: The share of the available memory that may be taken inside ``limited``.
SHARE = 0.95
#: A kibibyte, the unit of ``MEMORY_OF_MACHINE``, in bytes.
KIB = 1024

#: Held while the two variables below and the process's limit change.
_COUNTING = threading.Lock()
#: How many threads are inside ``limited``.
_inside = 0
#: The limit of this process before the first of them came.
_before: tuple[int, int] | None = None


def available() -> int:
    """Bytes that this process may still take; ``NO_LIMIT`` if the system does not say."""
    return max(int(min([NO_LIMIT, *_of_machine(), *_of_groups(), *_of_process()])), 0)


def lacking(size: float) -> float | None:
    """The bytes that are available if ``size`` bytes do not fit, or None if they do.

    Sizes up to UNASKED_BYTES always fit.
    """
    if size <= UNASKED_BYTES:
        return None
    left = available()
    if size > left:
        return left
    return None


def in_words(size: float) -> str:
    """A number of bytes as people read it: ``1.2 GB``."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size:.0f} bytes"


@contextmanager
def limited() -> Iterator[None]:
    """Let this process take no more memory inside than is available now.

    An allocation beyond it fails (``ran_out``), where the system would otherwise end the process. The
    limit is the system's own (``RLIMIT_DATA``, setrlimit(2)), and is taken back afterwards. It counts
    what is reserved, so there is none where a GPU is in use, whose driver reserves much; nor where the
    system has no such limit.
    """
    global _inside, _before
    with _COUNTING:
        if not _inside:
            _before = _lower_limit()
        _inside += 1
    try:
        yield
    finally:
        with _COUNTING:
            _inside -= 1
            if not _inside and _before is not None:
                import resource

                resource.setrlimit(resource.RLIMIT_DATA, _before)


def ran_out(error: BaseException) -> bool:
    """Whether an error says that memory ran out, on this machine or its GPU. Programs carry it."""
    said = str(error)
    return isinstance(error, MemoryError) or "allocate memory" in said or "out of memory" in said


def _lower_limit() -> tuple[int, int] | None:
    """Lower the limit of this process's data to what is available; the limit before, None if it stays."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return None
    try:
        import resource

        pages = int(MEMORY_OF_PROCESS.read_text(encoding="ascii").split()[5])
    except (ImportError, OSError, ValueError, IndexError):
        return None
    left = available()
    if left >= NO_LIMIT:
        return None
    before = resource.getrlimit(resource.RLIMIT_DATA)
    allowed = pages * resource.getpagesize() + int(SHARE * left)
    if before[0] != resource.RLIM_INFINITY and before[0] <= allowed:
        return None
    resource.setrlimit(resource.RLIMIT_DATA, (allowed, before[1]))
    return before


def _of_machine() -> Iterator[float]:
    """Bytes that the machine has available."""
    try:
        lines = MEMORY_OF_MACHINE.read_text(encoding="ascii").splitlines()
        yield from (float(line.split()[1]) * KIB for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, IndexError):
        if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
            yield float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")


def _of_groups() -> Iterator[float]:
    """Bytes that each control group of this process leaves it, with the groups around them."""
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
    """Bytes that one control group leaves, if it has a limit."""
    for limit, used in LIMITS_AND_USES:
        try:
            allowed, now = (float((folder / name).read_text(encoding="ascii")) for name in (limit, used))
        except (OSError, ValueError):  # there is no limit, or it is "max"
            continue
        if allowed < NO_LIMIT:
            yield allowed - now + _kept_of_files(folder)


def _kept_of_files(folder: Path) -> float:
    """Bytes of cached file contents in a control group, which the kernel can free."""
    try:
        lines = (folder / STATISTICS).read_text(encoding="ascii").splitlines()
    except OSError:
        return 0.0
    numbers = dict(line.split()[:2] for line in lines)
    return max((float(numbers[name]) for name in KEPT_OF_FILES if name in numbers), default=0.0)


def _of_process() -> Iterator[float]:
    """Bytes that the limits of this process leave it (``ulimit -v``, ``ulimit -d``)."""
    try:
        import resource

        pages = MEMORY_OF_PROCESS.read_text(encoding="ascii").split()
    except (ImportError, OSError):
        return
    size = resource.getpagesize()
    for kind, used in ((resource.RLIMIT_AS, pages[0]), (resource.RLIMIT_DATA, pages[5])):
        allowed = resource.getrlimit(kind)[0]
        if allowed != resource.RLIM_INFINITY:
            yield allowed - float(used) * size
