"""Columns whose rows are drawn: those that only nets read, and what ``bind`` was told about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.data import errors as drawn_errors
from fccomodel.data.bind._encode import Built
from fccomodel.data.bind._rows import RowsInUse
from fccomodel.data.bind._spec import ColumnEntry, TableSpec
from fccomodel.data.drawn import DrawnColumn
from fccomodel.data.sources import Drawing, Keyed, RawTable

if TYPE_CHECKING:
    from fccomodel.data.sources.drawn_rows import RowSource


def only_nets_read(problem: ir.Problem) -> dict[str, frozenset[str]]:
    """The columns of vectors that formulas read only as inputs of nets, by table."""
    read = {
        (child.binder.domain.table, child.name)
        for node in _nodes(problem)
        if not isinstance(node, ir.NetCall)
        for child in (node, *node.children)
        if isinstance(child, ir.Column) and isinstance(child.binder.domain, ir.RowSet) and node is not child
    }
    return {
        name: frozenset(
            column
            for column, kind in table.columns.items()
            if kind.shape and kind.domain is None and (name, column) not in read
        )
        for name, table in problem.tables.items()
    }


def _nodes(problem: ir.Problem) -> Iterator[ir.Expr]:
    """Every node of the model, the conditions of its sets among them."""
    seen: set[int] = set()
    domains = [*problem.sets.values(), *(b.domain for c in problem.constraints for b in c.binders)]
    roots = [*problem.roots, *(part for domain in domains for part in _conditions(domain))]
    while roots:
        fresh = [node for node in ir.walk(*roots) if id(node) not in seen]
        seen.update(map(id, fresh))
        yield from fresh
        binders = [b for node in fresh if isinstance(node, ir.Reduce) for b in node.binders]
        binders += [node.binder for node in fresh if isinstance(node, ir.Exists)]
        roots = [part for b in binders for part in _conditions(b.domain) if id(part) not in seen]


def _conditions(domain: ir.Set) -> tuple[ir.Expr, ...]:
    """The expressions of a set. A condition that is a single column counts as read, through ``not``."""
    if isinstance(domain, ir.RowSet) and domain.where is not None:
        return (domain.where,)
    return tuple(getattr(domain, "args", ()))


@dataclass(frozen=True, eq=False, kw_only=True)
class DrawnArguments:
    """The arguments of ``bind`` about rows that are drawn."""

    transform: Mapping[str, Any] = field(default_factory=dict)
    eval_transform: Mapping[str, Any] = field(default_factory=dict)
    workers: int = 0

    def __bool__(self) -> bool:
        return bool(self.transform or self.eval_transform or self.workers)

    def of(self, table: ir.Table, columns: frozenset[str]) -> Drawing:
        """The arguments about one table, whose ``columns`` may be drawn."""
        if not columns:
            return Drawing()
        return Drawing(
            steps=_of_table(self.transform, table.name, columns),
            looks=_of_table(self.eval_transform, table.name, columns),
            workers=self.workers,
        )

    def check(self, problem: ir.Problem, columns: Mapping[str, frozenset[str]]) -> None:
        """F0539 for a transform of a column that is none of those that may be drawn."""
        for name in (*self.transform, *self.eval_transform):
            table, _, column = name.rpartition(".")
            inside = [table] if table else list(columns)
            if any(column in columns.get(one, ()) for one in inside):
                continue
            declared = any(column in problem.tables[one].columns for one in inside if one in problem.tables)
            why = "formulas read it" if declared else "the model has no such column"
            refuse(drawn_errors.not_drawn(name, why))
        if self and not any(columns.values()):
            refuse(drawn_errors.not_drawn("a column", "formulas read all columns of vectors"))


def _of_table(given: Mapping[str, Any], table: str, columns: frozenset[str]) -> dict[str, Any]:
    """The transforms of a table's columns."""
    forms = {name: f for name, f in given.items() if name in columns}
    return forms | {c: given[f"{table}.{c}"] for c in columns if f"{table}.{c}" in given}


def keyed(problem: ir.Problem, data: Mapping[str, Any], keys: Any) -> dict[str, Any]:
    """Data sets with their ``keys``: a table of the columns that formulas read, or such by table.

    Raises F0539 if it is not clear whose keys they are.
    """
    if keys is None:
        return dict(data)
    named = isinstance(keys, Mapping) and keys and set(keys) <= set(problem.tables)
    of_tables = dict(keys) if named else {}
    if not named:
        tables = [name for name in data if name in problem.tables]
        if len(tables) != 1:
            refuse(drawn_errors.keys_of_which(tables))
        of_tables = {tables[0]: keys}
    return {
        name: Keyed(value, of_tables[name]) if name in of_tables else value for name, value in data.items()
    }


def source_names(spec: TableSpec, columns: frozenset[str]) -> frozenset[str]:
    """The names in the source of columns that may be drawn, as far as they are taken as they are."""
    plain = {name: _source_name(spec.entries.get(name), name) for name in columns}
    others = {
        column
        for name, entry in spec.entries.items()
        if name not in columns or plain[name] is None
        for column in entry.columns
        if entry.columns != "*"
    }
    return frozenset(name for name in plain.values() if name is not None and name not in others)


def _source_name(entry: ColumnEntry | None, name: str) -> str | None:
    """The single column of the source that an entry takes, or None for more than that."""
    if entry is None:
        return name
    if entry.columns == "*" or len(entry.columns) != 1 or entry.encode or entry.intercept:
        return None
    return entry.columns[0]


def column(
    raw: RawTable, entry: ColumnEntry, rows: RowsInUse, name: str, what: str, drawing: Drawing
) -> Built:
    """A column whose rows are fetched when they are asked for."""
    own = entry.columns[0]
    if entry.scale:
        refuse(drawn_errors.scaled_rows(what))
    source = raw.drawn[own]
    source.add(name, own, drawing.steps.get(name), drawing.looks.get(name))
    source.probe(raw.n)
    numbers = np.arange(raw.n) if rows.indices is None else rows.indices
    return Built(
        values=DrawnColumn(source, name, numbers),  # type: ignore[arg-type]
        encoding={"kind": "vector", "column": own},
        notes=_notes(source, what, steps=name in drawing.steps),
    )


def _notes(source: RowSource, what: str, *, steps: bool) -> tuple[str, ...]:
    """The notes of a report about rows that change."""
    if source.random:
        return (
            f"{what}: rows of {source.what} change from one reading to the next; steps draw them anew, looks "
            "and this report see one draw of each row",
        )
    if steps:
        return (
            f"{what}: transformed anew at every draw of a step; looks and this report see rows without that",
        )
    return ()
