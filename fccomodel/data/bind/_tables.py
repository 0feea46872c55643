"""Binds one table: chooses source columns and rows, and makes the arrays."""

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
from fccomodel.data.bind._rows import RowsInUse, missing, read
from fccomodel.data.bind._sink import Sink
from fccomodel.data.bind._sizes import KnownSizes
from fccomodel.data.bind._spec import ColumnEntry, TableSpec
from fccomodel.data.bind.collect import Errors
from fccomodel.data.bind.errors import words
from fccomodel.data.sources import Drawing, RawColumn, RawTable


@dataclass(frozen=True, eq=False, kw_only=True)
class TableDraft:
    """A table whose columns of labels hold positions in their own labels, not yet in the model's sets.

    table     the table as the model declares it
    rows      the rows in use
    columns   the columns
    entries   the entry of each column, given or automatic
    opened    the source
    record    the record for the report
    notes     sentences for the report
    """

    table: ir.Table
    rows: RowsInUse
    columns: Mapping[str, Built]
    entries: Mapping[str, ColumnEntry]
    opened: Opened
    record: dict[str, Any]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Section:
    """A table of the model, and what its columns are bound with.

    table     the table as the model declares it
    spec      the section of the table
    opened    the source
    stored    the encoding of an earlier binding, by column
    sizes     the sizes so far; new ones are added
    domains   the numbers of value sets, by column
    errors    the errors so far; new ones are added
    sink      writes vectors to files; None to hold them in memory
    drawing   how rows are drawn
    """

    table: ir.Table
    spec: TableSpec
    opened: Opened
    stored: Mapping[str, Any]
    sizes: KnownSizes
    domains: Mapping[str, Any]
    errors: Errors
    sink: Sink | None = None
    drawing: Drawing | None = None


def draft(section: Section) -> TableDraft:
    """Bind every column of a table."""
    table, spec, opened = section.table, section.spec, section.opened
    raw, rows = opened.raw, opened.rows
    stored = {name: record for name, record in section.stored.items() if name not in raw.ready}
    section = replace(section, stored=stored)
    entries = _entries(table, spec, raw, stored, section.sizes, section.errors)
    source_columns = _all_source_columns(section, entries)
    if len(source_columns) < len(table.columns):  # after an error
        return TableDraft(
            table=table, rows=rows, columns={}, entries=entries, opened=opened, record=opened.record
        )
    notes: list[str] = []
    with section.errors.collect(place=spec.place, span=table.span):
        rows, opened = _filtered(table, spec, entries, source_columns, opened, stored, notes)
    notes += _automatic_notes(table, spec, source_columns, stored)
    notes += raw.notes
    columns: dict[str, Built] = {}
    for name, entry in entries.items():
        with section.errors.collect(place=entry.place, span=table.columns[name].span):
            columns[name] = _column(section, name, entry, source_columns[name], rows)
            notes += columns[name].notes
    used: set[str] = set().union(*source_columns.values())
    record = opened.record | {
        "rows": rows.n,
        "encoding": {name: dict(built.encoding) for name, built in columns.items()},
        "unused": [name for name in raw.names if name not in used and name not in raw.hidden],
        "spec": _prepared.plain(spec.raw),
    }
    return TableDraft(
        table=table,
        rows=rows,
        columns=columns,
        entries=entries,
        opened=opened,
        record=record,
        notes=tuple(notes),
    )


def _all_source_columns(section: Section, entries: Mapping[str, ColumnEntry]) -> dict[str, tuple[str, ...]]:
    """The names of the source columns of each column; columns with an error are left out."""
    table, spec = section.table, section.spec
    named_columns: set[str] = set()
    for entry in entries.values():
        if entry.columns != "*":
            named_columns |= set(entry.columns)
    if spec.family is not None:
        named_columns |= set(spec.family.columns)
    by_name: dict[str, tuple[str, ...]] = {}
    for name, entry in entries.items():
        learned = section.stored.get(name)
        with section.errors.collect(place=entry.place, span=table.columns[name].span):
            by_name[name] = _source_columns(table, name, entry, section.opened.raw, named_columns, learned)
    return by_name


