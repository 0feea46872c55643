"""The binding file: TOML checked against the model, every key with its line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.data.bind import errors
from fccomodel.data.bind._lines import key_lines
from fccomodel.data.bind._spec import ArraySpec, Entry, Spec, TableSpec, bounded, by_name, is_one_of
from fccomodel.data.bind.collect import Errors
from fccomodel.data.sources import find_file
from fccomodel.data.sources.errors import first_line

ENTRY_KEYS = ("column", "columns", "map", "encode", "scale", "intercept", "min_rows", "except")
TABLE_KEYS = ("source", "where", "missing", "family", "separator", "na", "files")
ARRAY_KEYS = ("source", "values", "column", "columns", "index", "separator", "na", "files")
#: Bytes of the longest binding file, and parts of its longest key.
LONGEST_BINDING = 1 << 26
MOST_PARTS = 50
#: Keys of a section that say how its source is read.
OPTIONS = ("separator", "na", "files")
#: Numbers that no value of the data is mapped to, with NaN.
NOT_FINITE = (float("inf"), float("-inf"))
SECTIONS = ("params", "nets", "sets", "dims")


def read(
    problem: ir.Problem,
    spec: Mapping[str, Any] | str | Path | None,
    folders: tuple[Path, ...],
    collected: Errors,
) -> Spec:
    """Read and check a binding: a TOML file's path, or the same as nested mappings."""
    if spec is None:
        return Spec()
    if not isinstance(spec, str | Path):
        return _Reader(problem, collected, {}).read(_bounded(by_name(spec, "a binding"), "the binding"), None)
    path = find_file(spec, folders)
    if (size := path.stat().st_size) > LONGEST_BINDING:
        refuse(errors.binding_file.too_long(path.name, size, LONGEST_BINDING))
    try:
        text = path.read_text(encoding="utf-8-sig")
        if _longest_key(text) > MOST_PARTS:
            refuse(errors.binding_file.nested_too_deeply(path.name))
        content = tomllib.loads(text)
    except (UnicodeDecodeError, OSError) as error:
        refuse(errors.binding_file.unreadable(path.name, error))
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        location = re.search(r"\(at (?:line (\d+), column (\d+)|end of document)\)", message)
        if location and location[1]:
            place = f"{path.name}:{location[1]}:{location[2]}"
        else:
            place = f"{path.name}, at its end"
        if location:
            reason = message[: location.start()].strip()
        else:
            reason = message
        refuse(errors.binding_file.not_toml(place, reason))
    except RecursionError:
        refuse(errors.binding_file.nested_too_deeply(path.name))
    except ValueError as error:  # a number of more digits than Python reads
        refuse(errors.binding_file.not_toml(path.name, first_line(error)))
    places = {key: f"{path.name}:{line}" for key, line in key_lines(text).items()}
    return _Reader(problem, collected, places).read(_bounded(content, path.name), path.parent)


def _bounded(content: dict[str, Any], name: str) -> dict[str, Any]:
    """The binding with numbers that a float holds; F0501 where it is nested too deeply."""
    try:
        return bounded(content)
    except RecursionError:
        refuse(errors.binding_file.nested_too_deeply(name))


def _longest_key(text: str) -> int:
    """The parts of the longest key such as ``a.b.c``: the time and the memory of reading it grow with
    their square. A text with many points, where a key is expected, counts as one."""
    pieces = (
        piece for line in text.splitlines() if line.count(".") > MOST_PARTS for piece in line.split("=")
    )
    keys = (piece.rpartition("{")[2].rpartition(",")[2] for piece in pieces)
    return max((key.count(".") for key in keys), default=0)


