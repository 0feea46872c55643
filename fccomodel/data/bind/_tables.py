"""One table: which source columns each of its columns is made from, which rows stay, and the arrays
themselves."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.data.bind import _drawn, _encode, _prepared, errors
from fccomodel.data.bind._encode import Built
from fccomodel.data.bind._families import Opened, demand_column
from fccomodel.data.bind._rows import Rows, missing, read
from fccomodel.data.bind._sink import Sink
from fccomodel.data.bind._sizes import Sizes
from fccomodel.data.bind._spec import Entry, TableSpec
from fccomodel.data.bind.collect import Errors
from fccomodel.data.bind.errors import words
from fccomodel.data.sources import Drawing, RawColumn, RawTable


@dataclass(frozen=True, eq=False, kw_only=True)
class Draft:
    """A table whose label columns still hold positions in their own labels."""

    table: ir.Table
    rows: Rows
    columns: Mapping[str, Built]
    entries: Mapping[str, Entry]
    opened: Opened
    record: dict[str, Any]
    notes: tuple[str, ...] = ()


def draft(
    table: ir.Table,
    spec: TableSpec,
    opened: Opened,
    stored: Mapping[str, Any],
    sizes: Sizes,
    domains: Mapping[str, Any],
    collected: Errors,
    sink: Sink | None = None,
    drawing: Drawing | None = None,
) -> Draft:
    """Bind every column. ``stored``: an earlier binding's record by column; ``domains``: the numbers
    of value sets; ``sink``: where vectors are written instead of being held; ``drawing``: how rows
    are drawn."""
    raw, rows = opened.raw, opened.rows
    stored = {name: record for name, record in stored.items() if name not in raw.ready}
    entries: dict[str, Entry] = {}
    for name, kind in table.columns.items():
        if name in raw.ready:
            entry = None
        else:
            entry = spec.entries.get(name) or _stored_entry(stored.get(name))
        place = entry.place if entry is not None else ""
        with collected.collect(span=kind.span, place=place):
            if entry is not None:
                _demand_all(raw, entry, f"{table.name}.{name}")
                entries[name] = entry
            else:
                entries[name] = _automatic(table, name, kind, raw, spec, sizes)
    named_columns = {column for entry in entries.values() if entry.columns != "*" for column in entry.columns}
    if spec.family is not None:
        named_columns |= set(spec.family.columns)
    else:
        named_columns |= set()
    source_columns: dict[str, tuple[str, ...]] = {}
    for name, entry in entries.items():
        with collected.collect(place=entry.place, span=table.columns[name].span):
            source_columns[name] = _source_columns(table, name, entry, raw, named_columns, stored.get(name))
    notes: list[str] = []
    if len(source_columns) == len(table.columns):
        with collected.collect(place=spec.place, span=table.span):
            rows, opened = _filtered(table, spec, entries, source_columns, opened, stored, notes)
    else:
        return Draft(table=table, rows=rows, columns={}, entries=entries, opened=opened, record=opened.record)
    notes += _automatic_notes(table, spec, source_columns, stored)
    columns: dict[str, Built] = {}
    for name, entry in entries.items():
        with collected.collect(place=entry.place, span=table.columns[name].span):
            if raw.drawn.keys() & set(source_columns[name]):
                kind, what = table.columns[name], f"{table.name}.{name}"
                built = _drawn.column(raw, entry, rows, name, what, drawing or Drawing())
                columns[name] = _sized(built, kind, name, what, raw, sizes)
            else:
                columns[name] = _column(
                    table,
                    name,
                    entry,
                    source_columns[name],
                    raw,
                    rows,
                    stored.get(name),
                    sizes,
                    domains.get(name, ()),
                    sink,
                )
            notes += columns[name].notes
    if source_columns:
        used = set().union(*source_columns.values())
    else:
        used = set()
    unused = [name for name in raw.names if name not in used and name not in raw.hidden]
    record = opened.record | {
        "rows": rows.n,
        "encoding": {name: dict(built.encoding) for name, built in columns.items()},
        "unused": unused,
        "spec": _prepared.plain(spec.raw),
    }
    return Draft(
        table=table,
        rows=rows,
        columns=columns,
        entries=entries,
        opened=opened,
        record=record,
        notes=tuple(notes),
    )


def _stored_entry(record: Mapping[str, Any] | None) -> Entry | None:
    """An entry that repeats what an earlier binding did, where the binding file says nothing."""
    if not record:
        return None
    if record["kind"] == "labels":
        return Entry(columns=tuple(record["columns"]), map=record.get("map"))
    if record["kind"] in ("number", "vector"):
        return Entry(
            columns=(record["column"],),
            single=True,
            map=record.get("map"),
            scale="standard" if record.get("scale") else None,
        )
    return Entry(
        columns=(*record["numbers"], *record["texts"]),
        encode="onehot" if record["texts"] else None,
        scale="standard" if record.get("scale") else None,
        intercept=record["intercept"],
    )


def _demand_all(raw: RawTable, entry: Entry, what: str) -> None:
    """Every column that an entry names; all that are missing at once."""
    column_names = (*(entry.columns if entry.columns != "*" else ()), *entry.skip)
    if absent := [name for name in column_names if name not in raw.numeric]:
        refuse(*(errors.tables.no_column(what, name, raw) for name in absent))


# --------------------------------------------------------------------------------- without an entry
def _automatic(
    table: ir.Table, name: str, kind: ir.ColumnType, raw: RawTable, spec: TableSpec, sizes: Sizes
) -> Entry:
    """The columns that already have the model's name and shape; F0508 and F0528 where none have."""
    what = f"{table.name}.{name}"
    rank = len(kind.shape)
    if name in raw.numeric and (rank == 0 or name in raw.vectors):
        return Entry(columns=(name,), single=True)
    if rank == 0:
        refuse(errors.tables.no_column_of_name(table.name, name, raw))
    if rank == 1:
        if numbered := _numbered(name, raw, what):
            return Entry(columns=numbered)
        if isinstance(kind.shape[0], str):
            labels = sizes.labels.get(kind.shape[0])
        else:
            labels = None
        if labels and all(label in raw.numeric for label in labels):
            return Entry(columns=labels)
    if name in raw.numeric and raw.load(name).unusable:
        return Entry(columns=(name,), single=True)  # which says why
    claimed = {
        column for entry in spec.entries.values() for column in entry.columns if entry.columns != "*"
    } | set(table.columns)
    numbers = [
        column
        for column in raw.names
        if raw.numeric[column] and column not in claimed and column not in raw.hidden
    ]
    is_file = raw.called != raw.origin
    if not spec.entries and (spec.source or is_file):
        source = f'source = "{spec.source or raw.called}"  '
    else:
        source = ""
    refuse(errors.tables.vector(table.name, name, kind.shape, raw, numbers, source))


