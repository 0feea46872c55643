"""torch and sympy, imported where they are first used: a text is checked and explained without the one, solved without the other.

``from fccomodel.core.lazy import torch`` stands for ``import torch`` in rooms that such commands go through.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import sys
import threading
from contextlib import nullcontext, suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from fccomodel.core import garbage

#: Where torch keeps most of its code, in its folder on Linux.
LIBRARY = "lib/libtorch_cpu.so"
#: Of ``dlopen``: all symbols at once, as Python loads modules.
NOW = 2
#: Modules in C that a command imports before torch. None can be while the system's loader is busy.
EXTENSIONS = (
    "_bisect", "_blake2", "_bz2", "_contextvars", "_datetime", "_decimal", "_hashlib", "_json", "_lzma", "_opcode", "_pickle",
    "_random", "_sha512", "_struct", "binascii", "fcntl", "math", "numpy", "numpy.linalg", "select", "termios", "unicodedata",
    "zlib",
)  # fmt: skip


class Lazy:
    """Stands for a module; what is read of it is kept."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(load(self._name), attribute)
        setattr(self, attribute, value)
        return value


def load(name: str) -> ModuleType:
    """The module, imported if it is not: large ones in a third less time than a bare ``import`` takes (:mod:`garbage`)."""
    with nullcontext() if name in sys.modules else garbage.importing():
        return importlib.import_module(name)


def ahead() -> None:
    """The system's loader begins with torch's library, a fifth of its import, while Python goes on; where it cannot, the import
    says why. By the loader's own function: Python's keeps other threads waiting. The process does not end before it."""
    if "torch" in sys.modules or sys.platform != "linux":
        return
    for name in EXTENSIONS:
        with suppress(ImportError):
            load(name)
    with suppress(ImportError, OSError, AttributeError, ValueError):
        found = importlib.util.find_spec("torch")
        for folder in (found and found.submodule_search_locations) or ():
            if (library := Path(folder) / LIBRARY).is_file():
                threading.Thread(target=ctypes.CDLL(None).dlopen, args=(bytes(library), NOW)).start()


if TYPE_CHECKING:
    import sympy
    import torch
else:
    sympy, torch = Lazy("sympy"), Lazy("torch")

__all__ = ["Lazy", "ahead", "load", "sympy", "torch"]
