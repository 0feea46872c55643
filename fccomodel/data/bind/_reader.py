"""Reading of binding files: TOML that is checked against the model; errors have the line of a key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.data.bind import errors
from fccomodel.data.bind._lines import key_lines
from fccomodel.data.bind._spec import ArraySpec, ColumnEntry, Spec, TableSpec, bounded, by_name, is_one_of
from fccomodel.data.bind.collect import Errors
from fccomodel.data.sources import find_file
from fccomodel.data.sources.errors import first_line

ENTRY_KEYS = ("column", "columns", "map", "encode", "scale", "intercept", "min_rows", "except")
TABLE_KEYS = ("source", "where", "missing", "family", "separator", "na", "files")
ARRAY_KEYS = ("source", "values", "column", "columns", "index", "separator", "na", "files")
#: Largest size of a binding file, in bytes.
LONGEST_BINDING = 1 << 26
#: Largest number of parts of a key such as ``a.b.c``.
MOST_PARTS = 50
#: Keys of a section with settings for reading its source.
OPTIONS = ("separator", "na", "files")
#: Numbers that a map must not have as values (NaN is refused too).
NOT_FINITE = (float("inf"), float("-inf"))
SECTIONS = ("params", "nets", "sets", "dims")


def read(
    problem: ir.Problem,
    spec: Mapping[str, Any] | str | Path | None,
    folders: tuple[Path, ...],
    collected: Errors,
) -> Spec:
    """Read and check a binding: the path of a TOML file, or its content as nested mappings."""
    if spec is None:
        return Spec()
    if not isinstance(spec, str | Path):
        content = _bounded(by_name(spec, "a binding"), "the binding")
        return _Reader(problem, collected, {}).read(content, None)
    path = find_file(spec, folders)
    text, content = _read_toml(path)
    places = {key: f"{path.name}:{line}" for key, line in key_lines(text).items()}
    return _Reader(problem, collected, places).read(_bounded(content, path.name), path.parent)


def _read_toml(path: Path) -> tuple[str, dict[str, Any]]:
    """The text of a binding file, and its content; F0501 and others if it cannot be read."""
    size = path.stat().st_size
    if size > LONGEST_BINDING:
        refuse(errors.binding_file.too_long(path.name, size, LONGEST_BINDING))
    try:
        text = path.read_text(encoding="utf-8-sig")
        if _longest_key(text) > MOST_PARTS:
            refuse(errors.binding_file.nested_too_deeply(path.name))
        return text, tomllib.loads(text)
    except (UnicodeDecodeError, OSError) as error:
        refuse(errors.binding_file.unreadable(path.name, error))
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        location = re.search(r"\(at (?:line (\d+), column (\d+)|end of document)\)", message)
        place = f"{path.name}, at its end"
        if location and location[1]:
            place = f"{path.name}:{location[1]}:{location[2]}"
        if location:
            message = message[: location.start()].strip()
        refuse(errors.binding_file.not_toml(place, message))
    except RecursionError:
        refuse(errors.binding_file.nested_too_deeply(path.name))
    except ValueError as error:  # a number of more digits than Python reads
        refuse(errors.binding_file.not_toml(path.name, first_line(error)))


def _bounded(content: dict[str, Any], name: str) -> dict[str, Any]:
    """The binding with infinity in place of integers beyond floats; F0501 if it is nested too deeply."""
    try:
        return bounded(content)
    except RecursionError:
        refuse(errors.binding_file.nested_too_deeply(name))


def _longest_key(text: str) -> int:
    """The number of dots in the longest key such as ``a.b.c``, or in a text that may be a key.

    The time and the memory for reading a key grow with the square of this number. Lines with few dots
    are skipped.
    """
    longest = 0
    for line in text.splitlines():
        if line.count(".") > MOST_PARTS:
            for piece in line.split("="):
                key = piece.rpartition("{")[2].rpartition(",")[2]
                longest = max(longest, key.count("."))
    return longest


class _Reader:
    """One pass over a binding's content."""

    def __init__(self, problem: ir.Problem, collected: Errors, places: Mapping[tuple[str, ...], str]):
        self.problem, self.errors, self.places = problem, collected, places

    def place(self, *path: str) -> str:
        """The line of a path of keys in the file."""
        return Spec(places=self.places).place(*path)

    def read(self, content: Mapping[str, Any], folder: Path | None) -> Spec:
        """Every section as a record."""
        problem = self.problem
        tables, arrays = {}, {}
        sections: dict[str, dict[str, Any]] = {name: {} for name in SECTIONS}
        for name, value in content.items():
            if name in problem.tables and isinstance(value, Mapping):
                tables[name] = self.table(problem.tables[name], value, (name,))
            elif name in problem.tables and isinstance(value, str):
                tables[name] = TableSpec(source=value, place=self.place(name), raw={"source": value})
            elif name in problem.arrays:
                arrays[name] = self.array(value, name)
            elif name in SECTIONS and isinstance(value, Mapping):
                sections[name] = by_name(value, f"[{name}]")
            else:
                self.unknown_section(name, value)
        params = self.declared("params", sections["params"], problem.params)
        nets = self.declared("nets", sections["nets"], problem.nets)
        given_sets = self.declared("sets", sections["sets"], problem.sets)
        given_dims = self.declared("dims", sections["dims"], problem.dims)
        sets = {}
        for name, value in given_sets.items():
            labels = self.labels(name, value)
            if labels is not None:
                sets[name] = labels
        return Spec(
            tables=tables,
            arrays=arrays,
            params=params,
            nets=nets,
            sets=sets,
            dims={name: value for name, value in given_dims.items() if self.size(name, value)},
            folder=folder,
            places=self.places,
        )

    def declared(self, section: str, values: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
        """The values of a section for names that the model declares; adds an error for each other name."""
        known = {}
        for name, value in values.items():
            if name in names:
                known[name] = value
            else:
                error = errors.binding_file.undeclared(section, name, names)
                self.errors.add(error, place=self.place(section, name))
        return known

    def unknown_section(self, name: str, value: Any) -> None:
        """Add the error of a section that the model does not have."""
        if name in SECTIONS or name in self.problem.tables:
            error = errors.binding_file.not_a_section(name, table=name not in SECTIONS)
        else:
            data = [*self.problem.tables, *self.problem.arrays]
            error = errors.binding_file.unknown_section(name, value, SECTIONS, data)
        self.errors.add(error, place=self.place(name))

    def labels(self, name: str, value: Any) -> tuple[str, ...] | None:
        """The labels of a set, as in ``[sets]  G = ["a", "b"]``; None after an error."""
        if isinstance(value, list | tuple) and value and all(isinstance(item, str | int) for item in value):
            labels = tuple(str(item) for item in value)
            if len(set(labels)) == len(labels) and isinstance(self.problem.sets[name], ir.LabelSet):
                return labels
        self.errors.add(errors.binding_file.not_labels(name), place=self.place("sets", name))
        return None

    def size(self, name: str, value: Any) -> bool:
        """Whether a value is a size; adds an error if not."""
        valid = isinstance(value, int) and not isinstance(value, bool) and value > 0
        if not valid:
            self.errors.add(errors.binding_file.not_a_size(name), place=self.place("dims", name))
        return valid

    def table(self, table: ir.Table, content: Mapping[str, Any], path: tuple[str, ...]) -> TableSpec:
        """The section ``[D]`` of a table, or ``[D.member]`` of a family's member.

        A member has a source, a condition and settings for reading, but no columns of its own.
        """
        member = len(path) > 1
        entries: dict[str, ColumnEntry] = {}
        members: dict[str, TableSpec] = {}
        values: dict[str, Any] = {}
        fields = () if member else tuple(table.columns)
        for key, value in by_name(content, f"[{'.'.join(path)}]").items():
            place = self.place(*path, key)
            if key in fields and (key not in TABLE_KEYS or isinstance(value, Mapping)):
                with self.errors.collect(place=place):
                    entries[key] = self.entry(f"{table.name}.{key}", value, place)
            elif key == "family" and table.family is not None and not member:
                with self.errors.collect(place=place):
                    values[key] = self.entry(f"{table.name}.family", value, place)
            elif key in TABLE_KEYS and key != "family" and not isinstance(value, Mapping):
                with self.errors.collect(place=place):
                    values[key] = _table_value(key, value)
            elif table.family is not None and not member and isinstance(value, Mapping | str):
                section = {"source": value} if isinstance(value, str) else value
                members[key] = self.table(table, section, (*path, key))
            else:
                settings = [key for key in TABLE_KEYS if key != "family" or table.family is not None]
                allowed = [*fields, *settings]
                error = errors.binding_file.unknown_key(".".join(path), key, fields, TABLE_KEYS, allowed)
                self.errors.add(error, place=place)
        return TableSpec(
            source=values.get("source"),
            where=values.get("where"),
            missing=values.get("missing", "error"),
            options={key: values[key] for key in OPTIONS if key in values},
            entries=entries,
            family=values.get("family"),
            members=members,
            place=self.place(*path),
            where_place=self.place(*path, "where"),
            raw=dict(content),
        )

    def entry(self, name: str, value: Any, place: str) -> ColumnEntry:
        """The entry of a column: ``{ column = .. }``, ``{ columns = [..] }``, or the names alone.

        The names are one name, a list of names, or ``"*"``.
        """
        if isinstance(value, str) and value != "*":
            value = {"column": value}
        elif isinstance(value, str | list | tuple):
            value = {"columns": value}
        if not isinstance(value, Mapping):
            refuse(errors.binding_file.no_columns(name))
        value = by_name(value, name)
        for key in value:
            if key not in ENTRY_KEYS:
                error = errors.binding_file.unknown_setting(name, key, ENTRY_KEYS, "an entry's keys")
                self.errors.add(error, place=place)
        columns = _entry_columns(name, value)
        _entry_values(name, value)
        return ColumnEntry(
            columns=columns,
            single="column" in value,
            map=value.get("map"),
            encode=value.get("encode"),
            scale=value.get("scale"),
            intercept=value.get("intercept", False),
            min_rows=value.get("min_rows", 0),
            skip=tuple(value.get("except", ())),
            place=place,
        )

    def array(self, value: Any, name: str) -> ArraySpec:
        """The section of an array: with ``values`` or ``source``, or the values themselves, or a path."""
        place = self.place(name)
        if not isinstance(value, Mapping):
            settings = {"source": value} if isinstance(value, str) else {"values": value}
            return ArraySpec(**settings, place=place, raw=value)
        if not _holds_settings(value):
            return ArraySpec(values=value, place=place, raw=value)
        value = by_name(value, f"[{name}]")
        options: dict[str, Any] = {}
        for key in value:
            if key not in ARRAY_KEYS:
                error = errors.binding_file.unknown_setting(
                    f"[{name}]", key, ARRAY_KEYS, "an array's settings"
                )
                self.errors.add(error, place=self.place(name, key))
        for key in OPTIONS:
            if key in value:
                with self.errors.collect(place=self.place(name, key)):
                    options[key] = _table_value(key, value[key])
        columns = value.get("columns", value.get("column", ()))
        return ArraySpec(
            source=value.get("source"),
            values=value.get("values"),
            columns=(columns,) if isinstance(columns, str) else tuple(columns),
            index=value.get("index"),
            options=options,
            place=place,
            raw=dict(value),
        )


def _holds_settings(section: Mapping[Any, Any]) -> bool:
    """Whether the section of an array says how to read it, rather than list its values by label."""
    if set(section) & {"source", "values"}:
        return True
    texts = (item for value in section.values() for item in (value if isinstance(value, list) else [value]))
    return bool(section) and set(section) <= set(ARRAY_KEYS) and all(isinstance(item, str) for item in texts)


def _entry_columns(name: str, value: Mapping[str, Any]) -> tuple[str, ...] | str:
    """The names of an entry's columns, or ``"*"``; F0503 if they are not names."""
    if ("column" in value) == ("columns" in value):
        refuse(errors.binding_file.column_and_columns(name, both="column" in value))
    if "column" in value:
        column = value["column"]
        if not isinstance(column, str):
            refuse(errors.binding_file.column(name))
        return (column,)
    columns = value["columns"]
    if is_one_of(columns, "*"):
        return "*"
    if isinstance(columns, str):
        columns = [columns]
    if not isinstance(columns, list | tuple) or not columns:
        refuse(errors.binding_file.columns(name))
    if not all(isinstance(item, str) for item in columns) or len(set(columns)) < len(columns):
        refuse(errors.binding_file.columns(name))
    return tuple(columns)


def _entry_values(name: str, value: Mapping[str, Any]) -> None:
    """Check the types of an entry's settings; F0503."""
    if not is_one_of(value.get("encode", "onehot"), "onehot"):
        refuse(errors.binding_file.encode(name, value["encode"]))
    if not is_one_of(value.get("scale", "standard"), "standard"):
        refuse(errors.binding_file.scale(name, value["scale"]))
    if not isinstance(value.get("intercept", False), bool):
        refuse(errors.binding_file.intercept(name))
    min_rows = value.get("min_rows", 0)
    if not isinstance(min_rows, int) or isinstance(min_rows, bool) or min_rows < 0:
        refuse(errors.binding_file.min_rows(name))
    mapping = value.get("map", {})
    if "map" in value and (not isinstance(mapping, Mapping) or not mapping):
        refuse(errors.binding_file.empty_map(name))
    for item in mapping.values():
        if not isinstance(item, str | int | float) or item in NOT_FINITE or item != item:
            refuse(errors.binding_file.values_of_map(name))
    if "map" in value and "columns" in value:
        refuse(errors.binding_file.map_of_columns(name))
    skip = value.get("except", [])
    if not isinstance(skip, list | tuple) or not all(isinstance(item, str) for item in skip):
        refuse(errors.binding_file.excepted(name))
    if "except" in value and not is_one_of(value.get("columns"), "*"):
        refuse(errors.binding_file.except_of_some(name))


def _table_value(key: str, value: Any) -> Any:
    """A setting of a table or an array, after a check; a single text of a list becomes a list. F0503."""
    if key in ("na", "files"):
        if isinstance(value, str):
            value = [value]
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
            refuse(errors.binding_file.na() if key == "na" else errors.binding_file.files())
    elif key == "missing":
        if not is_one_of(value, "error", "drop"):
            refuse(errors.binding_file.missing(value))
    elif key == "separator":
        if not isinstance(value, str) or len(value) != 1:
            refuse(errors.binding_file.separator())
    elif key == "where" and not isinstance(value, str):
        refuse(errors.binding_file.where())
    elif key == "source" and not isinstance(value, str | Path):
        refuse(errors.binding_file.source())
    return value