class _Reader:
    """One pass over a binding's content."""

    def __init__(self, problem: ir.Problem, collected: Errors, places: Mapping[tuple[str, ...], str]):
        self.problem, self.errors, self.places = problem, collected, places

    def place(self, *path: str) -> str:
        """Where a path of keys stands in the file."""
        return Spec(places=self.places).place(*path)

    def read(self, content: Mapping[str, Any], folder: Path | None) -> Spec:
        """Every section by its kind."""
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
        for section, names in (
            ("params", problem.params),
            ("nets", problem.nets),
            ("sets", problem.sets),
            ("dims", problem.dims),
        ):
            declared = {}
            for name, value in sections[section].items():
                if name in names:
                    declared[name] = value
                    continue
                self.errors.add(
                    errors.binding_file.undeclared(section, name, names), place=self.place(section, name)
                )
            sections[section] = declared
        return Spec(
            tables=tables,
            arrays=arrays,
            params=sections["params"],
            nets=sections["nets"],
            sets={
                name: labels
                for name, value in sections["sets"].items()
                if (labels := self.labels(name, value)) is not None
            },
            dims={name: value for name, value in sections["dims"].items() if self.size(name, value)},
            folder=folder,
            places=self.places,
        )

    def unknown_section(self, name: str, value: Any) -> None:
        """Add the error of a section that the model does not have."""
        if name in SECTIONS or name in self.problem.tables:
            self.errors.add(
                errors.binding_file.not_a_section(name, table=name not in SECTIONS), place=self.place(name)
            )
            return
        data = [*self.problem.tables, *self.problem.arrays]
        self.errors.add(
            errors.binding_file.unknown_section(name, value, SECTIONS, data), place=self.place(name)
        )

    def labels(self, name: str, value: Any) -> tuple[str, ...] | None:
        """``[sets]  G = ["a", "b"]``."""
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
        """``[D]``, or one member ``[D.member]`` of a family, which has its own source and filter alone."""
        member = len(path) > 1
        entries: dict[str, Entry] = {}
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
                members[key] = self.table(
                    table, {"source": value} if isinstance(value, str) else value, (*path, key)
                )
            else:
                allowed = [
                    *fields,
                    *(key for key in TABLE_KEYS if key != "family" or table.family is not None),
                ]
                self.errors.add(
                    errors.binding_file.unknown_key(".".join(path), key, fields, TABLE_KEYS, allowed),
                    place=place,
                )
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

    def entry(self, name: str, value: Any, place: str) -> Entry:
        """``{ column = .. }``, ``{ columns = [..] }``, or a name, a list of names or ``"*"`` alone."""
        if isinstance(value, str | list | tuple):
            if value == "*" or not isinstance(value, str):
                value = {"columns": value}
            else:
                value = {"column": value}
        if not isinstance(value, Mapping):
            refuse(errors.binding_file.no_columns(name))
        value = by_name(value, name)
        for key in value:
            if key not in ENTRY_KEYS:
                self.errors.add(
                    errors.binding_file.unknown_setting(name, key, ENTRY_KEYS, "an entry's keys"), place=place
                )
        if ("column" in value) == ("columns" in value):
            refuse(errors.binding_file.column_and_columns(name, both="column" in value))
        columns = value.get("columns", value.get("column"))
        if "column" in value and not isinstance(columns, str):
            refuse(errors.binding_file.column(name))
        if "columns" in value and not is_one_of(columns, "*"):
            if isinstance(columns, str):
                columns = [columns]
            valid = (
                isinstance(columns, list | tuple)
                and columns
                and all(isinstance(item, str) for item in columns)
            )
            if not valid or len(set(columns)) < len(columns):
                refuse(errors.binding_file.columns(name))
        _entry_values(name, value)
        if is_one_of(columns, "*") and "columns" in value:
            named = columns
        elif isinstance(columns, str):
            named = (columns,)
        else:
            named = tuple(columns)
        return Entry(
            columns=named,
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
        """``[c]`` with ``values`` or ``source``, or the values themselves, or a path."""
        place = self.place(name)
        if not isinstance(value, Mapping):
            settings = {"source": value} if isinstance(value, str) else {"values": value}
            return ArraySpec(**settings, place=place, raw=value)
        if not set(value) & {"source", "values"}:
            return ArraySpec(values=value, place=place, raw=value)
        value = by_name(value, f"[{name}]")
        for key in value:
            if key not in ARRAY_KEYS:
                self.errors.add(
                    errors.binding_file.unknown_setting(f"[{name}]", key, ARRAY_KEYS, "an array's settings"),
                    place=self.place(name, key),
                )
        options: dict[str, Any] = {}
        for key in (key for key in OPTIONS if key in value):
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


def _entry_values(name: str, value: Mapping[str, Any]) -> None:
    """The types of an entry's settings; F0503."""
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
    if any(
        not isinstance(item, str | int | float) or item in NOT_FINITE or item != item
        for item in mapping.values()
    ):
        refuse(errors.binding_file.values_of_map(name))
    if "map" in value and "columns" in value:
        refuse(errors.binding_file.map_of_columns(name))
    skip = value.get("except", [])
    if not isinstance(skip, list | tuple) or not all(isinstance(item, str) for item in skip):
        refuse(errors.binding_file.excepted(name))
    if "except" in value and not is_one_of(value.get("columns"), "*"):
        refuse(errors.binding_file.except_of_some(name))


def _table_value(key: str, value: Any) -> Any:
    if key == "missing":
        if not is_one_of(value, "error", "drop"):
            refuse(errors.binding_file.missing(value))
    elif key == "na":
        if isinstance(value, str):
            value = [value]
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
            refuse(errors.binding_file.na())
    elif key == "files":
        if isinstance(value, str):
            value = [value]
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
            refuse(errors.binding_file.files())
    elif key == "separator":
        if not isinstance(value, str) or len(value) != 1:
            refuse(errors.binding_file.separator())
    elif key == "where" and not isinstance(value, str):
        refuse(errors.binding_file.where())
    elif key == "source" and not isinstance(value, str | Path):
        refuse(errors.binding_file.source())
    return value
