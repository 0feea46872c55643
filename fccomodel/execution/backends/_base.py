"""What a backend is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


class Unfit(Exception):
    """Why a backend cannot run the steps of a program."""


@contextmanager
def attempting() -> Iterator[None]:
    """Whatever cannot be traced, captured or compiled is ``Unfit``, with torch's or the compiler's
    first line."""
    try:
        yield
    except Unfit:
        raise
    except Exception as error:
        raise Unfit(f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}") from None


def anywhere(device: str) -> str:
    """Nothing is missing."""
    return ""


@dataclass(frozen=True, kw_only=True)
class Backend:
    """A way to run the steps of a program.

    meaning    in one line
    leap       ``leap(several)``: what takes several steps in one call, in the place of the loop's
               ``one_step``, and a sentence on
               it; raises ``Unfit``
    missing    ``missing(device)``: what it lacks there, "" where it can run
    share      of the calls of an eager step, what it saves
    start      counted seconds before its first step, where nothing is kept from another run
    """

    name: str
    meaning: str
    leap: Callable[[Any], tuple[Any, str]]
    missing: Callable[[str], str] = anywhere
    share: float = 0.0
    start: float = 0.0