def _automatic_notes(
    table: ir.Table, spec: TableSpec, source_columns: Mapping[str, tuple[str, ...]], stored: Mapping[str, Any]
) -> list[str]:
    """Which columns became a vector without being named."""
    return [
        f"{table.name}.{name} is made of the columns {columns[0]} .. {columns[-1]} ({len(columns)} of them)"
        for name, columns in source_columns.items()
        if name not in spec.entries and name not in stored and len(columns) > 1
    ]


def _numbered(name: str, raw: RawTable, what: str) -> tuple[str, ...]:
    """``x_0 .. x_9``, ``x1 .. x10`` and the like, in the order of their numbers; () where there are none."""
    for pattern in (rf"{re.escape(name)}_(\d+)", rf"{re.escape(name)}(\d+)"):
        by_number = {
            int(match[1]): column for column in raw.names if (match := re.fullmatch(pattern, column))
        }
        if not by_number:
            continue
        order = sorted(by_number)
        gaps = sorted(set(range(order[0], order[-1] + 1)) - set(order))
        if order[0] > 1 or gaps:
            refuse(
                errors.tables.numbers_left_out(
                    what, by_number[order[0]], by_number[order[-1]], raw.called, gaps[0] if gaps else 1
                )
            )
        return tuple(by_number[number] for number in order)
    return ()


# -------------------------------------------------------------------------------------- the columns
def _is_label(kind: ir.ColumnType) -> bool:
    return isinstance(kind.domain, ir.LabelSet)


