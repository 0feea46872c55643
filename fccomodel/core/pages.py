"""Advice to the system on how memory-mapped files will be read. Emitted programs carry this function."""

from __future__ import annotations

import os


def expect(start: int, size: int, how: str) -> None:
    """Advise the system (madvise) how ``size`` bytes of memory from address ``start`` will be read.

    how  ``usual``: in order; ``soon``: all of them; ``scattered``: a few here and there, so that the
         system does not read up to megabytes around each page
    """
    import ctypes

    if os.name != "posix" or not size:
        return
    madvise = ctypes.pythonapi.madvise  # this library is open already; batches call this at every step
    # the advice "soon" may cover 128 KiB at a time only
    advice, step = {"usual": (0, size), "scattered": (1, size), "soon": (3, 1 << 17)}[how]
    end = start + size
    for at in range(start - start % os.sysconf("SC_PAGE_SIZE"), end, step):
        madvise(ctypes.c_void_p(at), ctypes.c_size_t(min(step, end - at)), ctypes.c_int(advice))
