"""Opening a table's data; a family's members become one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fccomodel.core import ir
from fccomodel.core.diagnostics import did_you_mean
from fccomodel.data import sources
from fccomodel.data.bind import _where
from fccomodel.data.bind._encode import labels
from fccomodel.data.bind._errors import at, refuse
from fccomodel.data.bind._rows import Rows
from fccomodel.data.bind._spec import TableSpec
from fccomodel.data.sources import RawColumn, RawTable, Request


@dataclass(frozen=True, eq=False, kw_only=True)
class Opened:
    """Raw rows in use, with what reading them left out; ``family``: each row's position in ``members``."""

    raw: RawTable
    rows: Rows
    record: dict[str, Any]
    family: np.ndarray | None = None
    members: tuple[str, ...] = ()


def open_table(
    table: ir.Table, spec: TableSpec, value: Any, where: str | None, known: tuple[str, ...] | None, folders: tuple[Path, ...]
) -> Opened:
    """The table's rows after ``where``. F0504 where there are no data, F0510 where no rows are left.

    ``value`` replaces the section's source, ``where`` its condition; ``known`` are the elements of a family's set, if known.
    """
    if table.family is None:
        return _open_one(table, spec, value, where, folders)
    return _open_family(table, spec, value, where, known, folders)


def _open_one(table: ir.Table, spec: TableSpec, value: Any, where: str | None, folders: tuple[Path, ...]) -> Opened:
    value = spec.source if value is None else value
    if value is None:
        refuse(
            "F0504",
            f"no data for {table.name}",
            reason=f"{table.name} is a table with columns {', '.join(table.columns)}",
            fix=f'give --data {table.name}=FILE, or [{table.name}] source = "FILE" in the binding file, '
            f"or bind({table.name}=...) in Python",
        )
    raw = sources.open(value, Request(name=table.name, fields=tuple(table.columns), folders=folders, options=spec.options))
    if raw.n == 0:
        refuse("F0510", f"{table.name}: {raw.called} has no rows", fix="give data with at least one row")
    record: dict[str, Any] = {"origin": raw.origin, "rows_read": raw.n, "dropped": []}
    where = spec.where if where is None else where
    rows = Rows(total=raw.n)
    if where:
        with at(spec.where_place if where == spec.where else ""):
            rows = Rows(total=raw.n, chosen=_where.rows(where, raw))
        record["where"] = where
        record["dropped"].append({"reason": f"where {where}", "rows": raw.n - rows.n})
        if rows.n == 0:
            refuse(
                "F0510",
                f"{table.name}: no row of {raw.called} satisfies {where}",
                fix="change where; the values must be spelled as in the data",
            )
    return Opened(raw=raw, rows=rows, record=record)


def _open_family(
    table: ir.Table, spec: TableSpec, value: Any, where: str | None, known: tuple[str, ...] | None, folders: tuple[Path, ...]
) -> Opened:
    binder = table.family
    assert binder is not None
    given: dict[str, Any] = dict(spec.members)
    if isinstance(value, Mapping) and (spec.family is None or not set(value) & set(table.columns)):
        given |= {str(name): member for name, member in value.items()}
        value = None
    if given and (value is not None or spec.source is not None):
        refuse(
            "F0527",
            f"{table.name} has both one source and members {', '.join(given)}",
            fix=f'give each member its section [{table.name}.MEMBER], or one source with family = "column"',
        )
    if given:
        return _join(table, spec, given, where, known, folders)
    if value is None and spec.source is None:
        example = known[0] if known else "MEMBER"
        refuse(
            "F0504",
            f"no data for {table.name}",
            reason=f"{table.name} is a family: one table for each element of {binder.domain.name}",
            fix=f"give --data {table.name}.{example}=FILE for each, or sections [{table.name}.{example}], "
            'or one source with family = "column"',
        )
    if spec.family is None:
        refuse(
            "F0527",
            f"{table.name} is a family, and its data do not say which row belongs to which member",
            fix=f'family = "column" in [{table.name}] of the binding file, or one section [{table.name}.MEMBER] for each',
        )
    opened = _open_one(table, spec, value, where, folders)
    for name in spec.family.columns:
        demand_column(opened.raw, name, f"{table.name}: family")
    built = labels(opened.raw, spec.family, opened.rows, f"{table.name}: family")
    assert built.labels is not None
    return _placed(table, opened, built.values, built.labels, known)


