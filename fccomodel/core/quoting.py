"""A user's text inside other text: a Python literal, a comment, a docstring, a name, a terminal.

Names, comments, labels, paths and numbers of a model enter a program only through these functions, so
none of them can run.
"""

from __future__ import annotations

import keyword
import math
import unicodedata
from types import SimpleNamespace
from typing import Any

#: Names that ``data`` has for other purposes, or that cannot be attributes.
ATTRIBUTES = {"device", "dtype", "waiting", "__debug__", *dir(SimpleNamespace), *keyword.kwlist}


def visible(text: str, kept: str = "") -> str:
    """The text with invisible characters as escapes such as ``\\x1b``; those of ``kept`` stay.

    Invisible are controls, ends of lines, marks that turn the direction of writing, and halves of
    surrogate pairs.
    """
    if text.isprintable():
        return text
    return "".join(c if c in kept or _can_be_seen(c) else repr(c)[1:-1] for c in text)


def _can_be_seen(character: str) -> bool:
    """Whether a character is printable, or a space."""
    return character.isprintable() or unicodedata.category(character) == "Zs"


def shorten(text: str, width: int = 72) -> str:
    """The text, cut if it is longer than ``width`` characters."""
    if len(text) <= width:
        return text
    return text[: width - 3] + "..."


def literal(value: Any) -> str:
    """A value as a Python literal: numbers, strings, None, and tuples and dictionaries of them."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    return repr(value)


def comment(text: str, width: int = 72) -> str:
    """A text fit to stand after ``#``: one line, cut if it is longer than ``width``."""
    return visible(shorten(text, width))


def docstring(text: str) -> str:
    """A text fit to stand between triple double quotes."""
    text = visible(text, "\n\t").replace("\\", "\\\\").replace('"""', "'''")
    if text.endswith('"'):
        return text[:-1] + '\\"'
    return text


def attribute(name: str) -> str:
    """The attribute of ``data`` that holds a parameter or an array.

    ``net_`` is reserved for initial parameters of networks.
    """
    if name in ATTRIBUTES or name.startswith(("net_", "model__")):
        return f"model__{name}"
    return name
