"""Selections on the bound data: sorted rows, in which the elements of a cell are one contiguous run.

Conditions are evaluated for all elements at once. This module has both the conditions and the runs,
since a condition may ask whether a run has elements, and a run may be narrowed by a condition.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal, NoReturn

import numpy as np

from fccomodel.core import ir, memory
from fccomodel.core.diagnostics import refuse
from fccomodel.core.lazy import torch
from fccomodel.data.bound import Bound
from fccomodel.evaluation import errors
from fccomodel.evaluation.memory import Owned, common, deciding, remember
from fccomodel.evaluation.sets import indices
from fccomodel.evaluation.sets.axes import Env, Named, new_axis, spread, union
from fccomodel.evaluation.sets.elements import Pointwise, accepted, extent, ids, matching, name_of
from fccomodel.evaluation.sets.indices import RunOrder
from fccomodel.evaluation.sets.selections import Selection, ThresholdCondition, split

#: Cells (combinations of the parents' ids) that ``realise`` may list.
MAX_CELLS = 1 << 27
#: Pairs that ``realise`` may test to count those that pass a mask.
MAX_TESTS = 1 << 34
#: Pairs on which masks are evaluated at once.
MASK_BLOCK = 1 << 20
#: Bytes per cell: start, length, skipped row, accepted share, and two arrays in between.
CELL_BYTES = 48


@dataclass(frozen=True, eq=False, kw_only=True)
class SelectionArrays:
    """A selection as arrays. A cell is one id per parent.

    The elements of a cell are ``rows[start[cell] : start[cell] + size[cell]]``, without ``skip``.

    rows     ids, int64, in an order in which every cell is one contiguous run; ascending without
             keys and orders
    start    int64, one dim per parent with the length of its table or set; None without parents
    size     the length of the run, the skipped row included
    skip     offset inside the run of the row to leave out, or -1; None without ``excludes``
    accept   the exact fraction of the run (without the skipped row) that passes the masks; None
             without ``masks``
    """

    rows: np.ndarray
    start: np.ndarray | None = None
    size: np.ndarray | None = None
    skip: np.ndarray | None = None
    accept: np.ndarray | None = None


class Conditions(Pointwise):
    """Values of conditions: pointwise expressions, uses of lets, and whether a range has elements."""

    def other(self, node: ir.Expr, env: Env) -> Named:
        """The value of an existence condition or of a use of a ``let``."""
        match node:
            case ir.Exists():
                return self.exists(node, env)
            case ir.LetRef():
                return self.value(node.let.body, self.members(node, env))
        return super().other(node, env)

    def members(self, node: ir.LetRef, env: Env) -> dict[ir.Binder, Named]:
        """The elements of the binders of a family of lets, in one use of the family."""
        pairs = zip(node.let.binders, node.args, strict=True)
        return {binder: self.member(binder, arg, env) for binder, arg in pairs}

    def member(self, binder: ir.Binder, arg: ir.Expr, env: Env) -> Named:
        """The elements of one binder of a family: a constant, or the elements of an outer binder."""
        if isinstance(arg, ir.Const):
            element = int(arg.value)
            return self.memo.setdefault(("member", element), Named(torch.tensor(element)))
        assert isinstance(arg, ir.Element)
        at = env[arg.binder]
        place = matching(self.bound, arg.binder.domain, binder.domain)
        if place is None:
            return at
        return Named(torch.from_numpy(place)[at.data], at.axes)

    def exists(self, node: ir.Exists, env: Env) -> Named:
        """1 if the range of an existence condition has elements, else 0."""
        (part,) = remember(self.bound, ("split", node), lambda: split((node.binder,), node.condition))
        if part.masks:
            truth_of_cell = remember(self.bound, ("exists", node), lambda: _exists(self.bound, part))
            cell, axes = _aligned([env[parent] for parent in part.parents])
            return _named(truth_of_cell[tuple(cell)].astype(np.float64), axes)
        _, count, skip = index(self.bound, part).locate(env)
        if skip is None:
            skip = _named(np.full((), -1), ())
        (number, left_out), axes = _aligned([count, skip])
        has_elements = number > (left_out >= 0)
        return _named(has_elements.astype(np.float64), axes)


def _exists(bound: Bound, selection: Selection) -> np.ndarray:
    """Whether a selection with masks has elements, for every combination of the parents' ids."""
    ranges = realise(bound, selection, empty="keep")
    assert ranges.size is not None and ranges.accept is not None
    return (ranges.size > 0) & (ranges.accept > 0)


