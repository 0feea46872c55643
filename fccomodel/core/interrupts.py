"""Ctrl-C while the command is still being imported: one line and exit status 130, no traceback."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

#: Exit status of a command that was interrupted.
INTERRUPTED = 130
#: Names of the script of the command ``fccomodel``.
COMMANDS = ("fccomodel", "fccomodel.exe", "fccomodel-script.py")
#: Python's arguments that run the command as a module.
AS_MODULE = ["-m", "fccomodel"]


def is_command() -> bool:
    """Whether this process is the command ``fccomodel``, not a program that imports the package."""
    if sys.argv:
        script = sys.argv[0]
    else:
        script = ""
    return os.path.basename(script) in COMMANDS or sys.orig_argv[1:3] == AS_MODULE


def end_at_once() -> None:
    """Let Ctrl-C end the process instead of raising KeyboardInterrupt."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def raise_again() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, b"fccomodel: interrupted\n")
    os._exit(INTERRUPTED)
