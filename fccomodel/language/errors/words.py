"""Parts of messages: pieces of the user's text, lists of names, counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fccomodel.core.source import Span


@dataclass(frozen=True, kw_only=True)
class Quote:
    """A piece of the user's text; in a message it stands between backticks.

    text  as written, on one line, shortened where it is long
    span  its place
    line  the number of its line, with the name of another file than the model's own
    what  what it is, ``a vector [d]``, where that is known
    """

    text: str
    span: Span
    line: str
    what: str = ""

    def __str__(self) -> str:
        return f"`{self.text}`"


def listed(names: Iterable[str], *, last: str = "and", limit: int = 8) -> str:
    """``a, b and c``; a long list is cut."""
    names = [f"`{n}`" for n in names]
    if len(names) > limit:
        names = [*names[: limit - 1], f"{len(names) - limit + 1} more"]
    if len(names) == 1:
        return names[0]
    if names:
        return f"{', '.join(names[:-1])} {last} {names[-1]}"
    return "none"


def counted(number: int, one: str, many: str = "") -> str:
    """``1 index``, ``2 indices``."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def are(number: int) -> str:
    """The verb that goes with a number of things."""
    if number == 1:
        return "is"
    return "are"


def short(text: str) -> str:
    """A long word with its end cut off."""
    if len(text) <= 30:
        return text
    return text[:29] + "…"