def _entries(
    table: ir.Table,
    spec: TableSpec,
    raw: RawTable,
    stored: Mapping[str, Any],
    sizes: KnownSizes,
    collected: Errors,
) -> dict[str, ColumnEntry]:
    """The entry of each column: of the section, of an earlier binding, or automatic."""
    entries: dict[str, ColumnEntry] = {}
    for name, kind in table.columns.items():
        entry = None
        if name not in raw.ready:
            entry = spec.entries.get(name) or _stored_entry(stored.get(name))
        place = entry.place if entry is not None else ""
        with collected.collect(span=kind.span, place=place):
            if entry is not None:
                _demand_all(raw, entry, f"{table.name}.{name}")
                entries[name] = entry
            else:
                entries[name] = _automatic(table, name, kind, raw, spec, sizes)
    return entries


def _stored_entry(record: Mapping[str, Any] | None) -> ColumnEntry | None:
    """An entry that repeats an earlier binding's encoding of a column; None without such an encoding."""
    if not record:
        return None
    if record["kind"] == "labels":
        return ColumnEntry(columns=tuple(record["columns"]), map=record.get("map"))
    if record["kind"] in ("number", "vector"):
        return ColumnEntry(
            columns=(record["column"],),
            single=True,
            map=record.get("map"),
            scale="standard" if record.get("scale") else None,
        )
    return ColumnEntry(
        columns=(*record["numbers"], *record["texts"]),
        encode="onehot" if record["texts"] else None,
        scale="standard" if record.get("scale") else None,
        intercept=record["intercept"],
    )


def _demand_all(raw: RawTable, entry: ColumnEntry, what: str) -> None:
    """F0508 for every column that an entry names and the data do not have."""
    names = list(entry.skip)
    if entry.columns != "*":
        names = [*entry.columns, *names]
    absent = [name for name in names if name not in raw.numeric]
    if absent:
        refuse(*(errors.tables.no_column(what, name, raw) for name in absent))


# --------------------------------------------------------------------------------- without an entry
def _automatic(
    table: ir.Table, name: str, kind: ir.ColumnType, raw: RawTable, spec: TableSpec, sizes: KnownSizes
) -> ColumnEntry:
    """The entry of a column without one: source columns with the model's name and shape.

    F0508 and F0528 if there are none.
    """
    what = f"{table.name}.{name}"
    rank = len(kind.shape)
    if name in raw.numeric and (rank == 0 or name in raw.vectors):
        return ColumnEntry(columns=(name,), single=True)
    if rank == 0:
        refuse(errors.tables.no_column_of_name(table.name, name, raw))
    if rank == 1:
        numbered = _numbered(name, raw, what)
        if numbered:
            return ColumnEntry(columns=numbered)
        labels = None
        if isinstance(kind.shape[0], str):
            labels = sizes.labels.get(kind.shape[0])
        if labels and all(label in raw.numeric for label in labels):
            return ColumnEntry(columns=labels)
    if name in raw.numeric and raw.load(name).unusable:
        # Reading this column raises an error with the reason.
        return ColumnEntry(columns=(name,), single=True)
    is_file = raw.called != raw.origin
    source = ""
    if not spec.entries and (spec.source or is_file):
        source = f'source = "{spec.source or raw.called}"  '
    refuse(errors.tables.vector(table.name, name, kind.shape, raw, _unclaimed(table, spec, raw), source))


def _unclaimed(table: ir.Table, spec: TableSpec, raw: RawTable) -> list[str]:
    """The source columns of numbers that neither an entry nor a column of the model names."""
    claimed = set(table.columns)
    for entry in spec.entries.values():
        if entry.columns != "*":
            claimed |= set(entry.columns)
    unclaimed = []
    for column in raw.names:
        if raw.numeric[column] and column not in claimed and column not in raw.hidden:
            unclaimed.append(column)
    return unclaimed


