"""The command ``fccomodel``: one file per command, each with its arguments and what it does.

Exit status: 0 done; 1 ``format --check`` found a file that is not in the canonical layout; 2 something is wrong with what was
given (each finding with its code, on standard error); 130 interrupted twice.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from fccomodel.core import garbage, late, lazy

if TYPE_CHECKING:
    from fccomodel.app.cli._main import COMMANDS, DEBUG, main, parser

__all__ = ["COMMANDS", "DEBUG", "command", "main", "parser"]

#: Arguments of commands that need torch.
DATA = ("--bind", "--data")


def command() -> int:
    """:func:`main` as the whole of a process. Where data are given, torch is on its way while all else is imported."""
    with garbage.ours():
        late.install()
        if any(word.partition("=")[0] in DATA for word in sys.argv[1:]):
            lazy.ahead()
        return lazy.load(f"{__name__}._main").main()


def __getattr__(name: str) -> Any:
    """The rest, imported when first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}._main"), name)
