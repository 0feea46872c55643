"""The record of a backend."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


class Unfit(Exception):
    """A backend cannot run the steps of a program; the message says why."""


@contextmanager
def attempting() -> Iterator[None]:
    """Turn any error of tracing, capturing or compiling into ``Unfit``, with the first line of its text."""
    try:
        yield
    except Unfit:
        raise
    except Exception as error:
        raise Unfit(f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}") from None


def anywhere(device: str) -> str:
    """An empty text: nothing is missing on any device."""
    return ""


@dataclass(frozen=True, kw_only=True)
class Backend:
    """A way to run the steps of a program.

    meaning    in one line
    leap       ``leap(several)``: a function that takes several steps in one call, in place of the
               loop's ``one_step``, and a sentence on it; raises ``Unfit``
    missing    ``missing(device)``: what the device lacks, "" if the backend can run there
    share      the share of the calls of an eager step that it saves
    start      counted seconds before its first step, if nothing is kept from another run
    """

    name: str
    meaning: str
    leap: Callable[[Any], tuple[Any, str]]
    missing: Callable[[str], str] = anywhere
    share: float = 0.0
    start: float = 0.0
