"""The binding file: TOML checked against the model, every key with its line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fccomodel.core import ir
from fccomodel.core.diagnostics import did_you_mean
from fccomodel.data.bind._errors import Errors, refuse
from fccomodel.data.bind._lines import key_lines
from fccomodel.data.bind._spec import ArraySpec, Entry, Spec, TableSpec
from fccomodel.data.sources import find_file

ENTRY_KEYS = ("column", "columns", "map", "encode", "scale", "intercept", "min_rows", "except")
TABLE_KEYS = ("source", "where", "missing", "family", "separator", "na")
ARRAY_KEYS = ("source", "values", "column", "columns", "index", "separator", "na")
SECTIONS = ("params", "nets", "sets", "dims")


def read(problem: ir.Problem, spec: Mapping[str, Any] | str | Path | None, folders: tuple[Path, ...], errors: Errors) -> Spec:
    """Read and check a binding: a TOML file's path, or the same as nested mappings."""
    if spec is None:
        return Spec()
    if isinstance(spec, Mapping):
        return _Reader(problem, errors, {}).read(spec, None)
    path = find_file(spec, folders)
    try:
        text = path.read_text(encoding="utf-8-sig")
        content = tomllib.loads(text)
    except (UnicodeDecodeError, OSError) as error:
        refuse("F0501", f"{path.name} cannot be read: {_first_line(error)}", fix="write the binding file as UTF-8 text")
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        at = re.search(r"\(at (?:line (\d+), column (\d+)|end of document)\)", message)
        where = f"{path.name}:{at[1]}:{at[2]}" if at and at[1] else f"{path.name}, at its end"
        said = message[: at.start()].strip() if at else message
        refuse(
            "F0501", f"{where}: {said}", reason="the binding file is TOML", fix="text is in quotes; a section's name is in [ ]"
        )
    except RecursionError:
        refuse("F0501", f"{path.name} is nested too deeply", fix="a binding file has sections and inline tables, nothing deeper")
    places = {key: f"{path.name}:{line}" for key, line in key_lines(text).items()}
    return _Reader(problem, errors, places).read(content, path.parent)


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


