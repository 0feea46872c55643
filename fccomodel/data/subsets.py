"""Subsets of the rows of bound tables: strata, held-out rows, samples, and the problem on a subset."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from fccomodel.core import ir
from fccomodel.core.diagnostics import refuse
from fccomodel.data import errors
from fccomodel.data.bound import Bound, BoundTable


def averaged(problem: ir.Problem) -> list[str]:
    """The tables whose rows an expectation, a sum or an extreme ranges over, in alphabetical order."""
    reduces = problem.expressions(ir.Reduce)
    return sorted(
        {b.domain.table for node in reduces for b in node.binders if isinstance(b.domain, ir.RowSet)}
    )


def strata(bound: Bound, table: BoundTable, of: Collection[str] | None = None) -> np.ndarray:
    """For each row, the number of its stratum.

    The rows of a stratum agree in all labels and listed values: classes, groups, family members.

    of   the columns that count, by name; None for all columns
    """
    kinds = bound.problem.tables[table.name].columns
    listed = [name for name, kind in kinds.items() if kind.domain is not None and not kind.shape]
    keys = [table.columns[name] for name in listed if of is None or name in of]
    if ir.FAMILY in table.columns:
        keys.append(table.columns[ir.FAMILY])
    stratum = np.zeros(table.n, np.int64)
    for key in keys:
        values = _numbered(key)
        stratum = _numbered(stratum * (values.max(initial=0) + 1) + values)
    return stratum


def _numbered(values: np.ndarray) -> np.ndarray:
    """For each value its place among the distinct values, in ascending order."""
    low, high = values.min(initial=0), values.max(initial=0)
    whole = values.dtype.kind in "iu" or bool((values == np.rint(values)).all())
    if not whole or high - low > len(values):
        return np.unique(values, return_inverse=True)[1].ravel()
    places = (values - low).astype(np.int64)
    is_there = np.bincount(places) > 0
    return (np.cumsum(is_there) - 1)[places]


def part(bound: Bound, keep: Mapping[str, np.ndarray]) -> Bound:
    """The problem on some rows; scaling and labels stay those of all rows.

    keep  for each table a mask of its rows, or positions of rows, which may repeat
    """
    tables = dict(bound.tables)
    for name, chosen in keep.items():
        table = tables[name]
        at = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
        columns = {column: values[at] for column, values in table.columns.items()}
        tables[name] = dataclasses.replace(table, n=len(at), columns=columns, rows=table.numbers[at])
    dims = {**bound.dims, **{name: tables[name].n for name in keep}}
    return dataclasses.replace(bound, tables=tables, dims=dims)


def sampled(bound: Bound) -> list[str]:
    """The tables of ``averaged``, if their rows can be sampled.

    Raises FccoError (F0811) if there are none, or a variable or an array has an entry for each row.
    """
    tables = averaged(bound.problem)
    if not tables:
        refuse(errors.no_rows())
    for name, owner in lengths(bound.problem):
        if name in tables:
            refuse(errors.entry_for_each_row(name, owner))
    return tables


def kinds(bound: Bound, of: Collection[str] | None = None) -> dict[str, np.ndarray]:
    """The strata of the rows, for each table that the problem averages over (``of``: see ``strata``)."""
    return {name: strata(bound, bound.tables[name], of) for name in sampled(bound)}


def mentioned(problem: ir.Problem) -> set[str]:
    """The names of the columns in a problem's expressions and in the conditions of its sets."""
    binders = [binder for reduction in problem.expressions(ir.Reduce) for binder in reduction.binders]
    binders += [binder for constraint in problem.constraints for binder in constraint.binders]
    domains = [*problem.sets.values(), *(binder.domain for binder in binders)]
    conditions = [constraint.condition for constraint in problem.constraints]
    conditions += [domain.where for domain in domains if isinstance(domain, ir.RowSet)]
    roots = [*problem.roots, *(condition for condition in conditions if condition is not None)]
    return {node.name for node in ir.walk(*roots) if isinstance(node, ir.Column) and node.name is not None}


def held(
    bound: Bound, share: float, seed: int = 0, members: Mapping[str, np.ndarray] | None = None
) -> dict[str, np.ndarray]:
    """Masks of the rows to hold out, for each table that the problem averages over.

    The same share of every stratum is held out, at least one row and never all, so no class or group
    is lost on either side. A row that is alone in its stratum stays.

    members  the result of ``kinds``, if it is known already
    """
    rng = np.random.default_rng(seed)
    if members is None:
        members = kinds(bound)
    return {name: _held(of_rows, share, rng, spare=1) for name, of_rows in members.items()}


def representative(
    bound: Bound, share: float, seed: int, members: Mapping[str, np.ndarray], least: int = 1
) -> dict[str, np.ndarray]:
    """Masks of rows that stand for all rows: the same share of every stratum, and at least ``least`` of
    its rows, so that no class or group is lost. ``members`` is the result of ``kinds``."""
    rng = np.random.default_rng(seed)
    return {name: _held(of_rows, share, rng, least=least, spare=0) for name, of_rows in members.items()}


