"""What a binding file says: sources, columns and their encoding, with the place of every key."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fccomodel.core.diagnostics import refuse
from fccomodel.core.options import LONGEST_INTEGER
from fccomodel.data.bind import errors

#: Levels of dicts and lists of a binding: an array has at most 64 axes.
DEEPEST = 100


def by_name(given: Any, what: str) -> dict[str, Any]:
    """A mapping with names that are texts; None is empty. F0503 for what is no mapping, and for two
    names that read the same."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        refuse(errors.binding_file.not_a_mapping(what, given))
    named = {str(name): value for name, value in given.items()}
    if len(named) < len(given):
        texts = [str(name) for name in given]
        refuse(errors.binding_file.named_twice(what, next(text for text in texts if texts.count(text) > 1)))
    return named


def bounded(value: Any, depth: int = DEEPEST) -> Any:
    """The same value with infinity in place of integers that no float holds, whose digits Python
    refuses to write.

    Raises RecursionError where dicts and lists are nested deeper than ``depth``.
    """
    if isinstance(value, int) and value.bit_length() > LONGEST_INTEGER:
        return math.copysign(math.inf, 1 if value > 0 else -1)
    if type(value) not in (dict, list, tuple):
        return value
    if depth == 0:
        raise RecursionError
    if isinstance(value, dict):
        return {name: bounded(item, depth - 1) for name, item in value.items()}
    return type(value)(bounded(item, depth - 1) for item in value)


def is_one_of(value: Any, *texts: str) -> bool:
    """Whether a setting is one of some texts, whatever it is."""
    return isinstance(value, str) and value in texts


@dataclass(frozen=True, kw_only=True)
class Entry:
    """How one column of the model is made from the columns of the data.

    columns   their names, or ``"*"`` for every numeric column that no other entry uses, less those
              in ``skip``
    single    whether it was written as ``column = "name"``
    map       value (as text) -> value in the model
    min_rows  smaller groups are dropped
    encode    "onehot" or None
    scale     "standard" or None          intercept  a last column of ones
    place     ``name.toml:4``, or "" where no file says it
    """

    columns: tuple[str, ...] | str
    single: bool = False
    map: Mapping[str, Any] | None = None
    encode: str | None = None
    scale: str | None = None
    intercept: bool = False
    min_rows: int = 0
    skip: tuple[str, ...] = ()
    place: str = ""


@dataclass(frozen=True, kw_only=True)
class TableSpec:
    """A table's section; ``raw`` is its text as JSON-like values, kept so that an answer can be
    evaluated on other rows."""

    source: Any = None
    where: str | None = None
    missing: str = "error"
    options: Mapping[str, Any] = field(default_factory=dict)
    entries: Mapping[str, Entry] = field(default_factory=dict)
    family: Entry | None = None
    members: Mapping[str, TableSpec] = field(default_factory=dict)
    place: str = ""
    where_place: str = ""
    raw: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ArraySpec:
    """An array's section: ``values`` in the file itself, or a ``source`` with the columns to take and
    the one with labels."""

    source: Any = None
    values: Any = None
    columns: tuple[str, ...] = ()
    index: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    place: str = ""
    raw: Any = None


@dataclass(frozen=True, kw_only=True)
class Spec:
    """A whole binding file; ``folder`` is where its relative paths start, ``places`` the line of every
    section and key."""

    tables: Mapping[str, TableSpec] = field(default_factory=dict)
    arrays: Mapping[str, ArraySpec] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    nets: Mapping[str, Any] = field(default_factory=dict)
    sets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    dims: Mapping[str, int] = field(default_factory=dict)
    folder: Path | None = None
    places: Mapping[tuple[str, ...], str] = field(default_factory=dict)

    def place(self, *path: str) -> str:
        """``name.toml:4`` of a key, of the nearest section around it, or ""."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, "")
