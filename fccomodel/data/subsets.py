"""Rows of bound tables: which the problem averages over, which are alike, and the same problem on some of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

import numpy as np

from fccomodel.core import ir
from fccomodel.data.bound import Bound, BoundTable


def averaged(problem: ir.Problem) -> list[str]:
    """The tables whose rows some expectation, sum or extreme ranges over, in alphabetical order."""
    reduces = (node for node in ir.walk(*problem.roots) if isinstance(node, ir.Reduce))
    return sorted({b.domain.table for node in reduces for b in node.binders if isinstance(b.domain, ir.RowSet)})


def strata(bound: Bound, table: BoundTable) -> np.ndarray:
    """For each row, the number of its stratum: rows agree in all labels and listed values (classes, groups, family members)."""
    kinds = bound.problem.tables[table.name].columns
    keys = [table.columns[name] for name, kind in kinds.items() if kind.domain is not None and not kind.shape]
    keys += [table.columns[ir.FAMILY]] if ir.FAMILY in table.columns else []
    return np.unique(np.stack(keys, axis=1), axis=0, return_inverse=True)[1].ravel() if keys else np.zeros(table.n, np.int64)


def part(bound: Bound, keep: Mapping[str, np.ndarray]) -> Bound:
    """The same problem on some rows (booleans by table); scaling and labels stay those of all rows."""
    tables = dict(bound.tables)
    for name, mask in keep.items():
        table = tables[name]
        columns = {column: values[mask] for column, values in table.columns.items()}
        tables[name] = dataclasses.replace(table, n=int(mask.sum()), columns=columns)
    return dataclasses.replace(bound, tables=tables, dims={**bound.dims, **{name: tables[name].n for name in keep}})


def lengths(problem: ir.Problem) -> Iterator[tuple[str, str]]:
    """(table, who) for every variable or array with an entry per row."""
    tables = {name: name for name in problem.tables}
    tables |= {name: s.table for name, s in problem.sets.items() if isinstance(s, ir.RowSet)}
    shapes = {f"`var {name}`": variable.shape for name, variable in problem.variables.items()}
    shapes |= {f"`data {name}`": array.type.shape for name, array in problem.arrays.items()}
    for owner, shape in shapes.items():
        yield from ((tables[size], owner) for size in shape if size in tables)