class _Reader:
    """One pass over a binding's content."""

    def __init__(self, problem: ir.Problem, errors: Errors, places: Mapping[tuple[str, ...], str]):
        self.problem, self.errors, self.places = problem, errors, places

    def place(self, *path: str) -> str:
        return Spec(places=self.places).place(*path)

    def read(self, content: Mapping[str, Any], folder: Path | None) -> Spec:
        """Every section by its kind."""
        problem = self.problem
        tables, arrays = {}, {}
        extra: dict[str, Mapping[str, Any]] = {name: {} for name in SECTIONS}
        known = [*problem.tables, *problem.arrays, *SECTIONS]
        for name, value in content.items():
            if name in problem.tables and isinstance(value, Mapping):
                tables[name] = self.table(problem.tables[name], value, (name,))
            elif name in problem.tables and isinstance(value, str):
                tables[name] = TableSpec(source=value, place=self.place(name), raw={"source": value})
            elif name in problem.arrays:
                arrays[name] = self.array(value, name)
            elif name in SECTIONS and isinstance(value, Mapping):
                extra[name] = value
            else:
                self.unknown_section(name, value, known)
        for section, names in (
            ("params", problem.params),
            ("nets", problem.nets),
            ("sets", problem.sets),
            ("dims", problem.dims),
        ):
            kept = {}
            for name, value in extra[section].items():
                if name in names:
                    kept[name] = value
                    continue
                self.errors.add(
                    "F0518",
                    f"the model declares no {section[:-1]} named {name}",
                    fix=did_you_mean(name, names) or _listed(section, list(names)),
                    place=self.place(section, name),
                )
            extra[section] = kept
        return Spec(
            tables=tables,
            arrays=arrays,
            params=extra["params"],
            nets=extra["nets"],
            sets={name: labels for name, value in extra["sets"].items() if (labels := self.labels(name, value)) is not None},
            dims={name: value for name, value in extra["dims"].items() if self.size(name, value)},
            folder=folder,
            places=self.places,
        )

    def unknown_section(self, name: str, value: Any, known: list[str]) -> None:
        if name in SECTIONS or name in self.problem.tables:
            what = "TOML section" if name in SECTIONS else 'section with `source = "..."`, or a path'
            self.errors.add(
                "F0503", f"{name} must be a {what}", fix=f"write [{name}] on a line of its own", place=self.place(name)
            )
            return
        kind = f"[{name}]" if isinstance(value, Mapping) else name
        self.errors.add(
            "F0502",
            f"{kind} is neither a table nor an array of the model, nor one of {', '.join(SECTIONS)}",
            fix=did_you_mean(name, known) or _listed("tables", [*self.problem.tables, *self.problem.arrays]),
            place=self.place(name),
        )

    def labels(self, name: str, value: Any) -> tuple[str, ...] | None:
        """``[sets]  G = ["a", "b"]``."""
        if isinstance(value, list | tuple) and value and all(isinstance(item, str | int) for item in value):
            labels = tuple(str(item) for item in value)
            if len(set(labels)) == len(labels) and isinstance(self.problem.sets[name], ir.LabelSet):
                return labels
        reason = "each label once, and only for a set whose labels come with the data (`set G;`)"
        self.errors.add(
            "F0503", f"{name} must be a list of labels", reason=reason, fix=f'{name} = ["a", "b"]', place=self.place("sets", name)
        )
        return None

    def size(self, name: str, value: Any) -> bool:
        good = isinstance(value, int) and not isinstance(value, bool) and value > 0
        if not good:
            self.errors.add(
                "F0503", f"dim {name} must be a whole number above 0", fix=f"{name} = 10", place=self.place("dims", name)
            )
        return good

    def table(self, table: ir.Table, content: Mapping[str, Any], path: tuple[str, ...]) -> TableSpec:
        """``[D]``, or one member ``[D.member]`` of a family, which has its own source and filter alone."""
        member = len(path) > 1
        entries: dict[str, Entry] = {}
        members: dict[str, TableSpec] = {}
        values: dict[str, Any] = {}
        fields = () if member else tuple(table.columns)
        for key, value in content.items():
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
                members[key] = self.table(table, {"source": value} if isinstance(value, str) else value, (*path, key))
            else:
                allowed = [*fields, *(key for key in TABLE_KEYS if key != "family" or table.family is not None)]
                self.errors.add(
                    "F0502",
                    f"[{'.'.join(path)}] has no column and no setting named {key}",
                    fix=did_you_mean(key, allowed)
                    or f"the table's columns are {', '.join(fields) or 'in its own section'}; "
                    f"the settings {', '.join(TABLE_KEYS)}",
                    place=place,
                )
        return TableSpec(
            source=values.get("source"),
            where=values.get("where"),
            missing=values.get("missing", "error"),
            options={key: values[key] for key in ("separator", "na") if key in values},
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
            value = {"columns": value} if value == "*" or not isinstance(value, str) else {"column": value}
        if not isinstance(value, Mapping):
            refuse("F0503", f"{name} must say its columns", fix=f'{name.rpartition(".")[2]} = {{ column = "name" }}')
        for key in value:
            if key not in ENTRY_KEYS:
                fix = did_you_mean(key, ENTRY_KEYS) or f"an entry's keys are {', '.join(ENTRY_KEYS)}"
                self.errors.add("F0502", f"{name} has no setting named {key}", fix=fix, place=place)
        if ("column" in value) == ("columns" in value):
            both = "column" in value
            refuse(
                "F0503",
                f"{name} has {'both column and columns' if both else 'neither column nor columns'}",
                fix='column = "name" for one, columns = ["a", "b"] or columns = "*" for several',
            )
        columns = value.get("columns", value.get("column"))
        if "column" in value and not isinstance(columns, str):
            refuse("F0503", f"{name}: column must be a name in quotes", fix='column = "name"')
        if "columns" in value and columns != "*":
            columns = [columns] if isinstance(columns, str) else columns
            good = isinstance(columns, list | tuple) and columns and all(isinstance(item, str) for item in columns)
            if not good or len(set(columns)) < len(columns):
                refuse(
                    "F0503", f"{name}: columns must be a list of different names", fix='columns = ["a", "b"], or columns = "*"'
                )
        _entry_values(name, value)
        return Entry(
            columns=columns
            if columns == "*" and "columns" in value
            else ((columns,) if isinstance(columns, str) else tuple(columns)),
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
            given = {"source": value} if isinstance(value, str) else {"values": value}
            return ArraySpec(**given, place=place, raw=value)
        if not set(value) & {"source", "values"}:
            return ArraySpec(values=value, place=place, raw=value)
        for key in value:
            if key not in ARRAY_KEYS:
                fix = did_you_mean(key, ARRAY_KEYS) or f"an array's settings are {', '.join(ARRAY_KEYS)}"
                self.errors.add("F0502", f"[{name}] has no setting named {key}", fix=fix, place=self.place(name, key))
        columns = value.get("columns", value.get("column", ()))
        return ArraySpec(
            source=value.get("source"),
            values=value.get("values"),
            columns=(columns,) if isinstance(columns, str) else tuple(columns),
            index=value.get("index"),
            options={key: value[key] for key in ("separator", "na") if key in value},
            place=place,
            raw=dict(value),
        )


def _entry_values(name: str, value: Mapping[str, Any]) -> None:
    """The types of an entry's settings; F0503."""
    if value.get("encode", "onehot") != "onehot":
        refuse("F0503", f"{name}: encode = {value['encode']!r} is not known", fix='encode = "onehot"')
    if value.get("scale", "standard") != "standard":
        refuse("F0503", f"{name}: scale = {value['scale']!r} is not known", fix='scale = "standard"')
    if not isinstance(value.get("intercept", False), bool):
        refuse("F0503", f"{name}: intercept must be true or false", fix="intercept = true")
    rows = value.get("min_rows", 0)
    if not isinstance(rows, int) or isinstance(rows, bool) or rows < 0:
        refuse("F0503", f"{name}: min_rows must be a whole number", fix="min_rows = 50")
    mapping = value.get("map", {})
    if "map" in value and (not isinstance(mapping, Mapping) or not mapping):
        refuse("F0503", f"{name}: map must list values", fix='map = { "no" = 0, "yes" = 1 }')
    if any(not isinstance(item, str | int | float) for item in mapping.values()):
        refuse("F0503", f"{name}: map must give numbers or labels", fix='map = { "no" = 0, "yes" = 1 }')
    if "map" in value and "columns" in value:
        refuse("F0503", f"{name}: map is for one column", fix='map = {..} goes with column = "name"')
    skip = value.get("except", [])
    if not isinstance(skip, list | tuple) or not all(isinstance(item, str) for item in skip):
        refuse("F0503", f"{name}: except must be a list of names", fix='except = ["id"]')
    if "except" in value and value.get("columns") != "*":
        refuse("F0503", f'{name}: except goes with columns = "*"', fix="leave the names out of columns instead")


def _table_value(key: str, value: Any) -> Any:
    if key == "missing":
        if value not in ("error", "drop"):
            refuse(
                "F0503",
                f"missing = {value!r} is not known",
                fix='missing = "drop" leaves out rows with missing values; "error" is the default',
            )
    elif key == "na":
        value = [value] if isinstance(value, str) else value
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
            refuse("F0503", "na must be a list of texts that stand for a missing value", fix='na = ["?"]')
    elif key == "separator":
        if not isinstance(value, str) or len(value) != 1:
            refuse("F0503", "separator must be one character", fix='separator = ";"')
    elif key == "where" and not isinstance(value, str):
        refuse("F0503", "where must be a condition in quotes", fix="where = \"split == 'train'\"")
    elif key == "source" and not isinstance(value, str | Path):
        refuse("F0503", "source must be a path in quotes", fix='source = "train.parquet", or source = "sklearn:breast_cancer"')
    return value


def _listed(kind: str, names: list[str]) -> str:
    return f"the model's {kind} are {', '.join(names)}" if names else f"the model declares no {kind}"
