"""NumPy files whose headers are believed only as far as the files bear them out.

A header says how large its array is, and NumPy takes that much memory before it reads a number.
Here the size that a header claims is that of what follows it, objects are never unpickled, and an
array that exceeds the free memory is refused.
"""

from __future__ import annotations

import math
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np

from fccomodel.core import memory

#: Bytes of the longest header that is read.
LONGEST_HEADER = 10_000
#: The first bytes of an archive, with members and without.
ARCHIVES = (b"PK\x03\x04", b"PK\x05\x06")
#: What reading a file raises that is no NumPy file, or a damaged one.
DAMAGES = (
    OSError,
    ValueError,
    TypeError,
    KeyError,
    EOFError,
    SyntaxError,
    OverflowError,
    RecursionError,
    NotImplementedError,
    RuntimeError,
    MemoryError,
    zipfile.BadZipFile,
    zlib.error,
    tokenize.TokenError,
)


class NotArrays(ValueError):
    """A file that is no NumPy file, or not as it says; the message says how, in words for the user."""


class Objects(NotArrays):
    """A file with Python objects."""


class TooLarge(NotArrays):
    """An array for which memory does not suffice."""


def read(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file by name; of an .npy file one, named by the file. Raises NotArrays."""
    try:
        with open(path, "rb") as file:
            if file.read(len(ARCHIVES[0])) not in ARCHIVES:
                file.seek(0)
                return {path.stem: _read(file, path.stat().st_size, path.name, memory.available())}
        return _members(path)
    except NotArrays:
        raise
    except DAMAGES as error:
        raise NotArrays(_words(error)) from None


def mapped(path: Path) -> np.ndarray:
    """The array of an .npy file where it lies: what is written to it stays in memory. Raises NotArrays."""
    try:
        with open(path, "rb") as file:
            _header(file, path.stat().st_size, path.name)
        return np.load(path, mmap_mode="c", allow_pickle=False)
    except NotArrays:
        raise
    except DAMAGES as error:
        raise NotArrays(_words(error)) from None


def _words(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _members(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an archive, one after another, as long as there is memory."""
    arrays: dict[str, np.ndarray] = {}
    left = memory.available()
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            if name in arrays:
                raise NotArrays(f"it has two arrays named {name[:60]}")
            with archive.open(member) as file:
                arrays[name] = _read(file, member.file_size, member.filename, left)
            left -= arrays[name].nbytes
    return arrays


def _read(file: IO[bytes], size: int, name: str, left: int) -> np.ndarray:
    """An array of a file with so many bytes."""
    nbytes = _header(file, size, name)
    if nbytes > left:
        raise TooLarge(
            f"{name[:60]} takes {nbytes / 1e9:,.1f} GB, and {left / 1e9:,.1f} GB of memory are free"
        )
    file.seek(0)
    return np.lib.format.read_array(file, allow_pickle=False, max_header_size=LONGEST_HEADER)


def _header(file: IO[bytes], size: int, name: str) -> int:
    """The bytes of an array, by its header; NotArrays where what follows is of another size."""
    version = np.lib.format.read_magic(file)
    readers: dict[tuple[int, int], Any] = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
        (3, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise NotArrays(f"{name[:60]} has version {version} of NumPy's format, which is not known")
    shape, _, dtype = readers[version](file, max_header_size=LONGEST_HEADER)
    if dtype.hasobject:
        raise Objects(f"{name[:60]} holds Python objects")
    claimed, there = math.prod(shape) * dtype.itemsize, size - file.tell()
    if min(shape, default=0) < 0 or claimed > there:
        raise NotArrays(f"{name[:60]} says that it has {claimed:,} bytes of numbers, and has {there:,}")
    return claimed
