"""Opening a table's data; a family's members become one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.data import sources
from fccomodel.data.bind import _where, errors
from fccomodel.data.bind._collect import at
from fccomodel.data.bind._encode import labels
from fccomodel.data.bind._rows import Rows
from fccomodel.data.bind._spec import TableSpec, by_name
from fccomodel.data.sources import RawColumn, RawTable, Request


@dataclass(frozen=True, eq=False, kw_only=True)
class Opened:
    """Raw rows in use, with what reading them left out; ``family``: each row's position in ``members``."""

    raw: RawTable
    rows: Rows
    record: dict[str, Any]
    family: np.ndarray | None = None
    members: tuple[str, ...] = ()

    def only(self, numbers: np.ndarray) -> Opened:
        """Those rows alone, by their numbers in the source."""
        every = np.arange(self.raw.n) if self.rows.indices is None else self.rows.indices
        mask = np.isin(every, numbers)
        family = None if self.family is None else self.family[mask]
        return replace(self, rows=self.rows.keep(mask), family=family)


def open_table(
    table: ir.Table, spec: TableSpec, value: Any, where: str | None, elements: tuple[str, ...] | None, folders: tuple[Path, ...]
) -> Opened:
    """The table's rows after ``where``. F0504 where there are no data, F0510 where no rows are left.

    ``value`` replaces the section's source, ``where`` its condition; ``elements`` are those of a family's set, None where only
    the data list them.
    """
    if table.family is None:
        return _open_one(table, spec, value, where, folders)
    return _open_family(table, spec, value, where, elements, folders)


def _open_one(table: ir.Table, spec: TableSpec, value: Any, where: str | None, folders: tuple[Path, ...]) -> Opened:
    value = spec.source if value is None else value
    if value is None:
        refuse(errors.demands.no_table(table))
    raw = sources.open(value, Request(name=table.name, fields=tuple(table.columns), folders=folders, options=spec.options))
    if raw.n == 0:
        refuse(errors.tables.no_rows(table.name, raw.called))
    record: dict[str, Any] = {"origin": raw.origin, "rows_read": raw.n, "dropped": []}
    where = spec.where if where is None else where
    rows = Rows(total=raw.n)
    if where:
        with at(spec.where_place if where == spec.where else ""):
            rows = Rows(total=raw.n, indices=_where.rows(where, raw))
        record["where"] = where
        record["dropped"].append({"reason": f"where {where}", "rows": raw.n - rows.n})
        if rows.n == 0:
            refuse(errors.tables.no_row_satisfies(table.name, raw.called, where))
    return Opened(raw=raw, rows=rows, record=record)


def _open_family(
    table: ir.Table, spec: TableSpec, value: Any, where: str | None, elements: tuple[str, ...] | None, folders: tuple[Path, ...]
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
        return _join(table, spec, members, where, elements, folders)
    if value is None and spec.source is None:
        refuse(errors.demands.no_family(table.name, binder.domain.name, elements[0] if elements else "MEMBER"))
    if spec.family is None:
        refuse(errors.families.no_column(table.name))
    opened = _open_one(table, spec, value, where, folders)
    for name in spec.family.columns:
        demand_column(opened.raw, name, f"{table.name}: family")
    built = labels(opened.raw, spec.family, opened.rows, f"{table.name}: family")
    assert built.labels is not None
    return _in_set_order(table, opened, built.values, built.labels, elements)


def _in_set_order(
    table: ir.Table, opened: Opened, codes: np.ndarray, member_labels: tuple[str, ...], elements: tuple[str, ...] | None
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
    return Opened(raw=opened.raw, rows=opened.rows, record=opened.record, family=position[codes], members=order)


def _join(
    table: ir.Table,
    spec: TableSpec,
    members: Mapping[str, Any],
    where: str | None,
    elements: tuple[str, ...] | None,
    folders: tuple[Path, ...],
) -> Opened:
    """Members one after another, in the order of their set."""
    order = [name for name in elements if name in members] if elements is not None else list(members)
    order += [name for name in members if name not in order]
    opened: list[Opened] = []
    for name in order:
        member_spec = members[name] if isinstance(members[name], TableSpec) else spec.members.get(name, TableSpec())
        merged = TableSpec(
            source=member_spec.source,
            where=member_spec.where or spec.where,
            options={**spec.options, **member_spec.options},
            where_place=member_spec.where_place if member_spec.where else spec.where_place,
        )
        value = None if isinstance(members[name], TableSpec) else members[name]
        member_table = ir.Table(name=f"{table.name}.{name}", columns=table.columns)
        opened.append(_open_one(member_table, merged, value, where, folders))
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
    joined = Opened(raw=_concatenated(raw_tables, str(record["origin"])), rows=rows, record=record)
    return _in_set_order(table, joined, codes, tuple(order), elements)


def _concatenated(raw_tables: list[RawTable], origin: str) -> RawTable:
    """Tables with the columns that all of them have."""
    first = raw_tables[0]
    names = [name for name in first.names if all(name in raw.numeric for raw in raw_tables)]

    def load(name: str) -> RawColumn:
        parts = [raw.load(name) for raw in raw_tables]
        if unusable_part := next((part for part in parts if part.unusable), None):
            return unusable_part
        if all(part.categories is None for part in parts):
            shapes = {part.values.shape[1:] for part in parts}
            if len(shapes) > 1:
                return RawColumn(
                    values=parts[0].values, unusable=f"the members' rows have shapes {', '.join(map(str, sorted(shapes)))}"
                )
            return RawColumn(values=np.concatenate([part.values for part in parts]), dtype=parts[0].dtype)
        if any(part.categories is None for part in parts):
            return RawColumn(values=parts[0].values, unusable="it is text for some members and numbers for others")
        categories: dict[str, int] = {}
        codes = []
        for part in parts:
            recode = np.array([*(categories.setdefault(text, len(categories)) for text in part.categories or ()), -1])
            codes.append(recode[part.values])
        return RawColumn(values=np.concatenate(codes), categories=tuple(categories), dtype=parts[0].dtype)

    return RawTable(
        origin=origin,
        n=sum(raw.n for raw in raw_tables),
        numeric={name: all(raw.numeric[name] for raw in raw_tables) for name in names},
        load=load,
        vectors=frozenset(name for name in names if any(name in raw.vectors for raw in raw_tables)),
        hidden=frozenset(name for name in names if any(name in raw.hidden for raw in raw_tables)),
    )


def demand_column(raw: RawTable, name: str, what: str) -> None:
    """F0508 where the data have no such column."""
    if name in raw.numeric:
        return
    refuse(errors.tables.no_column(what, name, raw))
