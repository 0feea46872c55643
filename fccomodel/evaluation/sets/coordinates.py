"""Names of the entries of variables, for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fccomodel.core import ir
from fccomodel.data.bound import Bound
from fccomodel.evaluation.sets import elements


def coordinates(bound: Bound, dim: ir.Dim) -> list[str] | None:
    """The names along a dimension, or None if its entries have only numbers.

    They are the members of a set, or the names of the entries of all vector columns of this length if
    these agree.
    """
    if isinstance(dim, str) and dim in bound.problem.sets:
        domain = bound.problem.sets[dim]
        if isinstance(domain, ir.RowSet):
            return None
        return elements.names(bound, domain)
    namings = {tuple(names) for names in _columns(bound, dim)}
    if len(namings) == 1:
        return list(namings.pop())
    return None


def _columns(bound: Bound, dim: ir.Dim) -> Iterator[list[str]]:
    """The names of the entries of each vector column along a dimension."""
    for name, table in bound.problem.tables.items():
        if name not in bound.tables:
            continue
        encoding = bound.tables[name].encoding
        for column, kind in table.columns.items():
            if kind.shape != (dim,):
                continue
            record = encoding.get(column)
            if isinstance(record, Mapping) and record.get("names"):
                yield [str(entry) for entry in record["names"]]
