"""The record of a caution, and functions that the files of this package share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from fccomodel.core.options import Unused
from fccomodel.data.bound import Bound, BoundTable, mapped

#: Names that a sentence lists; the others are counted.
LISTED = 4
#: Numbers up to which a column is looked at as a whole; evenly spaced rows of larger columns.
LOOKED = 20_000_000


class Warned(NamedTuple):
    """A sentence for the reader, and the name of its caution."""

    name: str
    message: str

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, kw_only=True)
class Subject:
    """The problem and the options that cautions look at.

    bound   the problem with its data
    unused  options of the user's own defaults that do not apply
    named   given options that have the name of a param of the model, with their values
    """

    bound: Bound
    unused: Sequence[Unused] = ()
    named: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Caution:
    """Something that may have gone wrong silently.

    name  identifier
    find  gives the sentences about a subject; none if all is well
    rank  cautions of a lower rank come first
    """

    name: str
    find: Callable[[Subject], Iterable[str]]
    rank: int = 1


class Feature(NamedTuple):
    """One number of each row: a scalar column, or an entry of a vector column."""

    table: str
    name: str
    values: np.ndarray


def vectors(bound: Bound) -> Iterator[tuple[BoundTable, str, np.ndarray, list[str]]]:
    """Each column of vectors in memory: its table, its name, its values, (rows, entries), and the names
    of the entries."""
    for table in bound.tables.values():
        for name, values in table.columns.items():
            if values.ndim != 2 or mapped(values) or values.dtype.kind != "f" or not values.size:
                continue
            step = max(1, values.size // LOOKED)
            yield table, name, values[::step], names(table, name, values.shape[1])


def names(table: BoundTable, column: str, count: int) -> list[str]:
    """The names of the entries of a vector column in the source, or their positions."""
    encoding = table.encoding.get(column) or {}
    known = encoding.get("names") or encoding.get("columns") or encoding.get("numbers") or ()
    if len(known) == count:
        return list(map(str, known))
    return [f"{column}[{k + 1}]" for k in range(count)]


def listed(things: Sequence[str]) -> str:
    """The first few names in backticks, and how many more there are."""
    few = ", ".join(f"`{thing}`" for thing in things[:LISTED])
    if len(things) <= LISTED:
        return few
    return f"{few} and {len(things) - LISTED} more"


def counted(count: int, noun: str) -> str:
    """``1 row``, ``2,000 rows``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
