"""Reading NumPy files safely.

A header says how large its array is, and NumPy allocates that much memory before it reads a number.
Here the claimed size must not exceed the bytes that follow the header, Python objects are never
unpickled, and an array that exceeds the free memory is refused.
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
#: The errors that NumPy raises for a damaged file, or for a file of another format.
DAMAGE_ERRORS = (
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
    """A file that is not a NumPy file, or contradicts its own header. The message is for the user."""


class Objects(NotArrays):
    """A file that holds Python objects."""


class TooLarge(NotArrays):
    """An array that does not fit into the free memory."""


def read(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file by name, or the array of an .npy file under the file's name.

    Raises NotArrays.
    """
    try:
        with open(path, "rb") as file:
            if file.read(len(ARCHIVES[0])) not in ARCHIVES:
                file.seek(0)
                return {path.stem: _read(file, path.stat().st_size, path.name, memory.available())}
        return _members(path)
    except NotArrays:
        raise
    except DAMAGE_ERRORS as error:
        raise NotArrays(_words(error)) from None


def mapped(path: Path) -> np.ndarray:
    """The array of an .npy file, memory-mapped; writes to it do not reach the file. Raises NotArrays."""
    try:
        with open(path, "rb") as file:
            _header(file, path.stat().st_size, path.name)
        return np.load(path, mmap_mode="c", allow_pickle=False)
    except NotArrays:
        raise
    except DAMAGE_ERRORS as error:
        raise NotArrays(_words(error)) from None


def _words(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _members(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an archive, read one after another; each must fit into the memory that is left."""
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
    """The array of an open file of ``size`` bytes; ``left`` bytes of memory are free."""
    nbytes = _header(file, size, name)
    if nbytes > left:
        raise TooLarge(
            f"{name[:60]} takes {nbytes / 1e9:,.1f} GB, and {left / 1e9:,.1f} GB of memory are free"
        )
    file.seek(0)
    return np.lib.format.read_array(file, allow_pickle=False, max_header_size=LONGEST_HEADER)


def _header(file: IO[bytes], size: int, name: str) -> int:
    """The bytes of an array, by its header. Raises NotArrays if fewer bytes follow."""
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
    claimed = math.prod(shape) * dtype.itemsize
    present = size - file.tell()
    if min(shape, default=0) < 0 or claimed > present:
        raise NotArrays(f"{name[:60]} says that it has {claimed:,} bytes of numbers, and has {present:,}")
    return claimed