def _automatic_notes(
    table: ir.Table, spec: TableSpec, source_columns: Mapping[str, tuple[str, ...]], stored: Mapping[str, Any]
) -> list[str]:
    """Notes on vectors made from columns that no entry names."""
    notes = []
    for name, columns in source_columns.items():
        if name not in spec.entries and name not in stored and len(columns) > 1:
            span = f"{columns[0]} .. {columns[-1]} ({len(columns)} of them)"
            notes.append(f"{table.name}.{name} is made of the columns {span}")
    return notes


def _numbered(name: str, raw: RawTable, what: str) -> tuple[str, ...]:
    """Columns such as ``x_0 .. x_9`` or ``x1 .. x10``, in the order of their numbers; () without any."""
    for pattern in (rf"{re.escape(name)}_(\d+)", rf"{re.escape(name)}(\d+)"):
        by_number = {}
        for column in raw.names:
            match = re.fullmatch(pattern, column)
            if match:
                by_number[int(match[1])] = column
        if not by_number:
            continue
        order = sorted(by_number)
        first, last = order[0], order[-1]
        gaps = sorted(set(range(first, last + 1)) - set(order))
        if first > 1 or gaps:
            missing_number = gaps[0] if gaps else 1
            refuse(
                errors.tables.numbers_left_out(
                    what, by_number[first], by_number[last], raw.called, missing_number
                )
            )
        return tuple(by_number[number] for number in order)
    return ()


# -------------------------------------------------------------------------------------- the columns
def _is_label(kind: ir.ColumnType) -> bool:
    """Whether a column holds labels."""
    return isinstance(kind.domain, ir.LabelSet)


def _source_columns(
    table: ir.Table,
    name: str,
    entry: ColumnEntry,
    raw: RawTable,
    named_columns: set[str],
    learned: Mapping[str, Any] | None,
) -> tuple[str, ...]:
    """The names of the source columns of one column, in place of ``"*"`` too.

    An error if the entry does not fit the kind of the column.
    """
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
    excluded = {*named_columns, *entry.skip, *raw.hidden}
    columns = tuple(column for column in raw.names if raw.numeric[column] and column not in excluded)
    if not columns:
        refuse(errors.tables.no_column_of_numbers(what, raw.called))
    return columns


def _filtered(
    table: ir.Table,
    spec: TableSpec,
    entries: Mapping[str, ColumnEntry],
    source_columns: Mapping[str, tuple[str, ...]],
    opened: Opened,
    stored: Mapping[str, Any],
    notes: list[str],
) -> tuple[RowsInUse, Opened]:
    """The rows without missing values (if ``missing = "drop"``) and without groups of too few rows.

    If an earlier binding dropped groups by ``min_rows``, the rows of its remaining groups.
    """
    raw, rows, family = opened.raw, opened.rows, opened.family
    record = opened.record | {"dropped": list(opened.record["dropped"])}
    if spec.missing == "drop":
        complete = np.ones(rows.n, bool)
        counts: dict[str, int] = {}
        for column in sorted(set().union(*source_columns.values()) - set(raw.drawn)):
            absent = missing(read(raw, column, rows, table.name))
            complete &= ~absent
            if absent.any():
                counts[column] = int(absent.sum())
        why = f"{table.name}: rows with missing values"
        remaining = _narrowed(rows, complete, why, record, notes, {"kind": "missing", "columns": counts})
        record["groups"] = _groups(table, entries, raw, rows, remaining)
        rows = remaining
        if family is not None:
            family = family[complete]
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
            groups = "1 group" if dropped == 1 else f"{dropped} groups"
            why = f"{table.name}.{name}: rows of {groups} with fewer than {entry.min_rows} rows"
        mask = keep[built.values]
        rows = _narrowed(rows, mask, why, record, notes, {"kind": "groups"})
        if family is not None:
            family = family[mask]
    return rows, replace(opened, rows=rows, record=record, family=family)