def _held(
    members: np.ndarray, share: float, rng: np.random.Generator, *, least: int = 1, spare: int
) -> np.ndarray:
    """A mask of a share of each stratum: at least ``least`` rows, which leaves at least ``spare`` of
    them; ``members`` has the stratum of each row."""
    order = rng.permutation(len(members))
    order = order[np.argsort(members[order], kind="stable")]
    sizes = np.bincount(members)
    quota = np.minimum(np.maximum(least, np.rint(share * sizes)), sizes - spare)
    place = np.arange(len(members)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    mask = np.zeros(len(members), dtype=bool)
    mask[order[place < np.repeat(quota, sizes)]] = True
    return mask


def apart(bound: Bound, held: Mapping[str, np.ndarray]) -> list[str]:
    """A sentence about the held-out rows of each table."""
    lines = []
    for name, mask in held.items():
        line = f"{name}: {mask.sum():,} of {len(mask):,} rows held out at random"
        sizes = np.bincount(strata(bound, bound.tables[name]))
        if len(sizes) > 1:
            line += f", the same share of each of {len(sizes)} classes and groups"
            alone = int((sizes == 1).sum())
            if alone == 1:
                line += "; 1 that is alone in theirs stays"
            elif alone:
                line += f"; {alone} that are alone in theirs stay"
        lines.append(line)
    return lines


def drawn(bound: Bound, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Positions of rows drawn with replacement, for each table that the problem averages over.

    As many rows are drawn as the table has; members of a family keep their numbers of rows. Each
    stratum keeps at least one row: it replaces a drawn row whose stratum was drawn several times.
    """
    return {name: _drawn(bound, bound.tables[name], rng) for name in sampled(bound)}


def _drawn(bound: Bound, table: BoundTable, rng: np.random.Generator) -> np.ndarray:
    """The draws of one table."""
    member = table.columns.get(ir.FAMILY, np.zeros(table.n))
    order = np.argsort(member, kind="stable")
    _, first, size = np.unique(member[order], return_index=True, return_counts=True)
    rows = order[np.repeat(first, size) + rng.integers(0, np.repeat(size, size))]
    kinds = strata(bound, table)
    for lost in np.setdiff1d(kinds, kinds[rows]):
        row = rng.choice(np.flatnonzero(kinds == lost))
        counts = np.bincount(kinds[rows], minlength=kinds.max() + 1)
        spare = (counts[kinds[rows]] > 1) & (member[rows] == member[row])
        if spare.any():
            rows[rng.choice(np.flatnonzero(spare))] = row
    return rows


def without_groups(bound: Bound, name: str, count: int, seed: int) -> Iterator[Bound]:
    """The problem without each of ``count`` random groups of a table's rows in turn (see ``dealt``)."""
    group = dealt(strata(bound, bound.tables[name]), count, np.random.default_rng(seed))
    for k in range(count):
        yield part(bound, {name: group != k})


def dealt(strata: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """A random group for each row; groups have equal sizes, whatever the strata.

    No stratum is lost with a group. A stratum that is in one group as a whole gets a row in the next
    group, and the only row of a stratum is in no group (-1).
    """
    group = rng.permutation(len(strata)) % count
    size = np.bincount(strata)
    least, most = np.full(len(size), count), np.full(len(size), -1)
    np.minimum.at(least, strata, group)
    np.maximum.at(most, strata, group)
    _, first = np.unique(strata, return_index=True)
    within = first[(least == most) & (size > 1)]
    group[within] = (group[within] + 1) % count
    if len(size) > 1:
        group[first[size == 1]] = -1
    return group


def labels_alone(bound: Bound) -> dict[str, dict[str, Any]]:
    """The encodings of labels and families, by table and column, without scales and categories."""
    return {name: _of_labels(table.encoding) for name, table in bound.tables.items()}


def _of_labels(encoding: Mapping[str, Any]) -> dict[str, Any]:
    """The records of label and family columns in a table's encoding."""
    kinds = ("labels", "family")
    return {column: record for column, record in encoding.items() if record.get("kind") in kinds}


def lengths(problem: ir.Problem) -> Iterator[tuple[str, str]]:
    """(table, owner) for every variable or array with an entry per row."""
    tables = {name: name for name in problem.tables}
    tables |= {name: s.table for name, s in problem.sets.items() if isinstance(s, ir.RowSet)}
    shapes = {f"`var {name}`": variable.shape for name, variable in problem.variables.items()}
    shapes |= {f"`data {name}`": array.type.shape for name, array in problem.arrays.items()}
    for owner, shape in shapes.items():
        yield from ((tables[size], owner) for size in shape if size in tables)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class RandomParts:
    """The random parts of the rows of a problem: the same share of each table and of every stratum.

    seed   of the draws: the same seed gives the same rows
    least  rows that every stratum keeps, so that no class or group that the problem mentions is lost
    """

    bound: Bound
    seed: int = 0
    least: int = 1

    @cached_property
    def tables(self) -> list[str]:
        """The tables that the problem averages over."""
        return averaged(self.bound.problem)

    @cached_property
    def strata(self) -> dict[str, np.ndarray]:
        """The strata of the rows of each of these tables, by the columns that the problem mentions."""
        return kinds(self.bound, mentioned(self.bound.problem))

    @cached_property
    def obstacle(self) -> str:
        """Why there are no parts; '' if there are."""
        if not self.tables:
            return "nothing is averaged over rows"
        owner = next((owner for name, owner in lengths(self.bound.problem) if name in self.tables), None)
        if owner is not None:
            return f"{owner} has an entry for each row"
        return ""

    def of_share(self, share: float) -> Bound:
        """The problem on a share of the rows."""
        return part(self.bound, representative(self.bound, share, self.seed, self.strata, self.least))

    def rows(self, thin: Bound) -> str:
        """The part of the rows of a thinned problem, in words: ``200 of 900 rows of D``."""
        of, tables = thin.tables, self.bound.tables
        return ", ".join(f"{of[name].n:,} of {tables[name].n:,} rows of {name}" for name in self.tables)
