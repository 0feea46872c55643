"""The record of a command."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

#: The exit status of success.
DONE = 0
#: The exit status if a file differs from its canonical layout.
DIFFERS = 1
#: The exit status of an error.
BAD_INPUT = 2


@dataclass(frozen=True, kw_only=True)
class Command:
    """One command of the command line.

    name       as it is typed
    summary    one line of the list of commands
    arguments  adds its arguments to its parser
    run        runs it, and returns the exit status
    detail     text that its own help adds to the summary
    examples   commands that its own help shows
    ranks      in processes that torchrun starts: all run it ``together``, the first runs it
               ``alone``, or it is ``refused``
    """

    name: str
    summary: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    detail: str = ""
    examples: tuple[str, ...] = ()
    ranks: Literal["together", "alone", "refused"] = "alone"
