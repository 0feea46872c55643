"""Opening a table's data; a family's members become one table."""

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
from fccomodel.data.bind._rows import Rows
from fccomodel.data.bind._spec import TableSpec, by_name
from fccomodel.data.bind.collect import at
from fccomodel.data.sources import Drawing, RawTable, Request, Spool


@dataclass(frozen=True, eq=False, kw_only=True)
class Opened:
    """Raw rows in use, with what reading them left out; ``family``: each row's position in
    ``members``; ``spec``: what is left of the section to do, where that is less."""

    raw: RawTable
    rows: Rows
    record: dict[str, Any]
    family: np.ndarray | None = None
    members: tuple[str, ...] = ()
    spec: TableSpec | None = None

    def only(self, numbers: np.ndarray) -> Opened:
        """Those rows alone, by their numbers in the source."""
        if self.rows.indices is None:
            every = np.arange(self.raw.n)
        else:
            every = self.rows.indices
        mask = np.isin(every, numbers)
        if self.family is None:
            family = None
        else:
            family = self.family[mask]
        return replace(self, rows=self.rows.keep(mask), family=family)


#: Where a pattern or a query reads that the user gave in person, not by a binding file.
EVERYWHERE = (Path(Path().absolute().anchor),)


@dataclass(frozen=True, kw_only=True)
class Ways:
    """How data are opened.

    folders  where relative paths are looked for
    within   where the patterns and queries of the binding file may read
    stored   what an earlier binding learned
    spool    where columns go that are not held in memory
    columns  columns that only nets read, and ``drawing``, how their rows are drawn
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
    """The table's rows after ``where``. F0504 where there are no data, F0510 where no rows are left.

    ``value`` replaces the section's source, ``where`` its condition; ``elements`` are those of a
    family's set, None where only the data list them.
    """
    if table.family is None:
        return _open_one(table, spec, value, where, ways)
    return _open_family(table, spec, value, where, elements, ways)


def _open_one(table: ir.Table, spec: TableSpec, value: Any, where: str | None, ways: Ways) -> Opened:
    within = ways.within if value is None else EVERYWHERE
    value = spec.source if value is None else value
    if value is None:
        refuse(errors.demands.no_table(table))
    request = Request(
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
    rows = Rows(total=raw.n)
    if where:
        with at(spec.where_place if where == spec.where else ""):
            rows = Rows(total=raw.n, indices=_where.rows(where, raw))
        record["where"] = where
        record["dropped"].append({"reason": f"where {where}", "rows": raw.n - rows.n, "kind": "where"})
        if rows.n == 0:
            refuse(errors.tables.no_row_satisfies(table.name, raw.called, where))
    return Opened(raw=raw, rows=rows, record=record)


def _open_prepared(table: ir.Table, spec: TableSpec, raw: RawTable, where: str | None, ways: Ways) -> Opened:
    """A prepared table, whose ``where`` has been heeded; a further one chooses rows for an answer that
    is there, or leaves some out where no column was made by all of them (F0536 else)."""
    spec_where, spec = spec.where, _prepared.section(spec, raw, table.name, ways.stored)
    was = raw.prepared
    record = {key: was[key] for key in ("where", "members", "groups") if key in was}
    record = {
        "origin": raw.origin,
        "rows_read": raw.n,
        "dropped": list(was["dropped"]),
        "prepared": was["origin"],
    } | record
    rows, where = Rows(total=raw.n), spec_where if where is None else where
    if where and where != was.get("where"):
        if not ways.stored and _prepared.by_all_rows(raw):
            refuse(errors.tables.rows_of_prepared(table.name, raw.called))
        rows = Rows(total=raw.n, indices=_where.rows(where, raw))
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
    if (ready := opened.raw.ready.get(ir.FAMILY)) is not None:
        if opened.rows.indices is None:
            of_rows = ready.values
        else:
            of_rows = ready.values[opened.rows.indices]
        distinct, codes = np.unique(of_rows, return_inverse=True)
        names = tuple(
            f"{value:.12g}" if ready.labels is None else ready.labels[int(value)] for value in distinct
        )
        return _in_set_order(table, opened, codes, names, elements)
    if spec.family is None:
        refuse(errors.families.no_column(table.name))
    for name in spec.family.columns:
        demand_column(opened.raw, name, f"{table.name}: family")
    built = labels(opened.raw, spec.family, opened.rows, f"{table.name}: family")
    assert built.labels is not None
    return _in_set_order(table, opened, built.values, built.labels, elements)


def _in_set_order(
    table: ir.Table,
    opened: Opened,
    codes: np.ndarray,
    member_labels: tuple[str, ...],
    elements: tuple[str, ...] | None,
) -> Opened:
    """The family's positions in the order of its set; F0527 where a member lacks rows or is unknown."""
    assert table.family is not None
    order = elements if elements is not None else member_labels
    set_name = table.family.domain.name
    if unknown := [label for label in member_labels if label not in order]:
        refuse(errors.families.not_a_member(table.name, unknown[0], set_name, order))
    if lacking := [label for label in order if label not in member_labels]:
        refuse(errors.families.members_without_data(table.name, lacking, set_name))
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
    """Members one after another, in the order of their set."""
    if elements is not None:
        order = [name for name in elements if name in members]
    else:
        order = list(members)
    order += [name for name in members if name not in order]
    opened: list[Opened] = []
    for name in order:
        if isinstance(members[name], TableSpec):
            member_spec = members[name]
        else:
            member_spec = spec.members.get(name, TableSpec())
        merged = TableSpec(
            source=member_spec.source,
            where=member_spec.where or spec.where,
            options={**spec.options, **member_spec.options},
            where_place=member_spec.where_place if member_spec.where else spec.where_place,
        )
        if isinstance(members[name], TableSpec):
            value = None
        else:
            value = members[name]
        member_table = ir.Table(name=f"{table.name}.{name}", columns=table.columns)
        opened.append(_open_one(member_table, merged, value, where, ways))
    raw_tables = [part.raw for part in opened]
    starts = np.cumsum([0, *(raw.n for raw in raw_tables)])
    indices = [
        start + (np.arange(raw.n) if part.rows.indices is None else part.rows.indices)
        for start, raw, part in zip(starts, raw_tables, opened, strict=False)
    ]
    unfiltered = all(part.rows.indices is None for part in opened)
    rows = Rows(
        total=int(starts[-1]),
        indices=None if unfiltered else np.concatenate(indices),
        parts=tuple((f"{table.name}.{name}", int(start)) for name, start in zip(order, starts, strict=False)),
    )
    record: dict[str, Any] = {
        "origin": ", ".join(dict.fromkeys(raw.origin for raw in raw_tables)),
        "rows_read": int(starts[-1]),
        "dropped": [drop for part in opened for drop in part.record["dropped"]],
        "members": {name: part.record for name, part in zip(order, opened, strict=True)},
    }
    codes = np.repeat(np.arange(len(order)), [part.rows.n for part in opened])
    whole = sources.joined(raw_tables, str(record["origin"]))
    joined = Opened(raw=whole if ways.spool is None else ways.spool.over(whole), rows=rows, record=record)
    return _in_set_order(table, joined, codes, tuple(order), elements)


def demand_column(raw: RawTable, name: str, what: str) -> None:
    """F0508 where the data have no such column."""
    if name in raw.numeric:
        return
    refuse(errors.tables.no_column(what, name, raw))