def _source_columns(
    table: ir.Table,
    name: str,
    entry: Entry,
    raw: RawTable,
    named_columns: set[str],
    learned: Mapping[str, Any] | None,
) -> tuple[str, ...]:
    """The source columns of one column; ``"*"`` spelled out; the kind of entry compared with the kind
    of column."""
    kind, what = table.columns[name], f"{table.name}.{name}"
    if _is_label(kind):
        if kind.shape:
            refuse(errors.columns.vector_of_labels(what, name))
        if entry.columns == "*" or entry.encode or entry.scale or entry.intercept:
            refuse(errors.binding_file.entry_of_label(what, name))
        return tuple(entry.columns)
    if entry.min_rows:
        refuse(errors.binding_file.min_rows_of_number(what))
    if not kind.shape:
        if len(entry.columns) != 1 or entry.columns == "*" or entry.encode or entry.intercept:
            refuse(errors.binding_file.entry_of_number(what, name))
        return tuple(entry.columns)
    if entry.map is not None:
        refuse(errors.binding_file.map_of_vector(what))
    if learned and learned["kind"] == "features":
        columns = (*learned["numbers"], *learned["texts"])
        for column in columns:
            demand_column(raw, column, what)
        return columns
    if entry.columns != "*":
        return tuple(entry.columns)
    columns = tuple(
        column
        for column in raw.names
        if raw.numeric[column]
        and column not in named_columns
        and column not in entry.skip
        and column not in raw.hidden
    )
    if not columns:
        refuse(errors.tables.no_column_of_numbers(what, raw.called))
    return columns


def _filtered(
    table: ir.Table,
    spec: TableSpec,
    entries: Mapping[str, Entry],
    source_columns: Mapping[str, tuple[str, ...]],
    opened: Opened,
    stored: Mapping[str, Any],
    notes: list[str],
) -> tuple[Rows, Opened]:
    """Rows left by ``missing = "drop"`` and by ``min_rows``; where labels were learned before, by
    these labels."""
    raw, rows, record = opened.raw, opened.rows, opened.record
    record = record | {"dropped": list(record["dropped"])}
    complete, before = np.ones(rows.n, bool), rows
    if spec.missing == "drop":
        absent: dict[str, int] = {}
        for column in sorted(set().union(*source_columns.values()) - set(raw.drawn)):
            here = missing(read(raw, column, rows, table.name))
            complete &= ~here
            if here.any():
                absent |= {column: int(here.sum())}
            else:
                absent |= {}
        why = f"{table.name}: rows with missing values"
        rows = _narrowed(rows, complete, why, record, notes, {"kind": "missing", "columns": absent})
        record["groups"] = _groups(table, entries, raw, before, rows)
    if opened.family is None:
        family = opened.family
    else:
        family = opened.family[complete]
    for name, entry in entries.items():
        learned = stored.get(name, {})
        stored_labels = learned.get("labels")
        if not (learned.get("min_rows") if stored_labels else entry.min_rows):
            continue
        built = _encode.labels(raw, entry, rows, f"{table.name}.{name}", learned.get("map"))
        assert built.labels is not None
        if stored_labels:
            keep = np.array([label in stored_labels for label in built.labels], bool)
            why = f"{table.name}.{name}: rows of groups that were not there when the answer was found"
        else:
            keep = np.bincount(built.values, minlength=len(built.labels)) >= entry.min_rows
            dropped = int((~keep).sum())
            why = (
                f"{table.name}.{name}: rows of {dropped} group{'s' * (dropped != 1)} with fewer than "
                f"{entry.min_rows} rows"
            )
        mask = keep[built.values]
        rows = _narrowed(rows, mask, why, record, notes, {"kind": "groups"})
        if family is None:
            family = family
        else:
            family = family[mask]
    return rows, replace(opened, rows=rows, record=record, family=family)


def _groups(
    table: ir.Table, entries: Mapping[str, Entry], raw: RawTable, before: Rows, after: Rows
) -> dict[str, tuple[int, int]]:
    """By column of labels how many groups there were, and how many are left, if rows were left out."""
    if after.n == before.n:
        return {}
    found = {}
    for name, entry in entries.items():
        if _is_label(table.columns[name]) and len(entry.columns) == 1:
            values = raw.load(entry.columns[0])
            counts = [_distinct(values.take(rows.indices)) for rows in (before, after)]
            found[name] = (counts[0], counts[1])
    return found


def _distinct(column: RawColumn) -> int:
    """How many values a column has, those that are missing aside."""
    return len(np.unique(column.values[~missing(column)]))


def _narrowed(
    rows: Rows, mask: np.ndarray, why: str, record: dict[str, Any], notes: list[str], kind: Mapping[str, Any]
) -> Rows:
    """The rows where the mask holds; those left out are recorded with the reason and its ``kind``, and
    noted."""
    left_out = int(len(mask) - mask.sum())
    if not left_out:
        return rows
    record["dropped"].append({"reason": why, "rows": left_out, **kind})
    notes.append(f"{why}: {left_out} of {len(mask)} left out")
    if left_out == len(mask):
        refuse(errors.tables.no_row_left(why, len(mask)))
    return rows.keep(mask)


