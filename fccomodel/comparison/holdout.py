"""A share of the rows held out: those left to solve on, and those to judge by, in the same groups."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from fccomodel import ir
from fccomodel.bound import Bound, BoundTable
from fccomodel.elements import FAMILY
from fccomodel.files import fail

SHARE = 0.2


def hold_out(bound: Bound, share: float = SHARE, seed: int = 0) -> tuple[Bound, Bound]:
    """(the rows to solve on, the rows held out) of every table that the problem averages over.

    Rows that agree in all labels and listed values (classes, groups, members of a family) are a stratum; the same share is held
    out of each, at least one row and never all: no group is lost on either side. A row that is alone in its stratum stays.
    """
    tables = sorted(_averaged(bound.problem))
    if not tables:
        raise fail("F0811", "There are no rows to hold out", reason="The problem draws from distributions alone.")
    for name, owner in _lengths(bound.problem):
        if name in tables:
            raise fail(
                "F0811",
                f"Rows of `{name}` cannot be held out: {owner} has an entry for each of them",
                fix="Name the rows to validate on: --validation \"split == 'val'\".",
            )
    rng = np.random.default_rng(seed)
    held = {name: _chosen(bound, bound.tables[name], share, rng) for name in tables}
    return _part(bound, {name: ~mask for name, mask in held.items()}), _part(bound, held)


def _chosen(bound: Bound, table: BoundTable, share: float, rng: np.random.Generator) -> np.ndarray:
    """A table's rows to hold out, as booleans."""
    kinds = bound.problem.tables[table.name].columns
    keys = [table.columns[name] for name, kind in kinds.items() if kind.domain is not None and not kind.shape]
    keys += [table.columns[FAMILY]] if FAMILY in table.columns else []
    strata = np.unique(np.stack(keys, axis=1), axis=0, return_inverse=True)[1].ravel() if keys else np.zeros(table.n, np.int64)
    held = np.zeros(table.n, dtype=bool)
    for stratum in range(strata.max(initial=-1) + 1):
        rows = np.flatnonzero(strata == stratum)
        count = min(max(1, round(share * len(rows))), len(rows) - 1)
        held[rng.permutation(rows)[:count]] = True
    return held


def _part(bound: Bound, keep: dict[str, np.ndarray]) -> Bound:
    """The same problem on some rows of its tables; scaling and labels stay those of all rows."""
    tables = dict(bound.tables)
    for name, mask in keep.items():
        table = tables[name]
        columns = {column: values[mask] for column, values in table.columns.items()}
        tables[name] = dataclasses.replace(table, n=int(mask.sum()), columns=columns)
    return dataclasses.replace(bound, tables=tables, dims={**bound.dims, **{name: tables[name].n for name in keep}})


def _averaged(problem: ir.Problem) -> set[str]:
    """The tables whose rows some expectation, sum or extreme ranges over."""
    roots = [problem.objective.expr, *(c.body for c in problem.constraints)]
    reduces = (node for root in roots for node in ir.walk(root) if isinstance(node, ir.Reduce))
    return {b.domain.table for node in reduces for b in node.binders if isinstance(b.domain, ir.RowSet)}


def _lengths(problem: ir.Problem) -> Iterator[tuple[str, str]]:
    """(table, who) for every variable or array with an entry per row."""
    tables = {name: name for name in problem.tables}
    tables |= {name: s.table for name, s in problem.sets.items() if isinstance(s, ir.RowSet)}
    shapes = {f"`var {name}`": variable.shape for name, variable in problem.variables.items()}
    shapes |= {f"`data {name}`": array.type.shape for name, array in problem.arrays.items()}
    for owner, shape in shapes.items():
        yield from ((tables[size], owner) for size in shape if size in tables)
