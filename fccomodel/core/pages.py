"""How parts of mapped files will be read, told to the system. Emitted programs carry this function."""

from __future__ import annotations

import os


def expect(start: int, size: int, how: str) -> None:
    """Of ``size`` bytes of memory from address ``start``: ``scattered``, a few here and there, so that nothing around them is
    read (systems read up to megabytes around each page); or ``soon``, all of them. No more than a hint: it changes no value."""
    import ctypes

    if os.name == "posix" and size:
        page = start - start % os.sysconf("SC_PAGE_SIZE")
        advice = {"scattered": 1, "soon": 3}[how]
        ctypes.CDLL(None).madvise(ctypes.c_void_p(page), ctypes.c_size_t(start - page + size), ctypes.c_int(advice))
