"""How parts of mapped files will be read, told to the system. Emitted programs carry this function."""

from __future__ import annotations

import os


def expect(start: int, size: int, how: str) -> None:
    """Of ``size`` bytes of memory from address ``start``: ``scattered``, a few here and there, so that
    nothing around them is read (systems read up to megabytes around each page); ``usual``, in
    order; or ``soon``, all of them. It changes no value."""
    import ctypes

    if os.name != "posix" or not size:
        return
    madvise, end = (
        ctypes.pythonapi.madvise,
        start + size,
    )  # a handle that is open already: batches ask at every step
    advice, step = {"usual": (0, size), "scattered": (1, size), "soon": (3, 1 << 17)}[
        how
    ]  # at once it may read 128 KiB alone
    for at in range(start - start % os.sysconf("SC_PAGE_SIZE"), end, step):
        madvise(ctypes.c_void_p(at), ctypes.c_size_t(min(step, end - at)), ctypes.c_int(advice))