# ----------------------------------------------------------------------------------------- indexing
@dataclass(frozen=True, eq=False, kw_only=True)
class SortedIndex(RunOrder, Owned):
    """The elements of a selection, sorted so that keys and orders select a contiguous run."""

    owner: weakref.ref[Bound]
    selection: Selection

    def locate(self, env: Env) -> tuple[Named, Named, Named | None]:
        """(start, size, skip) of the runs for the parents' elements in ``env``; skip may be None."""
        group = self._group(env)
        numbers = group.data.numpy()
        after = (numbers + 1).clip(max=len(self.groups))
        low = _named(self.bounds[numbers], group.axes)
        high = _named(self.bounds[after], group.axes)
        for order in self.selection.orders:
            below = self._levels_below(order, env)
            low, high = self._narrow(order, below, group, low, high)
        (start, end), axes = _aligned([low, high])
        first = _named(start, axes)
        count = _named((end - start).clip(0), axes)
        skip = None
        for binder in self.selection.excludes:
            skip = self._offset(env[binder], first, count)
        return first, count, skip

    def _group(self, env: Env) -> Named:
        """The number of the group with the parents' keys; the number of groups if no group has them."""
        if not self.keys:
            return Named(torch.zeros((), dtype=torch.int64))
        evaluate = Conditions(self.bound)
        outer_keys = [evaluate.value(outer, env) for _, outer in self.selection.keys]
        code, occurs = _joined(outer_keys, self.keys)
        codes = code.data.numpy()
        count = len(self.groups)
        if not count:
            return _named(np.zeros_like(codes), code.axes)
        at = np.searchsorted(self.groups, codes).clip(0, count - 1)
        is_group = occurs & (self.groups[at] == codes)
        return _named(np.where(is_group, at, count), code.axes)

    def _offset(self, row: Named, start: Named, count: Named) -> Named:
        """The offset of a row in the runs, -1 where it is outside."""
        place = _named(self.place[row.data], row.axes)
        (first, length, at), axes = _aligned([start, count, place])
        inside = (at >= first) & (at < first + length)
        return _named(np.where(inside, at - first, -1), axes)

    def _levels_below(self, order: ThresholdCondition, env: Env) -> Named:
        """The number of levels below a comparison's threshold."""
        evaluate = Conditions(self.bound)
        if order.outer is None:
            return self._levels_by_test(order, env)
        threshold = evaluate.value(order.outer, env)
        side: Literal["left", "right"] = "right"
        if order.op in ("ge", "lt"):
            side = "left"
        below = np.searchsorted(self.levels, threshold.data.numpy(), side)
        return _named(below, threshold.axes)

    def _levels_by_test(self, order: ThresholdCondition, env: Env) -> Named:
        """The number of levels below the threshold of a test, which holds on one side of it: bisection."""
        evaluate = Conditions(self.bound)
        rows = self.rows_of_levels()
        binder = self.selection.binder
        lengths = {}
        for outer in ir.free_binders(order.test):
            if outer is not binder:
                for axis in env[outer].axes:
                    lengths[axis] = env[outer].length(axis)
        axes = tuple(sorted(lengths))
        first = np.zeros([lengths[axis] for axis in axes], dtype=np.int64)
        last = np.full(first.shape, len(rows))
        while (open := first < last).any():
            middle = (first + last) // 2
            at = _named(rows[middle.clip(max=len(rows) - 1)], axes)
            truth = evaluate.value(order.test, {**env, binder: at})
            holds = np.broadcast_to(spread(truth, axes).numpy().astype(bool), first.shape)
            below = holds != order.upwards
            first = np.where(open & below, middle + 1, first)
            last = np.where(open & ~below, middle, last)
        return _named(first, axes)

    def rows_of_levels(self) -> np.ndarray:
        """A row with each of the levels."""
        level = self.ranked % (len(self.levels) + 1)
        rows = np.zeros(len(self.levels), dtype=np.int64)
        rows[level] = self.rows
        return rows

    def _narrow(
        self,
        order: ThresholdCondition,
        level: Named,
        group: Named,
        low: Named,
        high: Named,
    ) -> tuple[Named, Named]:
        """The runs from ``low`` to ``high``, narrowed to one side of a threshold.

        The threshold has ``level`` levels below it.
        """
        (group_number, level_number), axes = _aligned([group, level])
        rank = group_number * (len(self.levels) + 1) + level_number
        place = _named(np.searchsorted(self.ranked, rank, "left"), axes)
        (threshold, first, last), axes = _aligned([place, low, high])
        threshold = np.clip(threshold, first, last)
        if order.upwards:
            return _named(np.maximum(threshold, first), axes), _named(last, axes)
        return _named(first, axes), _named(np.minimum(threshold, last), axes)


