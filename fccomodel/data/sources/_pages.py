"""What is read of mapped files: the rows that are asked for and no others, where systems read far ahead of each page."""

from __future__ import annotations

import mmap

import numpy as np

#: Rows of a file that may be read for each one that is asked for.
NEAR = 8


def scattered(values: np.ndarray) -> np.ndarray:
    """The same array; where it is mapped from a file, nothing is read ahead: many files are read in turns, a few rows of each."""
    if isinstance(values, np.memmap) and hasattr(mmap, "MADV_RANDOM"):
        values._mmap.madvise(mmap.MADV_RANDOM)
    return values


def taken(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """``values[rows]``; rows in order that lie close together in a mapped file are read from it at once."""
    file = getattr(values, "_mmap", None)
    if file is not None and len(rows) and hasattr(mmap, "MADV_WILLNEED"):
        first, span, width = int(rows[0]), int(rows[-1]) - int(rows[0]) + 1, values.strides[0]
        if 0 < span <= NEAR * len(rows):
            start = values.ctypes.data - np.frombuffer(file, np.uint8).ctypes.data + first * width
            page = start // mmap.PAGESIZE * mmap.PAGESIZE
            file.madvise(mmap.MADV_WILLNEED, page, start - page + span * width)
    return values[rows]
