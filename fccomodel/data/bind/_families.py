"""Opens the data of a table. The members of a family become one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.data import sources
from fccomodel.data.bind import _drawn, _prepared, _where, errors
from fccomodel.data.bind._encode import labels
from fccomodel.data.bind._rows import RowsInUse
from fccomodel.data.bind._spec import TableSpec, by_name
from fccomodel.data.bind.collect import at
from fccomodel.data.sources import DataRequest, Drawing, RawTable, Spool


@dataclass(frozen=True, eq=False, kw_only=True)
class Opened:
    """The data of a table, opened, before its columns are made.

    raw       the source
    rows      the rows in use
    record    the origin, and the rows that were left out
    family    for a family, each row's position in ``members``
    members   the labels of the family's members
    spec      the part of the section that is still to be done; None for all of it
    """

    raw: RawTable
    rows: RowsInUse
    record: dict[str, Any]
    family: np.ndarray | None = None
    members: tuple[str, ...] = ()
    spec: TableSpec | None = None

    def only(self, numbers: np.ndarray) -> Opened:
        """The rows with these numbers in the source."""
        in_use = np.arange(self.raw.n)
        if self.rows.indices is not None:
            in_use = self.rows.indices
        mask = np.isin(in_use, numbers)
        family = None
        if self.family is not None:
            family = self.family[mask]
        return replace(self, rows=self.rows.keep(mask), family=family)


#: Folders that patterns and queries may read if the user gave them directly, not by a binding file.
EVERYWHERE = (Path(Path().absolute().anchor),)


@dataclass(frozen=True, kw_only=True)
class Ways:
    """Settings for opening data.

    folders  folders that relative paths start from
    within   folders that patterns and queries of the binding file may read
    stored   the encoding of an earlier binding, by column
    spool    a file for columns that are not held in memory
    columns  columns that only nets read
    drawing  how the rows of these are drawn
    """

    folders: tuple[Path, ...]
    within: tuple[Path, ...] = ()
    stored: Mapping[str, Any]
    spool: Spool | None = None
    columns: frozenset[str] = frozenset()
    drawing: Drawing = field(default_factory=Drawing)


def open_table(
    table: ir.Table,
    spec: TableSpec,
    value: Any,
    where: str | None,
    elements: tuple[str, ...] | None,
    ways: Ways,
) -> Opened:
    """The table's rows that satisfy ``where``. F0504 without data, F0510 if no rows are left.

    spec       the section of the table
    value      data in place of the section's source
    where      a condition in place of the section's
    elements   the elements of a family's set; None if only the data list them
    """
    if table.family is None:
        return _open_one(table, spec, value, where, ways)
    return _open_family(table, spec, value, where, elements, ways)


def _open_one(table: ir.Table, spec: TableSpec, value: Any, where: str | None, ways: Ways) -> Opened:
    """The rows of one source that satisfy the condition."""
    within = ways.within if value is None else EVERYWHERE
    value = spec.source if value is None else value
    if value is None:
        refuse(errors.demands.no_table(table))
    request = DataRequest(
        name=table.name,
        fields=tuple(table.columns),
        folders=ways.folders,
        within=within,
        options=spec.options,
        spool=ways.spool,
        drawn=_drawn.source_names(spec, ways.columns),
        drawing=ways.drawing,
    )
    raw = sources.open(value, request)
    if raw.ready:
        return _open_prepared(table, spec, raw, where, ways)
    if raw.n == 0:
        refuse(errors.tables.no_rows(table.name, raw.called))
    record: dict[str, Any] = {"origin": raw.origin, "rows_read": raw.n, "dropped": []}
    where = spec.where if where is None else where
    rows = RowsInUse(total=raw.n)
    if where:
        with at(spec.where_place if where == spec.where else ""):
            rows = RowsInUse(total=raw.n, indices=_where.rows(where, raw))
        record["where"] = where
        record["dropped"].append({"reason": f"where {where}", "rows": raw.n - rows.n, "kind": "where"})
        if rows.n == 0:
            refuse(errors.tables.no_row_satisfies(table.name, raw.called, where))
    return Opened(raw=raw, rows=rows, record=record)


def _open_prepared(table: ir.Table, spec: TableSpec, raw: RawTable, where: str | None, ways: Ways) -> Opened:
    """A prepared table.

    Its rows satisfy the ``where`` that it was prepared with. Another condition may choose among them to
    judge an answer, or if no column was made with all rows; F0536 otherwise.
    """
    if where is None:
        where = spec.where
    spec = _prepared.section(spec, raw, table.name, ways.stored)
    prepared = raw.prepared
    record: dict[str, Any] = {
        "origin": raw.origin,
        "rows_read": raw.n,
        "dropped": list(prepared["dropped"]),
        "prepared": prepared["origin"],
    }
    for key in ("where", "members", "groups"):
        if key in prepared:
            record[key] = prepared[key]
    rows = RowsInUse(total=raw.n)
    if where and where != prepared.get("where"):
        if not ways.stored and _prepared.by_all_rows(raw):
            refuse(errors.tables.rows_of_prepared(table.name, raw.called))
        rows = RowsInUse(total=raw.n, indices=_where.rows(where, raw))
        record["dropped"].append({"reason": f"where {where}", "rows": raw.n - rows.n, "kind": "where"})
        if rows.n == 0:
            refuse(errors.tables.no_row_satisfies(table.name, raw.called, where))
    return Opened(raw=raw, rows=rows, record=record, spec=spec)


def _open_family(
    table: ir.Table,
    spec: TableSpec,
    value: Any,
    where: str | None,
    elements: tuple[str, ...] | None,
    ways: Ways,
) -> Opened:
    """The rows of a family: from a source for each member, or from one source with a column of members."""
    binder = table.family
    assert binder is not None
    members: dict[str, Any] = dict(spec.members)
    if isinstance(value, Mapping) and (spec.family is None or not set(value) & set(table.columns)):
        members |= by_name(value, table.name)
        value = None
    if members and (value is not None or spec.source is not None):
        refuse(errors.families.source_and_members(table.name, members))
    if members:
        return _join(table, spec, members, where, elements, ways)
    if value is None and spec.source is None:
        refuse(
            errors.demands.no_family(table.name, binder.domain.name, elements[0] if elements else "MEMBER")
        )
    opened = _open_one(table, spec, value, where, ways)
    ready = opened.raw.ready.get(ir.FAMILY)
    if ready is not None:
        member_of_row = ready.values
        if opened.rows.indices is not None:
            member_of_row = member_of_row[opened.rows.indices]
        distinct, codes = np.unique(member_of_row, return_inverse=True)
        if ready.labels is None:
            names = tuple(f"{member:.12g}" for member in distinct)
        else:
            names = tuple(ready.labels[int(member)] for member in distinct)
        return _in_set_order(table, opened, codes, names, elements)
    if spec.family is None:
        refuse(errors.families.no_column(table.name))
    for name in spec.family.columns:
        demand_column(opened.raw, name, f"{table.name}: family")
    label_column = labels(opened.raw, spec.family, opened.rows, f"{table.name}: family")
    assert label_column.labels is not None
    return _in_set_order(table, opened, label_column.values, label_column.labels, elements)


def _in_set_order(
    table: ir.Table,
    opened: Opened,
    codes: np.ndarray,
    member_labels: tuple[str, ...],
    elements: tuple[str, ...] | None,
) -> Opened:
    """The family with its members in the order of its set.

    codes           for each row, the position of its member in ``member_labels``
    elements        the elements of the set; None for the order of ``member_labels``

    F0527 for a member without rows, and for an unknown member.
    """
    assert table.family is not None
    order = elements if elements is not None else member_labels
    set_name = table.family.domain.name
    unknown = [label for label in member_labels if label not in order]
    if unknown:
        refuse(errors.families.not_a_member(table.name, unknown[0], set_name, order))
    without_rows = [label for label in order if label not in member_labels]
    if without_rows:
        refuse(errors.families.members_without_data(table.name, without_rows, set_name))
    position = np.array([order.index(label) for label in member_labels], np.int64)
    return replace(opened, family=position[codes], members=order)


def _join(
    table: ir.Table,
    spec: TableSpec,
    members: Mapping[str, Any],
    where: str | None,
    elements: tuple[str, ...] | None,
    ways: Ways,
) -> Opened:
    """The members of a family one after another, in the order of their set."""
    if elements is not None:
        order = [name for name in elements if name in members]
    else:
        order = list(members)
    order += [name for name in members if name not in order]
    opened = [_open_member(table, spec, name, members[name], where, ways) for name in order]
    raw_tables = [part.raw for part in opened]
    starts = np.cumsum([0, *(raw.n for raw in raw_tables)])
    indices = None
    if any(part.rows.indices is not None for part in opened):
        numbers = []
        for start, part in zip(starts, opened, strict=False):
            in_part = np.arange(part.raw.n) if part.rows.indices is None else part.rows.indices
            numbers.append(start + in_part)
        indices = np.concatenate(numbers)
    first_rows = tuple(
        (f"{table.name}.{name}", int(start)) for name, start in zip(order, starts, strict=False)
    )
    rows = RowsInUse(total=int(starts[-1]), indices=indices, parts=first_rows)
    record: dict[str, Any] = {
        "origin": ", ".join(dict.fromkeys(raw.origin for raw in raw_tables)),
        "rows_read": int(starts[-1]),
        "dropped": [drop for part in opened for drop in part.record["dropped"]],
        "members": {name: part.record for name, part in zip(order, opened, strict=True)},
    }
    codes = np.repeat(np.arange(len(order)), [part.rows.n for part in opened])
    raw = sources.joined(raw_tables, str(record["origin"]))
    if ways.spool is not None:
        raw = ways.spool.over(raw)
    joined = Opened(raw=raw, rows=rows, record=record)
    return _in_set_order(table, joined, codes, tuple(order), elements)


def _open_member(
    table: ir.Table, spec: TableSpec, name: str, given: Any, where: str | None, ways: Ways
) -> Opened:
    """The rows of one member, from its section of the binding file or from data.

    Condition and settings of the family's section hold if the member's section has none.
    """
    if isinstance(given, TableSpec):
        member_spec, value = given, None
    else:
        member_spec, value = spec.members.get(name, TableSpec()), given
    merged = TableSpec(
        source=member_spec.source,
        where=member_spec.where or spec.where,
        options={**spec.options, **member_spec.options},
        where_place=member_spec.where_place if member_spec.where else spec.where_place,
    )
    member_table = ir.Table(name=f"{table.name}.{name}", columns=table.columns)
    return _open_one(member_table, merged, value, where, ways)


def demand_column(raw: RawTable, name: str, what: str) -> None:
    """F0508 if the data have no such column."""
    if name in raw.numeric:
        return
    refuse(errors.tables.no_column(what, name, raw))
