"""A user's text inside another text: as a Python literal, a comment, a docstring or a name, and on a
terminal.

Names, comments, labels, paths and numbers of a model enter a program through here alone, so none of
them can run.
"""

from __future__ import annotations

import keyword
import math
import unicodedata
from types import SimpleNamespace
from typing import Any

#: attributes of ``data`` that are no data of the model
ATTRIBUTES = {"device", "dtype", "waiting", "__debug__", *dir(SimpleNamespace), *keyword.kwlist}


def visible(text: str, kept: str = "") -> str:
    """The text with what cannot be seen as escape codes, as ``\\x1b``: controls, ends of lines, marks
    that turn the direction of writing, halves of surrogate pairs; the characters of ``kept`` stay
    as they are."""
    if text.isprintable():
        return text
    return "".join(
        c if c in kept or c.isprintable() or unicodedata.category(c) == "Zs" else repr(c)[1:-1] for c in text
    )


def shorten(text: str, width: int = 72) -> str:
    """The text, cut where it is longer than ``width``."""
    if len(text) <= width:
        return text
    return text[: width - 3] + "..."


def literal(value: Any) -> str:
    """A value as a Python literal: numbers, strings, None, and tuples and dictionaries of them."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    return repr(value)


def comment(text: str, width: int = 72) -> str:
    """What may stand after ``#``: one line, cut where it is longer than ``width``."""
    return visible(shorten(text, width))


def docstring(text: str) -> str:
    """What may stand between triple double quotes."""
    text = visible(text, "\n\t").replace("\\", "\\\\").replace('"""', "'''")
    if text.endswith('"'):
        return text[:-1] + '\\"'
    return text


def attribute(name: str) -> str:
    """The attribute of ``data`` that holds a parameter or an array; ``net_`` is for nets' initial
    parameters."""
    if name in ATTRIBUTES or name.startswith(("net_", "model__")):
        return f"model__{name}"
    return name