def _named(array: np.ndarray, axes: tuple[int, ...]) -> Named:
    return Named(torch.from_numpy(np.asarray(array)), axes)


def _aligned(parts: Sequence[Named]) -> tuple[list[np.ndarray], tuple[int, ...]]:
    """The arrays of the values broadcast over all their axes, and these."""
    axes = union(parts)
    spread_parts = [spread(part, axes).numpy() for part in parts]
    return [np.array(array) for array in np.broadcast_arrays(*spread_parts)], axes


def _joined(parts: Sequence[Named], keys: Sequence[np.ndarray]) -> tuple[Named, np.ndarray]:
    """One code for several key values, and whether all of them occur among ``keys``."""
    axes: tuple[int, ...] = ()
    code = np.zeros((), dtype=np.int64)
    occurs = np.ones((), dtype=bool)
    for part, key in zip(parts, keys, strict=True):
        values = part.data.numpy()
        last = max(len(key) - 1, 0)
        at = np.searchsorted(key, values).clip(0, last)
        is_key = np.zeros(at.shape, dtype=bool)
        if len(key):
            is_key = key[at] == values
        before = [_named(code, axes), _named(occurs, axes)]
        now = [_named(at, part.axes), _named(is_key, part.axes)]
        (code, occurs, at, is_key), axes = _aligned([*before, *now])
        code = code * max(len(key), 1) + at
        occurs = occurs & is_key
    return _named(code, axes), occurs


def key_codes(bound: Bound, binder: ir.Binder, keys: Sequence[ir.Expr], elements: np.ndarray) -> np.ndarray:
    """A number for each element; it is equal for elements at which all key expressions are equal."""
    env = {binder: _named(np.ascontiguousarray(elements), (new_axis(),))}
    code = np.zeros(len(elements), dtype=np.int64)
    for expr in keys:
        own, at = _distinct(Conditions(bound), expr, env, len(elements))
        code = code * max(len(own), 1) + at.reshape(-1)
    return code


