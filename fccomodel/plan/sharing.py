"""Rows that several expectations of one table share: one batch in each step, drawn stratum by stratum.

Two rows are in one stratum if every expectation, and every member of a family, takes both or neither.
Enough rows of each stratum are drawn that every expectation and every group has some. An expectation
is then the mean over its own rows of the batch, each weighted by the share of its stratum. This is
unbiased, whatever the numbers drawn.

Where a row of a net is expensive, rows that are blocks share too: in ``E[p ~ P] log(E[n ~ N] ...)`` the
rows p, of which each has an estimate of its inner expectation. The gradient is a sum over expectations,
so only the rows that each of them meets must be drawn without bias, not independently of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import prod
from typing import TypeGuard

import numpy as np

from fccomodel.core import ir
from fccomodel.data.bound import Bound
from fccomodel.evaluation.sets import elements, members, realising, selections
from fccomodel.evaluation.sets.selections import Selection
from fccomodel.library import reductions
from fccomodel.plan.sizes import LISTED, Batch

#: Strata of a table, at most.
MOST_STRATA = 64
#: Combinations of groups, at most.
MOST_CELLS = 4096
#: Rows of a table in a step.
ROWS_IN_STEP = 512
#: A number of rows this close to a whole one is the whole one.
ROUNDING = 1e-9
#: ``ROWS_IN_STEP`` where every row of the nets is expensive and none of the rows is a block.
ROWS_OF_DEAR_NETS = 64


@dataclass(frozen=True, eq=False, kw_only=True)
class SharedStrata:
    """The rows of a table that some expectations take, stratum by stratum.

    rows    ids, int64, those of a stratum together
    sizes   the number of rows in each stratum
    counts  the number of rows drawn from each stratum
    cells   by binder, for each stratum: the flat cell of the binder's parents' elements that it belongs
            to; -1 if the binder does not take it
    """

    table: str
    rows: np.ndarray
    sizes: np.ndarray
    counts: np.ndarray
    cells: Mapping[ir.Binder, np.ndarray]

    @property
    def size(self) -> int:
        """The number of rows that a step draws."""
        return int(self.counts.sum())

    def taken(self, binder: ir.Binder) -> np.ndarray:
        """The places of an expectation's rows in a batch."""
        return np.flatnonzero(self.per_row(self.cells[binder]) >= 0)

    def per_row(self, of_strata: np.ndarray) -> np.ndarray:
        """Numbers by stratum, repeated for each row of a batch."""
        return np.repeat(of_strata, self.counts)

    def members(self, binder: ir.Binder) -> np.ndarray:
        """The ids that an expectation takes."""
        return self.rows[np.repeat(self.cells[binder] >= 0, self.sizes)]

    def drawn(self, binder: ir.Binder) -> int:
        """The number of rows drawn for a binder's largest cell."""
        cells = self.cells[binder]
        return int(np.bincount(cells[cells >= 0], self.counts[cells >= 0]).max())

    def weights(self, binder: ir.Binder) -> np.ndarray:
        """For each row of the batch that a binder takes: the share of its stratum in the cell, divided by
        the share of the stratum in the cell's draws."""
        cells = self.cells[binder]
        here = cells >= 0
        ratio = np.ones(len(cells))
        for cell in np.unique(cells[here]):
            of = cells == cell
            ratio[of] = self.sizes[of] / self.sizes[of].sum() * self.counts[of].sum() / self.counts[of]
        return self.per_row(ratio)[self.taken(binder)]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The rows that a step should have.

    given    rows that each expectation must have, or None if no number was asked for
    thrifty  whether every row of the nets is expensive: expectations then have as many rows as they
             would draw alone
    blocks   whether rows that are blocks may share: estimators of the algorithm allow it
    """

    given: int | None = None
    thrifty: bool = False
    blocks: bool = False


def strata(objective: ir.Expr, bound: Bound | None, batch: Batch, wanted: Wanted) -> tuple[SharedStrata, ...]:
    """The strata that the expectations of a normal form share, by table; none if fewer than two meet the
    same rows."""
    if bound is None:
        return ()
    by_table: dict[str, list[Selection]] = {}
    for selection in alike(objective, bound, batch, blocks=wanted.blocks):
        assert isinstance(selection.binder.domain, ir.RowSet)
        by_table.setdefault(selection.binder.domain.table, []).append(selection)
    blocks = {binder for node in ir.walk(objective) if has_blocks(node) for binder in node.binders}
    shared = (
        together(table, parts, bound, batch, wanted, blocks & {part.binder for part in parts})
        for table, parts in by_table.items()
        if len(parts) > 1
    )
    return tuple(part for part in shared if part is not None)


def has_blocks(node: ir.Expr) -> TypeGuard[ir.Reduce]:
    """Whether a node is a reduction with another one, or a search for an element, inside."""
    if not isinstance(node, ir.Reduce):
        return False
    return any(isinstance(inside, ir.Reduce | ir.Exists) for inside in ir.walk(node.body))


def alike(objective: ir.Expr, bound: Bound, batch: Batch, *, blocks: bool = False) -> list[Selection]:
    """The expectations that can share rows: each is over the rows of one table, nothing around it is
    drawn, and nothing inside it is reduced unless ``blocks`` may share. Groups are allowed if every step
    meets all of them."""
    nodes = [node for node in ir.walk(objective) if isinstance(node, ir.Reduce)]
    means = [node for node in nodes if _is_mean_over_rows(node, blocks=blocks)]
    sampled = {b for node in nodes for b in node.binders if not _complete(b, bound, batch)}
    chosen = []
    for mean in means:
        (part,) = selections.split(mean.binders, mean.condition)
        used = {b for e in (mean.body, mean.condition) if e is not None for b in ir.free_binders(e)}
        outer = used.difference(mean.binders)
        all_rows_of_cells = not (part.orders or part.excludes or part.masks)
        if all_rows_of_cells and not outer & sampled:
            chosen.append(part)
    return chosen


def _is_mean_over_rows(node: ir.Reduce, *, blocks: bool) -> bool:
    """Whether a reduction is a mean over the rows of one table: rows that are drawn, or rows that are
    blocks if ``blocks`` may share."""
    (binder, *more), kind = node.binders, reductions.of(node)
    if more or not isinstance(binder.domain, ir.RowSet) or not kind.linear or kind.total:
        return False
    if has_blocks(node):
        return blocks
    return binder.kind == "~"


def _complete(binder: ir.Binder, bound: Bound, batch: Batch) -> bool:
    """Whether every step takes all elements of a binder."""
    if not isinstance(binder.domain, LISTED) or isinstance(binder.domain, ir.RowSet):
        return False
    return batch(binder, len(elements.ids(bound, binder.domain)), False) is None


def together(
    table: str,
    parts: Sequence[Selection],
    bound: Bound,
    batch: Batch,
    wanted: Wanted,
    blocks: AbstractSet[ir.Binder] = frozenset(),
) -> SharedStrata | None:
    """The strata of a table for some selections of its rows; None if no two of them have a row in common,
    if a step takes all rows anyway, or if there are too many strata.

    blocks   the binders whose rows are blocks
    """
    length = elements.extent(bound, parts[0].binder.domain)
    partitions = [(part, cells) for part in parts if (cells := cells_of(part, bound, length)) is not None]
    partitions = [(part, cells) for part, cells in partitions if not _whole(part, cells, batch)]
    if len(partitions) < 2:
        return None
    code = np.zeros(length, dtype=np.int64)
    for _, cells in partitions:
        kind, code = np.unique(code * (int(cells.max(initial=0)) + 2) + cells + 1, return_inverse=True)
        if len(kind) > MOST_STRATA + 1:
            return None
    _, first = np.unique(code, return_index=True)
    kinds = np.stack([cells[first] for _, cells in partitions], axis=1)
    order = np.lexsort(kinds.T[::-1])[::-1]  # strata that all take come together if possible
    order = order[(kinds[order] >= 0).any(axis=1)]
    if not ((kinds[order] >= 0).sum(axis=1) > 1).any():
        return None
    rows = [np.flatnonzero(code == k) for k in order]
    sizes = np.array([len(part) for part in rows])
    by_binder = {part.binder: kinds[order, k] for k, (part, _) in enumerate(partitions)}
    if wanted.thrifty:
        counts = few(sizes, by_binder, batch)
        if not blocks and wanted.given is None:
            counts = np.maximum(counts, allotted(sizes, by_binder.values(), None, ROWS_OF_DEAR_NETS))
    else:
        counts = allotted(sizes, by_binder.values(), wanted.given)
    return SharedStrata(table=table, rows=np.concatenate(rows), sizes=sizes, counts=counts, cells=by_binder)


def _whole(part: Selection, cells: np.ndarray, batch: Batch) -> bool:
    """Whether a step takes all rows of an expectation anyway."""
    return batch(part.binder, int(np.bincount(cells[cells >= 0]).max()), True) is None


def cells_of(part: Selection, bound: Bound, length: int) -> np.ndarray | None:
    """For each row of the table the flat cell of the parents' ids that takes it, -1 for none. None if a
    cell is empty, if two cells take a row, or if there are too many cells."""
    cells = np.full(length, -1)
    if not part.parents:
        rows = realising.realise(bound, members.alone(part)).rows
        cells[rows] = 0
        if len(rows):
            return cells
        return None
    if prod(elements.extent(bound, parent.domain) for parent in part.parents) > MOST_CELLS:
        return None
    ranges = realising.realise(bound, part, empty="keep")
    assert ranges.start is not None and ranges.size is not None
    lists = [elements.ids(bound, parent.domain) for parent in part.parents]
    for cell in np.ravel_multi_index(np.ix_(*lists), ranges.size.shape).ravel():
        start, size = ranges.start.flat[cell], ranges.size.flat[cell]
        rows = ranges.rows[start : start + size]
        if not size or (cells[rows] >= 0).any():
            return None
        cells[rows] = cell
    return cells


def few(sizes: np.ndarray, cells: Mapping[ir.Binder, np.ndarray], batch: Batch) -> np.ndarray:
    """The number of rows to draw from each stratum so that every expectation and group has as many as it
    would draw alone; at least one, and at most all of the stratum."""
    counts = np.ones(len(sizes))
    for binder, of in cells.items():
        for cell in np.unique(of[of >= 0]):
            here = of == cell
            whole = int(sizes[here].sum())
            alone = batch(binder, whole, True) or whole
            counts[here] = np.maximum(counts[here], alone * sizes[here] / whole)
    return np.minimum(np.ceil(counts - ROUNDING), sizes).astype(np.int64)


def allotted(
    sizes: np.ndarray, cells: Iterable[np.ndarray], given: int | None, rows: int = ROWS_IN_STEP
) -> np.ndarray:
    """The number of rows to draw from each stratum, by its largest share in any expectation or group.

    It is ``rows`` in all, or enough that each expectation and group has ``given`` rows; at least
    one for each stratum, and at most all of its rows.
    """
    share = np.zeros(len(sizes))
    groups = [of == cell for of in cells for cell in np.unique(of[of >= 0])]
    for here in groups:
        share[here] = np.maximum(share[here], sizes[here] / sizes[here].sum())
    least = min(share[here].sum() for here in groups)
    if given is None:
        whole = rows / share.sum()
    else:
        whole = given / least
    return np.minimum(np.maximum(np.rint(whole * share), 1), sizes).astype(np.int64)
