"""Rows of bound tables: which the problem averages over, which are alike, and the same problem on some
of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.data import errors
from fccomodel.data.bound import Bound, BoundTable


def averaged(problem: ir.Problem) -> list[str]:
    """The tables whose rows some expectation, sum or extreme ranges over, in alphabetical order."""
    reduces = problem.expressions(ir.Reduce)
    return sorted(
        {b.domain.table for node in reduces for b in node.binders if isinstance(b.domain, ir.RowSet)}
    )


def strata(bound: Bound, table: BoundTable) -> np.ndarray:
    """For each row, the number of its stratum: rows agree in all labels and listed values (classes,
    groups, family members)."""
    kinds = bound.problem.tables[table.name].columns
    keys = [table.columns[name] for name, kind in kinds.items() if kind.domain is not None and not kind.shape]
    if ir.FAMILY in table.columns:
        keys += [table.columns[ir.FAMILY]]
    if keys:
        return np.unique(np.stack(keys, axis=1), axis=0, return_inverse=True)[1].ravel()
    return np.zeros(table.n, np.int64)


def part(bound: Bound, keep: Mapping[str, np.ndarray]) -> Bound:
    """The same problem on some rows (by table booleans, or positions, each as often as it is named);
    scaling and labels stay those of all rows."""
    tables = dict(bound.tables)
    for name, chosen in keep.items():
        table, at = tables[name], np.flatnonzero(chosen) if chosen.dtype == bool else chosen
        columns = {column: values[at] for column, values in table.columns.items()}
        tables[name] = dataclasses.replace(table, n=len(at), columns=columns, rows=table.numbers[at])
    return dataclasses.replace(
        bound, tables=tables, dims={**bound.dims, **{name: tables[name].n for name in keep}}
    )


def sampled(bound: Bound) -> list[str]:
    """The tables of ``averaged`` whose rows can be a sample; F0811 where there are none, or where
    something has an entry for each row."""
    tables = averaged(bound.problem)
    if not tables:
        refuse(errors.no_rows())
    for name, owner in lengths(bound.problem):
        if name in tables:
            refuse(errors.entry_for_each_row(name, owner))
    return tables


def kinds(bound: Bound) -> dict[str, np.ndarray]:
    """By table that the problem averages over, the strata of its rows."""
    return {name: strata(bound, bound.tables[name]) for name in sampled(bound)}


def held(
    bound: Bound, share: float, seed: int = 0, members: Mapping[str, np.ndarray] | None = None
) -> dict[str, np.ndarray]:
    """By table that the problem averages over, the rows to hold out, as booleans; each table by itself
    (``members``: its ``kinds``, where they are known already).

    The same share of every stratum is held out, at least one row and never all: no class or group
    is lost on either side. A row that is alone in its stratum stays.
    """
    rng = np.random.default_rng(seed)
    if members is None:
        members = kinds(bound)
    return {name: _held(of_rows, share, rng) for name, of_rows in members.items()}


def _held(members: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    order = rng.permutation(len(members))
    order = order[np.argsort(members[order], kind="stable")]
    sizes = np.bincount(members)
    wanted = np.minimum(np.maximum(1, np.rint(share * sizes)), sizes - 1)
    place = np.arange(len(members)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    mask = np.zeros(len(members), dtype=bool)
    mask[order[place < np.repeat(wanted, sizes)]] = True
    return mask


def apart(bound: Bound, held: Mapping[str, np.ndarray]) -> list[str]:
    """What was held out, in a sentence for each table."""
    lines = []
    for name, mask in held.items():
        sizes = np.bincount(strata(bound, bound.tables[name]))
        if len(sizes) > 1:
            alike = f", the same share of each of {len(sizes)} classes and groups"
        else:
            alike = ""
        if len(sizes) > 1:
            alone = int((sizes == 1).sum())
        else:
            alone = 0
        if alone:
            stays = f"; {alone} that {'is' if alone == 1 else 'are'} alone in theirs stay{'s' * (alone == 1)}"
        else:
            stays = ""
        lines.append(f"{name}: {mask.sum():,} of {len(mask):,} rows held out at random{alike}{stays}")
    return lines


def drawn(bound: Bound, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """By table that the problem averages over, as many rows as it has, drawn with replacement, by
    their positions.

    Members of a family keep their numbers of rows. Of each class and group there is a row at least:
    one of those drawn that has others of its kind makes room.
    """
    return {name: _drawn(bound, bound.tables[name], rng) for name in sampled(bound)}


def _drawn(bound: Bound, table: BoundTable, rng: np.random.Generator) -> np.ndarray:
    member = table.columns.get(ir.FAMILY, np.zeros(table.n))
    order = np.argsort(member, kind="stable")
    _, first, size = np.unique(member[order], return_index=True, return_counts=True)
    rows = order[np.repeat(first, size) + rng.integers(0, np.repeat(size, size))]
    kinds = strata(bound, table)
    for lost in np.setdiff1d(kinds, kinds[rows]):
        its = rng.choice(np.flatnonzero(kinds == lost))
        spare = (np.bincount(kinds[rows], minlength=kinds.max() + 1)[kinds[rows]] > 1) & (
            member[rows] == member[its]
        )
        if spare.any():
            rows[rng.choice(np.flatnonzero(spare))] = its
    return rows


def labels_alone(bound: Bound) -> dict[str, dict[str, Any]]:
    """What was learned of labels and families, by table and column, without scales and categories."""
    return {
        name: {
            column: record
            for column, record in table.encoding.items()
            if record.get("kind") in ("labels", "family")
        }
        for name, table in bound.tables.items()
    }


def lengths(problem: ir.Problem) -> Iterator[tuple[str, str]]:
    """(table, who) for every variable or array with an entry per row."""
    tables = {name: name for name in problem.tables}
    tables |= {name: s.table for name, s in problem.sets.items() if isinstance(s, ir.RowSet)}
    shapes = {f"`var {name}`": variable.shape for name, variable in problem.variables.items()}
    shapes |= {f"`data {name}`": array.type.shape for name, array in problem.arrays.items()}
    for owner, shape in shapes.items():
        yield from ((tables[size], owner) for size in shape if size in tables)
