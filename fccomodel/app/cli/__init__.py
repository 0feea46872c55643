"""The command ``fccomodel``: one file per command, with its arguments and its function.

Exit status: 0 done; 1 ``format --check`` found a file that is not in the canonical layout; 2
something is wrong with what was given (each finding with its code, on standard error); 130
interrupted twice.
"""

from __future__ import annotations

import gc
import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fccomodel.app.cli._main import COMMANDS, DEBUG, main, parser

__all__ = ["COMMANDS", "DEBUG", "command", "main", "parser"]

#: New objects after which Python looks for cycles in a command; its own figure, some hundreds,
#: costs a third of the imports.
NEW_OBJECTS = 100_000
#: Packages that list, on the terminal, the objects of theirs that are left when the process ends.
LOUD = {"duckdb"}


def command() -> int:
    """:func:`main` as the whole of a process. Its objects end with it: Python need not look through
    them first."""
    gc.set_threshold(NEW_OBJECTS)
    try:
        return importlib.import_module(f"{__name__}._main").main()
    finally:
        if not LOUD & sys.modules.keys():
            gc.freeze()


def __getattr__(name: str) -> Any:
    """The rest, imported when first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}._main"), name)