def _placed(table: ir.Table, opened: Opened, codes: np.ndarray, found: tuple[str, ...], known: tuple[str, ...] | None) -> Opened:
    """The family's positions in the order of its set; F0527 where a member lacks rows or is unknown."""
    assert table.family is not None
    order = known if known is not None else found
    name = table.family.domain.name
    if extra := [label for label in found if label not in order]:
        fix = did_you_mean(extra[0], order) or f"{name} has {', '.join(order[:8])}"
        refuse("F0527", f"{table.name}: {extra[0]} is not an element of {name}", fix=fix)
    if lacking := [label for label in order if label not in found]:
        refuse(
            "F0527",
            f"{table.name} has no data for {', '.join(lacking[:8])}",
            reason=f"{table.name} is a family: every element of {name} has its own table",
            fix=f'give [{table.name}.{lacking[0]}] source = "FILE", or --data {table.name}.{lacking[0]}=FILE',
        )
    place = np.array([order.index(label) for label in found], np.int64)
    return Opened(raw=opened.raw, rows=opened.rows, record=opened.record, family=place[codes], members=order)


def _join(
    table: ir.Table,
    spec: TableSpec,
    given: Mapping[str, Any],
    where: str | None,
    known: tuple[str, ...] | None,
    folders: tuple[Path, ...],
) -> Opened:
    """Members one after another, in the order of their set."""
    order = [name for name in known if name in given] if known is not None else list(given)
    order += [name for name in given if name not in order]
    opened: list[Opened] = []
    for name in order:
        member = given[name] if isinstance(given[name], TableSpec) else spec.members.get(name, TableSpec())
        merged = TableSpec(
            source=member.source,
            where=member.where or spec.where,
            options={**spec.options, **member.options},
            where_place=member.where_place if member.where else spec.where_place,
        )
        value = None if isinstance(given[name], TableSpec) else given[name]
        single = ir.Table(name=f"{table.name}.{name}", columns=table.columns)
        opened.append(_open_one(single, merged, value, where, folders))
    raws = [part.raw for part in opened]
    starts = np.cumsum([0, *(raw.n for raw in raws)])
    chosen = [
        start + (np.arange(raw.n) if part.rows.chosen is None else part.rows.chosen)
        for start, raw, part in zip(starts, raws, opened, strict=False)
    ]
    everything = all(part.rows.chosen is None for part in opened)
    rows = Rows(
        total=int(starts[-1]),
        chosen=None if everything else np.concatenate(chosen),
        parts=tuple((f"{table.name}.{name}", int(start)) for name, start in zip(order, starts, strict=False)),
    )
    record: dict[str, Any] = {
        "origin": ", ".join(dict.fromkeys(raw.origin for raw in raws)),
        "rows_read": int(starts[-1]),
        "dropped": [drop for part in opened for drop in part.record["dropped"]],
        "members": {name: part.record for name, part in zip(order, opened, strict=True)},
    }
    codes = np.repeat(np.arange(len(order)), [part.rows.n for part in opened])
    joined = Opened(raw=_concatenated(raws, str(record["origin"])), rows=rows, record=record)
    return _placed(table, joined, codes, tuple(order), known)


def _concatenated(raws: list[RawTable], origin: str) -> RawTable:
    """Tables with the columns that all of them have."""
    first = raws[0]
    names = [name for name in first.names if all(name in raw.numeric for raw in raws)]

    def load(name: str) -> RawColumn:
        parts = [raw.load(name) for raw in raws]
        if bad := next((part for part in parts if part.unusable), None):
            return bad
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
            table = np.array([*(categories.setdefault(text, len(categories)) for text in part.categories or ()), -1])
            codes.append(table[part.values])
        return RawColumn(values=np.concatenate(codes), categories=tuple(categories), dtype=parts[0].dtype)

    return RawTable(
        origin=origin,
        n=sum(raw.n for raw in raws),
        numeric={name: all(raw.numeric[name] for raw in raws) for name in names},
        load=load,
        vectors=frozenset(name for name in names if any(name in raw.vectors for raw in raws)),
        hidden=frozenset(name for name in names if any(name in raw.hidden for raw in raws)),
    )


def demand_column(raw: RawTable, name: str, what: str) -> None:
    """F0508 where the data have no such column."""
    if name in raw.numeric:
        return
    refuse(
        "F0508",
        f"{what}: {raw.called} has no column {name}",
        reason=columns_of(raw),
        fix=did_you_mean(name, raw.names) or "name one of its columns",
    )


def columns_of(raw: RawTable) -> str:
    """A source's columns, for the reason of an error."""
    listed = ", ".join(raw.names[:20]) + (f" and {len(raw.names) - 20} more" if len(raw.names) > 20 else "")
    data = bool(raw.names) and all(_is_number(column) for column in raw.names)
    hint = "; they look like a row of data, and a csv file begins with a line of names" if data else ""
    return f"its columns are {listed}{hint}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
