"""Texts of names, values and columns of the data, for messages; long texts are cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from fccomodel.core import ir
from fccomodel.data.sources import RawTable

#: Names of a list that are shown.
SHOWN = 8
#: Columns of a source that are shown.
SHOWN_COLUMNS = 20
#: What is said of a text in new rows that has no indicator.
UNSEEN = "that was not there when the answer was found"


def listed(names: Sequence[str]) -> str:
    """``a, b, c``, and how many more."""
    text = ", ".join(names[:SHOWN])
    if len(names) > SHOWN:
        text += f" and {len(names) - SHOWN} more"
    return text


def texts(values: Sequence[str]) -> str:
    """``'a', 'b'``, and how many more."""
    return listed([repr(value) for value in values])


def cut(names: Sequence[str], most: int) -> str:
    """``a, b, ...``: the first ``most`` names, with dots if there are more."""
    text = ", ".join(names[:most])
    if len(names) > most:
        text += ", ..."
    return text


def shortened(text: str) -> str:
    """A text, cut to the length of a line."""
    if len(text) <= 80:
        return text
    return text[:77] + "..."


def value(given: Any) -> str:
    """A value that a user gave, as a text of one line; its type if the value is too long or too deep."""
    try:
        text = " ".join(repr(given).split())
    except (ValueError, RecursionError):
        return f"a {type(given).__name__}"
    if len(text) <= 60:
        return text
    return f"{text[:57]}..."


def bounds(kind: ir.ColumnType) -> str:
    """The declared bounds of numbers: ``at least 0``, ``in [0, 1]``."""
    if kind.lower > -inf and kind.upper < inf:
        return f"in [{kind.lower:g}, {kind.upper:g}]"
    if kind.lower > -inf:
        return f"{'above' if kind.strict_lower else 'at least'} {kind.lower:g}"
    return f"{'below' if kind.strict_upper else 'at most'} {kind.upper:g}"


def columns_of(raw: RawTable) -> str:
    """A source's columns."""
    names = ", ".join(raw.names[:SHOWN_COLUMNS])
    if len(raw.names) > SHOWN_COLUMNS:
        names += f" and {len(raw.names) - SHOWN_COLUMNS} more"
    are_data = bool(raw.names) and all(_is_number(column) for column in raw.names)
    if not are_data:
        return f"its columns are {names}"
    hint = "they look like a row of data, and a csv file begins with a line of names"
    return f"its columns are {names}; {hint}"


def _is_number(text: str) -> bool:
    """Whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def map_entry(what: str, column: str, pairs: Sequence[tuple[str, str]]) -> str:
    """The entry to write for a column whose values stand for others."""
    return entry(what, column=f'"{column}"', map={f'"{text}"': value for text, value in pairs})


def entry(what: str, before: str = "", **keys: str | Mapping[str, str]) -> str:
    """The entry to write for a column, in a binding file and in Python; ``before`` is what its section
    in the file says besides. Texts come with their quotes."""
    table, _, name = what.partition(".")
    in_python = f'{{"{table}": {{"{name}": {_python(keys)}}}}}'
    return (
        f"write in a binding file: [{table}]  {before}{name} = {_toml(keys)}; or in Python bind(..., "
        f"spec={in_python})"
    )


def _toml(written: str | Mapping[str, Any]) -> str:
    """A value as a binding file has it: a text as it is, or an inline table."""
    if isinstance(written, str):
        return written
    pairs = [f"{key} = {_toml(value)}" for key, value in written.items()]
    return f"{{ {', '.join(pairs)} }}"


def _python(written: str | Mapping[str, Any]) -> str:
    """A value as Python has it: a text as it is, or a dict with keys in quotes."""
    if isinstance(written, str):
        return written
    pairs = []
    for key, value in written.items():
        quoted = key if key.startswith('"') else f'"{key}"'
        pairs.append(f"{quoted}: {_python(value)}")
    return f"{{{', '.join(pairs)}}}"