def _column(
    table: ir.Table,
    name: str,
    entry: Entry,
    columns: tuple[str, ...],
    raw: RawTable,
    rows: Rows,
    learned: Mapping[str, Any] | None,
    sizes: Sizes,
    domain: Any,
    sink: Sink | None,
) -> Built:
    """The array of one column, with its sizes noted."""
    kind, what = table.columns[name], f"{table.name}.{name}"
    if name in raw.ready:
        return _sized(
            _prepared.column(raw.ready[name], kind, what, rows, raw.prepared["dtype"]),
            kind,
            name,
            what,
            raw,
            sizes,
        )
    if _is_label(kind):
        built = _encode.labels(raw, entry, rows, what, (learned or {}).get("map"))
        labels = kind.domain.name  # type: ignore[union-attr]
        return replace(built, encoding={**built.encoding, "set": labels, "min_rows": entry.min_rows})
    if not kind.shape:
        return _encode.number(raw, entry, rows, what, learned, domain)
    if sink is not None:
        built = sink.column(raw, entry, columns, rows, what, len(kind.shape), learned)
    else:
        built = _encode.vector(
            raw, replace(entry, columns=columns), rows, what, len(kind.shape)
        ) or _encode.features(raw, entry, columns, rows, what, learned)
    return _sized(built, kind, name, what, raw, sizes)


def _sized(built: Built, kind: ir.ColumnType, name: str, what: str, raw: RawTable, sizes: Sizes) -> Built:
    """A column whose shape is as declared, and noted."""
    if built.values.ndim != len(kind.shape) + 1:
        refuse(errors.columns.axes_of_rows(what, name, built.values.shape[1:], len(kind.shape)))
    for axis, dim in enumerate(kind.shape):
        place = f"{what} ({raw.called})"
        names = built.names if axis == 0 and built.names is not None else None
        sizes.unify(dim, built.values.shape[axis + 1], what, place, names)
    return built


#: Rows that are tested at once.
TESTED = 1 << 18


def _tested(values: np.ndarray, test: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Where a test of single numbers holds, block by block."""
    result = np.empty(values.shape, bool)
    for start in range(0, len(values), TESTED):
        result[start : start + TESTED] = test(values[start : start + TESTED])
    return result


def _among(values: np.ndarray, ascending: np.ndarray) -> np.ndarray:
    """Which numbers are, but for rounding, among those of a list."""
    position = np.clip(np.searchsorted(ascending, values), 0, len(ascending) - 1)
    distance = np.minimum(
        np.abs(ascending[position] - values), np.abs(ascending[np.maximum(position - 1, 0)] - values)
    )
    return distance <= 1e-9 * np.maximum(1, np.abs(values))


def check_domain(
    built: Built, kind: ir.ColumnType, what: str, members: np.ndarray | None, rows: Rows
) -> None:
    """Whole numbers for ``int``, elements of the set for a value set; F0513 with the values outside."""
    values = built.values
    if kind.kind == "int":
        outside = _tested(values, lambda block: block != np.rint(block))
        expected = "whole numbers"
    elif members is not None:
        if len(members):
            ascending = np.sort(members)
        else:
            ascending = np.array([np.nan])
        outside = _tested(values, lambda block: ~_among(block, ascending))
        shown = ", ".join(f"{member:g}" for member in members[:8]) + (", ..." if len(members) > 8 else "")
        expected = f"one of {{{shown}}}"
    else:
        return
    if not outside.any():
        return
    whole = f"declare {what.partition('.')[2]}: real, or round the data"
    if kind.kind == "int" or members is None:
        fix = whole
    else:
        fix = _domain_fix(built, what, values, members)
    distinct, counts = np.unique(values[outside], return_counts=True)
    occurrences = list(zip(distinct.tolist(), counts.tolist(), strict=True))
    first = int(outside.reshape(len(outside), -1).any(1).argmax())
    refuse(errors.columns.outside(what, expected, occurrences, rows.called(first), fix))


def _domain_fix(built: Built, what: str, values: np.ndarray, members: np.ndarray) -> str:
    """The map to write when the data have as many values as the set."""
    distinct = np.unique(values)
    if built.encoding.get("map") or len(distinct) > 12:
        return "give data within the set, or leave other rows out with where"
    if len(distinct) == len(members):
        targets = [f"{member:g}" for member in sorted(members)]
    else:
        targets = ["..."] * len(distinct)
    pairs = [
        (_encode.spelled(_short(value)), target) for value, target in zip(distinct, targets, strict=True)
    ]
    return words.map_entry(what, built.encoding.get("column", "..."), pairs)


def _short(value: float) -> Any:
    if float(value).is_integer():
        return int(value)
    return value