def _distinct(evaluate: Conditions, expr: ir.Expr, env: Env, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values of an expression at ``count`` elements, and the number of each one's value."""
    value = evaluate.value(expr, env)
    values = np.broadcast_to(value.data.numpy(), (count,))
    return np.unique(values, return_inverse=True)


def index(bound: Bound, selection: Selection) -> SortedIndex:
    """The sorted rows of a selection, made once for the same data."""
    inner: list[ir.Expr] = []
    inner += selection.static
    inner += [own for own, _ in selection.keys]
    inner += [order.inner for order in selection.orders]
    sources = (*inner, *deciding(selection.binder.domain))
    return common(bound, ("index", selection), sources, lambda: _index(bound, selection))


def _index(bound: Bound, selection: Selection) -> SortedIndex:
    """The index of a selection; selections with the same conditions, keys and quantity share one order."""
    domain = selection.binder.domain
    text = decided_by(selection)
    table = domain.table if isinstance(domain, ir.RowSet) else domain
    same_order = (table, selection if text is None else text)

    def sorted_rows() -> RunOrder:
        """The order of prepared files, or else one that is made here."""
        return indices.prepared(bound, domain, text) or order_of(bound, selection)

    order = remember(bound, ("order", *same_order), sorted_rows)
    arrays = {field.name: getattr(order, field.name) for field in fields(RunOrder)}
    if selection.excludes and not len(order.place):
        key = ("place", *same_order)
        arrays["place"] = remember(bound, key, lambda: places(bound, selection, order.rows))
    return SortedIndex(owner=weakref.ref(bound), selection=selection, **arrays)


def decided_by(selection: Selection) -> str | None:
    """The text that decides a selection's order, or None (see ``indices.decided``)."""
    keys = [own for own, _ in selection.keys]
    quantity = None
    if selection.orders:
        quantity = selection.orders[0].inner
    return indices.decided(selection.binder.domain, selection.static, keys, quantity)


def order_of(bound: Bound, selection: Selection) -> RunOrder:
    """The rows of a selection, sorted."""
    binder = selection.binder
    rows = ids(bound, binder.domain)
    if selection.static:
        rows = rows[accepted(bound, binder, selection.static, rows, Conditions)]
    groups = np.zeros(1, dtype=np.int64)  # without keys there is one group
    bounds = np.array([0, len(rows)], dtype=np.int64)
    if not selection.keys and not selection.orders:
        return RunOrder(rows=rows, groups=groups, bounds=bounds)
    env = {binder: _named(np.ascontiguousarray(rows), (new_axis(),))}
    evaluate = Conditions(bound)
    code = np.zeros(len(rows), dtype=np.int64)
    keys = []
    for expr, _ in selection.keys:
        own, at = _distinct(evaluate, expr, env, len(rows))
        keys.append(own)
        code = code * max(len(own), 1) + at
    levels = indices.NONE
    if selection.orders:
        levels, level = _distinct(evaluate, selection.orders[0].inner, env, len(rows))
        order = np.lexsort((level, code))
    else:
        order = np.argsort(code, kind="stable")
    if selection.keys:
        groups, bounds = _groups(code[order])
    ranked = indices.NONE
    if selection.orders:
        group = np.repeat(np.arange(len(groups)), np.diff(bounds))
        ranked = group * (len(levels) + 1) + level[order]
    return RunOrder(
        rows=rows[order],
        keys=tuple(keys),
        groups=groups,
        bounds=bounds,
        levels=levels,
        ranked=ranked,
    )


def _groups(code: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct ones among sorted codes, and where each of them begins and the last one ends."""
    begins = indices.NONE
    if len(code):
        differs = code[1:] != code[:-1]
        begins = np.flatnonzero(np.append(True, differs))
    return code[begins], np.append(begins, len(code))


def places(bound: Bound, selection: Selection, rows: np.ndarray) -> np.ndarray:
    """The position of each id in ``rows``, or -1."""
    place = np.full(extent(bound, selection.binder.domain), -1, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    return place


# ---------------------------------------------------------------------------------------- realising
def realise(bound: Bound, selection: Selection, *, empty: str = "error") -> SelectionArrays:
    """A selection as index arrays over all ids that its parents can have.

    empty   ``error``: F0705 names a cell of elements of the parents' sets that has no row;
            ``keep``: the size of such a cell is 0
    """
    if not selection.parents:
        rows = index(bound, selection).rows
        if not len(rows) and empty == "error":
            no_elements(bound, selection.binder)
        return SelectionArrays(rows=rows)
    ranges = remember(bound, ("ranges", selection), lambda: _ranges_of(bound, selection))
    if empty == "error":
        _check(bound, selection, ranges)
    return ranges


def _ranges_of(bound: Bound, selection: Selection) -> SelectionArrays:
    """``realise`` of a selection with parents, empty cells kept."""
    lookup = index(bound, selection)
    shape = tuple(extent(bound, parent.domain) for parent in selection.parents)
    _check_memory(bound, selection.binder, math.prod(shape))
    axes = tuple(new_axis() for _ in shape)
    env = {}
    for parent, count, axis in zip(selection.parents, shape, axes, strict=True):
        env[parent] = Named(torch.arange(count), (axis,))

    def full(part: Named) -> np.ndarray:
        """The values of all cells."""
        return np.ascontiguousarray(np.broadcast_to(spread(part, axes).numpy(), shape))

    start, length, skip = lookup.locate(env)
    ranges = SelectionArrays(rows=lookup.rows, start=full(start), size=full(length))
    if skip is not None:
        ranges = replace(ranges, skip=full(skip))
    if selection.masks:
        ranges = replace(ranges, accept=_accepted(bound, selection, ranges))
    return ranges


def _check_memory(bound: Bound, binder: ir.Binder, cells: int) -> None:
    """Refuse more cells than may be listed, or than the memory has place for."""
    needed = CELL_BYTES * cells
    left: float | None
    if cells > MAX_CELLS:
        left = CELL_BYTES * MAX_CELLS
    else:
        left = memory.lacking(needed)
    if left is not None:
        refuse(errors.too_many_cells(binder, cells, needed, left), source=bound.problem.source)


def _check(bound: Bound, selection: Selection, ranges: SelectionArrays) -> None:
    """Raise F0705 if a cell of elements of the parents' sets has no row."""
    assert ranges.size is not None
    lists = [ids(bound, parent.domain) for parent in selection.parents]
    members = np.ix_(*lists)
    count = ranges.size[members]
    if ranges.skip is not None:
        count = count - (ranges.skip[members] >= 0)
    if ranges.accept is not None:
        count = count * ranges.accept[members]
    nonempty = count > 0
    if nonempty.all():
        return
    cell = np.unravel_index(int(np.argmin(nonempty)), count.shape)
    which = {}
    for parent, parent_ids, at in zip(selection.parents, lists, cell, strict=True):
        which[parent] = int(parent_ids[at])
    no_elements(bound, selection.binder, which, int((count <= 0).sum()))


def no_elements(
    bound: Bound,
    binder: ir.Binder,
    which: Mapping[ir.Binder, int] | None = None,
    total: int = 1,
) -> NoReturn:
    """Raise F0705: the outer elements ``which``, one of ``total`` cases, leave no element for the binder."""
    named = []
    for outer, element in (which or {}).items():
        named.append(f"{outer.name} = {name_of(bound, outer.domain, element)}")
    where = ", ".join(named)
    if total > 1:
        where += f" (and for {total - 1} more)"
    refuse(errors.group_left_empty(binder, where), source=bound.problem.source)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Runs:
    """The runs of the cells of all elements of the parents' sets, on which masks are counted.

    lists   ids of each parent's elements
    start   first position of each cell's run, (cells,)
    count   length of each cell's run, (cells,)
    skip    offset of the row to leave out in each run, or -1; None if no row is left out
    """

    selection: Selection
    rows: np.ndarray
    lists: list[np.ndarray]
    start: np.ndarray
    count: np.ndarray
    skip: np.ndarray | None

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of elements of each parent's set."""
        return tuple(len(parent_ids) for parent_ids in self.lists)

    def parents_at(self, cells: np.ndarray, axis: int) -> dict[ir.Binder, Named]:
        """The parents' elements in some cells, along an axis."""
        places = np.unravel_index(cells, self.shape)
        env = {}
        for parent, parent_ids, at in zip(self.selection.parents, self.lists, places, strict=True):
            env[parent] = _named(parent_ids[at], (axis,))
        return env


def _accepted(bound: Bound, selection: Selection, ranges: SelectionArrays) -> np.ndarray:
    """The fraction of each cell's run that passes the masks; 0 for ids outside of the parents' sets."""
    assert ranges.start is not None and ranges.size is not None
    lists = [ids(bound, parent.domain) for parent in selection.parents]
    grid = np.ix_(*lists)
    runs = _Runs(
        selection=selection,
        rows=ranges.rows,
        lists=lists,
        start=ranges.start[grid].ravel(),
        count=ranges.size[grid].ravel(),
        skip=None if ranges.skip is None else ranges.skip[grid].ravel(),
    )
    tests = runs.count.sum()
    if int(tests) > MAX_TESTS:
        refuse(errors.too_many_tests(selection.binder, tests), source=bound.problem.source)
    if selection.keys or selection.orders:
        passed = _passed_in_runs(bound, runs)
    else:
        passed = _passed_of_all(bound, runs)
    valid = runs.count
    if runs.skip is not None:
        valid = valid - (runs.skip >= 0)
    accept = np.zeros(ranges.size.shape)
    accept[grid] = (passed / np.maximum(valid, 1)).reshape(runs.shape)
    return accept


def _passed_in_runs(bound: Bound, runs: _Runs) -> np.ndarray:
    """The number of rows of each cell's run that pass the masks, which are tested pair by pair."""
    passed = np.zeros(len(runs.count), dtype=np.int64)
    for cell, offset in pair_blocks(runs.count):
        axis = new_axis()
        rows = runs.rows[runs.start[cell] + offset]
        env = {runs.selection.binder: _named(rows, (axis,))}
        env |= runs.parents_at(cell, axis)
        keep = np.ones(len(rows), dtype=bool)
        if runs.skip is not None:
            keep = offset != runs.skip[cell]
        for mask in runs.selection.masks:
            truth = Conditions(bound).value(mask, env).data.bool().numpy()
            keep &= np.broadcast_to(truth, keep.shape)
        passed += np.bincount(cell[keep], minlength=len(passed))
    return passed


def _passed_of_all(bound: Bound, runs: _Runs) -> np.ndarray:
    """The number of all rows that pass the masks in each cell, without a list of the pairs.

    A block of cells lies along one axis, the rows along another.
    """
    total = len(runs.count)
    cell_axis = new_axis()
    row_axis = new_axis()
    passed = np.zeros(total, dtype=np.int64)
    step = max(1, MASK_BLOCK // max(len(runs.rows), 1))
    for low in range(0, total, step):
        cells = np.arange(low, min(low + step, total))
        env = {runs.selection.binder: _named(runs.rows, (row_axis,))}
        env |= runs.parents_at(cells, cell_axis)
        keep = np.ones((len(cells), len(runs.rows)), dtype=bool)
        for mask in runs.selection.masks:
            truth = Conditions(bound).value(mask, env)
            keep &= spread(truth, (cell_axis, row_axis)).bool().numpy()
        if runs.skip is not None:
            left_out = runs.skip[cells]
            in_run = np.flatnonzero(left_out >= 0)
            keep[in_run, left_out[in_run]] = False
        passed[cells] = keep.sum(1)
    return passed


def pair_blocks(count: np.ndarray, block: int = MASK_BLOCK) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """All pairs (cell, offset < count[cell]) in blocks of at most ``block`` pairs, in order."""
    ends = np.cumsum(count)
    total = 0
    if len(ends):
        total = int(ends[-1])
    for low in range(0, total, block):
        pair = np.arange(low, min(low + block, total))
        cell = np.searchsorted(ends, pair, "right")
        begin = ends[cell] - count[cell]
        yield cell, pair - begin