def _groups(
    table: ir.Table, entries: Mapping[str, ColumnEntry], raw: RawTable, before: RowsInUse, after: RowsInUse
) -> dict[str, tuple[int, int]]:
    """For each column of labels, the number of groups before and after rows were left out.

    Empty if no rows were left out.
    """
    if after.n == before.n:
        return {}
    counts = {}
    for name, entry in entries.items():
        if _is_label(table.columns[name]) and len(entry.columns) == 1:
            column = raw.load(entry.columns[0])
            counts[name] = (_distinct(column.take(before.indices)), _distinct(column.take(after.indices)))
    return counts


def _distinct(column: RawColumn) -> int:
    """The number of distinct values in a column, without missing ones."""
    return len(np.unique(column.values[~missing(column)]))


def _narrowed(
    rows: RowsInUse,
    mask: np.ndarray,
    why: str,
    record: dict[str, Any],
    notes: list[str],
    kind: Mapping[str, Any],
) -> RowsInUse:
    """The rows for which the mask is true.

    The number of rows left out is added to the record and to the notes, with the reason ``why`` and its
    ``kind``.
    """
    left_out = int(len(mask) - mask.sum())
    if not left_out:
        return rows
    record["dropped"].append({"reason": why, "rows": left_out, **kind})
    notes.append(f"{why}: {left_out} of {len(mask)} left out")
    if left_out == len(mask):
        refuse(errors.tables.no_row_left(why, len(mask)))
    return rows.keep(mask)


def _column(
    section: Section, name: str, entry: ColumnEntry, columns: tuple[str, ...], rows: RowsInUse
) -> Built:
    """The array of one column, from some source columns and rows; its sizes are noted."""
    kind = section.table.columns[name]
    what = f"{section.table.name}.{name}"
    raw = section.opened.raw
    learned = section.stored.get(name)
    rank = len(kind.shape)
    if raw.drawn.keys() & set(columns):
        built = _drawn.column(raw, entry, rows, name, what, section.drawing or Drawing())
    elif name in raw.ready:
        built = _prepared.column(raw.ready[name], kind, what, rows, raw.prepared["dtype"])
    elif _is_label(kind):
        built = _encode.labels(raw, entry, rows, what, (learned or {}).get("map"))
        labels = kind.domain.name  # type: ignore[union-attr]
        return replace(built, encoding={**built.encoding, "set": labels, "min_rows": entry.min_rows})
    elif not kind.shape:
        return _encode.number(raw, entry, rows, what, learned, section.domains.get(name, ()))
    elif section.sink is not None:
        built = section.sink.column(raw, entry, columns, rows, what, rank, learned)
    else:
        vectors = _encode.vector(raw, replace(entry, columns=columns), rows, what, rank)
        if vectors is None:
            vectors = _encode.features(raw, entry, columns, rows, what, learned)
        built = vectors
    return _sized(built, kind, name, what, raw, section.sizes)


def _sized(
    built: Built, kind: ir.ColumnType, name: str, what: str, raw: RawTable, sizes: KnownSizes
) -> Built:
    """The column, after its shape is compared with the declared one and its sizes are noted."""
    if built.values.ndim != len(kind.shape) + 1:
        refuse(errors.columns.axes_of_rows(what, name, built.values.shape[1:], len(kind.shape)))
    for axis, dim in enumerate(kind.shape):
        place = f"{what} ({raw.called})"
        names = built.names if axis == 0 and built.names is not None else None
        sizes.unify(dim, built.values.shape[axis + 1], what, place, names)
    return built


#: Share of the largest entry up to which a matrix may miss symmetry, or an eigenvalue may be negative.
ROUNDING = 1e-9
#: Number of rows whose domain is checked at once.
ROWS_AT_ONCE = 1 << 18


