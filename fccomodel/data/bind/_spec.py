"""Records of a binding file: sources, columns and their encoding, with the line of every key."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fccomodel.core.diagnostics import refuse
from fccomodel.core.options import LONGEST_INTEGER
from fccomodel.data.bind import errors

#: Deepest level of dicts and lists in a binding: an array has at most 64 axes.
DEEPEST = 100


def by_name(given: Any, what: str) -> dict[str, Any]:
    """A mapping with its names as texts; empty for None.

    F0503 for a value that is no mapping, and for two names with one text.
    """
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
    """The value with infinity in place of integers beyond the range of floats.

    Python refuses to write the digits of such integers. Raises RecursionError if dicts and lists are
    nested deeper than ``depth``.
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
    """Whether a setting of any type is one of these texts."""
    return isinstance(value, str) and value in texts


@dataclass(frozen=True, kw_only=True)
class ColumnEntry:
    """The entry for one column of the model, which is made from columns of the data.

    columns    their names, or ``"*"`` for every numeric column that no other entry uses
    single     whether the entry was written as ``column = "name"``
    map        for each value in the data (as text), the value in the model
    encode     ``"onehot"`` or None
    scale      ``"standard"`` or None
    intercept  whether a column of ones is added at the end
    min_rows   groups with fewer rows are dropped
    skip       columns that ``"*"`` leaves out
    place      ``name.toml:4``, or empty without a file
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
    """The section of a table.

    source       the data
    where        a condition on rows
    missing      ``"error"`` or ``"drop"``, for rows with missing values
    options      settings for reading the source
    entries      the entries of its columns
    family       the entry of the column with the family's members
    members      the sections of the members, if each has its own source
    place        ``name.toml:4``, or empty without a file
    where_place  the same for the condition
    raw          the section as JSON-like values, with which an answer can be evaluated on other rows
    """

    source: Any = None
    where: str | None = None
    missing: str = "error"
    options: Mapping[str, Any] = field(default_factory=dict)
    entries: Mapping[str, ColumnEntry] = field(default_factory=dict)
    family: ColumnEntry | None = None
    members: Mapping[str, TableSpec] = field(default_factory=dict)
    place: str = ""
    where_place: str = ""
    raw: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ArraySpec:
    """The section of an array: ``values`` in the file itself, or a ``source``.

    columns   the columns of the source with the values
    index     the column with the labels
    options   settings for reading the source
    place     ``name.toml:4``, or empty without a file
    raw       the section as JSON-like values
    """

    source: Any = None
    values: Any = None
    columns: tuple[str, ...] = ()
    index: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    place: str = ""
    raw: Any = None


@dataclass(frozen=True, kw_only=True)
class Spec:
    """A whole binding file.

    tables, arrays, params, nets, sets, dims   the sections, by name
    folder   the folder that relative paths start from; None without a file
    places   the line of every section and key
    """

    tables: Mapping[str, TableSpec] = field(default_factory=dict)
    arrays: Mapping[str, ArraySpec] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    nets: Mapping[str, Any] = field(default_factory=dict)
    sets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    dims: Mapping[str, int] = field(default_factory=dict)
    folder: Path | None = None
    places: Mapping[tuple[str, ...], str] = field(default_factory=dict)

    def place(self, *path: str) -> str:
        """``name.toml:4`` for a key, or for the nearest section around it; empty if neither has a line."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, "")
