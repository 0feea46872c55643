"""What a command is."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

#: exit statuses
DONE, DIFFERS, BAD_INPUT = 0, 1, 2


@dataclass(frozen=True, kw_only=True)
class Command:
    """One command of the command line.

    name       as it is typed             summary  one line of the list of commands
    arguments  adds what it takes to its parser
    run        does it, and returns the exit status
    detail     what its own help adds to the summary
    examples   commands that its own help shows
    ranks      in processes that torchrun starts, all do it ``together``, the first does it
               ``alone``, or it is ``refused``
    """

    name: str
    summary: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    detail: str = ""
    examples: tuple[str, ...] = ()
    ranks: Literal["together", "alone", "refused"] = "alone"