def _in_blocks(values: np.ndarray, test: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """The mask of a test of single numbers, computed block by block."""
    result = np.empty(values.shape, bool)
    for start in range(0, len(values), ROWS_AT_ONCE):
        stop = start + ROWS_AT_ONCE
        result[start:stop] = test(values[start:stop])
    return result


def _among(values: np.ndarray, ascending: np.ndarray) -> np.ndarray:
    """Mask of the values that are in a sorted list, up to rounding."""
    position = np.clip(np.searchsorted(ascending, values), 0, len(ascending) - 1)
    distance = np.abs(ascending[position] - values)
    position = np.maximum(position - 1, 0)  # the neighbour below
    distance = np.minimum(distance, np.abs(ascending[position] - values))
    return distance <= 1e-9 * np.maximum(1, np.abs(values))


def check_domain(
    built: Built, kind: ir.ColumnType, what: str, members: np.ndarray | None, rows: RowsInUse
) -> None:
    """Check a column: its bounds, whole numbers for ``int``, elements for a value set.

    F0513 names other values.
    """
    values = built.values
    _check_bounds(values, kind, what, rows)
    if kind.kind == "int":
        outside = _in_blocks(values, lambda block: block != np.rint(block))
        expected = "whole numbers"
    elif members is not None:
        ascending = np.array([np.nan])
        if len(members):
            ascending = np.sort(members)
        outside = _in_blocks(values, lambda block: ~_among(block, ascending))
        shown = ", ".join(f"{member:g}" for member in members[:8])
        if len(members) > 8:
            shown += ", ..."
        expected = f"one of {{{shown}}}"
    else:
        return
    if not outside.any():
        return
    if kind.kind == "int" or members is None:
        fix = f"declare {what.partition('.')[2]}: real, or round the data"
    else:
        fix = _domain_fix(built, what, values, members)
    distinct, counts = np.unique(values[outside], return_counts=True)
    occurrences = list(zip(distinct.tolist(), counts.tolist(), strict=True))
    first = int(outside.reshape(len(outside), -1).any(1).argmax())
    refuse(errors.columns.outside(what, expected, occurrences, rows.called(first), fix))


def _check_bounds(values: np.ndarray, kind: ir.ColumnType, what: str, rows: RowsInUse) -> None:
    """Check the declared bounds of numbers, and that a matrix declared so is positive semidefinite."""
    if kind.definite:
        _check_definite(values, what)
    if not kind.bounded:
        return
    outside = _in_blocks(values, lambda block: _beyond(block, kind))
    if outside.any():
        first = int(outside.reshape(len(outside), -1).any(1).argmax())
        distinct, counts = np.unique(values[outside], return_counts=True)
        occurrences = list(zip(distinct.tolist(), counts.tolist(), strict=True))
        fix = f"declare other bounds of {what}, or leave such rows out with where"
        refuse(errors.columns.outside(what, words.bounds(kind), occurrences, rows.called(first), fix))


def _beyond(block: np.ndarray, kind: ir.ColumnType) -> np.ndarray:
    """The mask of numbers that do not keep the bounds of their type."""
    low = np.less_equal if kind.strict_lower else np.less
    high = np.greater_equal if kind.strict_upper else np.greater
    return low(block, kind.lower) | high(block, kind.upper)


def _check_definite(matrix: np.ndarray, what: str) -> None:
    """Check that a matrix is symmetric without negative eigenvalues, up to rounding."""
    size = float(np.abs(matrix).max(initial=0.0))
    skew = float(np.abs(matrix - matrix.T).max(initial=0.0))
    if skew > ROUNDING * size:
        refuse(errors.columns.not_symmetric(what, skew))
    least = float(np.linalg.eigvalsh((matrix + matrix.T) / 2).min(initial=0.0))
    if least < -ROUNDING * size:
        refuse(errors.columns.not_definite(what, least))


def _domain_fix(built: Built, what: str, values: np.ndarray, members: np.ndarray) -> str:
    """A fix for values outside a set: a map to write, or other rows if the data have too many values."""
    distinct = np.unique(values)
    if built.encoding.get("map") or len(distinct) > 12:
        return "give data within the set, or leave other rows out with where"
    if len(distinct) == len(members):
        targets = [f"{member:g}" for member in sorted(members)]
    else:
        targets = ["..."] * len(distinct)
    keys = [_encode.spelled(_short(value)) for value in distinct]
    pairs = list(zip(keys, targets, strict=True))
    return words.map_entry(what, built.encoding.get("column", "..."), pairs)


def _short(value: float) -> Any:
    """The number, as an integer if it is whole."""
    if float(value).is_integer():
        return int(value)
    return value
