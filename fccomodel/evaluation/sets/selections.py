"""Selections: the elements of a binder given the binders around it.

Conditions are split by kind, then realised as index arrays.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Literal, NoReturn

import numpy as np

from fccomodel.core import ir, memory
from fccomodel.core.diagnostics import refuse
from fccomodel.core.lazy import torch
from fccomodel.core.rewrite import conjuncts
from fccomodel.data.bound import Bound
from fccomodel.evaluation import errors
from fccomodel.evaluation.memory import Owned, common, deciding, remember
from fccomodel.evaluation.sets import indices
from fccomodel.evaluation.sets.axes import Env, Named, new_axis, spread
from fccomodel.evaluation.sets.elements import (
    Pointwise,
    accepted,
    extent,
    ids,
    matching,
    name_of,
    names,
    size,
    values,
)
from fccomodel.evaluation.sets.indices import Order

__all__ = ["Index", "Ranges", "Selection", "ids", "index", "names", "realise", "size", "split", "values"]

#: Cells (combinations of the parents' ids) that ``realise`` may list.
MAX_CELLS = 1 << 27
#: Pairs that ``realise`` may test to count those that pass a mask.
MAX_TESTS = 1 << 34
#: Conditions whose selections are remembered.
MOST_SPLITS = 4096
#: Pairs on which masks are evaluated at once.
MASK_BLOCK = 1 << 20
#: Bytes per cell: start, length, skipped row, accepted share, and two arrays in between.
CELL_BYTES = 48


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A condition that holds for all elements on one side of a threshold of an ordered quantity.

    op      ``le lt``: it holds up to the threshold; ``ge gt``: from there on
    inner   the ordered quantity, of the binder's own element alone
    outer   the threshold; None if only tests find it, as for ``i.t - j.t <= 1.5``
    test    the condition itself
    """

    op: str
    inner: ir.Expr
    outer: ir.Expr | None = None
    test: ir.Expr

    @property
    def around(self) -> ir.Expr:
        """The expression whose binders, besides the own one, the threshold depends on."""
        if self.outer is None:
            return self.test
        return self.outer

    @property
    def upwards(self) -> bool:
        """Whether it holds from the threshold on, not up to it."""
        return self.op in ("ge", "gt")


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The elements of one binder, with its condition split by the way it can be sampled.

    static    conjuncts about the binder's own element alone: a filter that is applied once (those
              of its set are applied by ``ids``)
    keys      pairs (inner, outer) that must be equal: a group index
    orders    comparisons of one quantity of the binder's element: a range of a sorted order
    excludes  outer binders of the same table whose row is left out (``j != i``); at most one
    masks     all other conjuncts, which are evaluated for each pair
    parents   the binders that keys, orders, excludes and masks depend on
    """

    binder: ir.Binder
    static: tuple[ir.Expr, ...] = ()
    keys: tuple[tuple[ir.Expr, ir.Expr], ...] = ()
    orders: tuple[Comparison, ...] = ()
    excludes: tuple[ir.Binder, ...] = ()
    masks: tuple[ir.Expr, ...] = ()
    parents: tuple[ir.Binder, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Ranges:
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


# ------------------------------------------------------------------------------------- taking apart
FLIPPED = {"ge": "le", "gt": "lt", "le": "ge", "lt": "gt"}


def split(binders: Sequence[ir.Binder], condition: ir.Expr | None) -> tuple[Selection, ...]:
    """One selection per binder, in order.

    A conjunct belongs to the last of ``binders`` that it mentions; a conjunct that mentions none of
    them belongs to the last one. Every combination of elements that satisfies the condition has equal
    weight in a reduction. Equal arguments give the same records, since values are remembered by them.
    """
    return _split(tuple(binders), condition)


@lru_cache(maxsize=MOST_SPLITS)
def _split(binders: tuple[ir.Binder, ...], condition: ir.Expr | None) -> tuple[Selection, ...]:
    """``split``, made once for the same binders and condition."""
    parts = [Selection(binder=binder) for binder in binders]
    for conjunct in _through_equal_keys(binders, list(conjuncts(condition))):
        free = ir.free_binders(conjunct)
        place = max((k for k, binder in enumerate(binders) if binder in free), default=len(parts) - 1)
        parts[place] = _with(parts[place], conjunct, free)
    return tuple(parts)


def _through_equal_keys(binders: Sequence[ir.Binder], conditions: list[ir.Expr]) -> list[ir.Expr]:
    """The conditions with equalities of keys rewritten so that each binder is compared with few others.

    Each binder is compared with one that comes before it. ``j.g == i.g and j.g == q`` becomes
    ``i.g == q and j.g == q``, so that i takes only the rows of q. If j is compared with i in another
    way too, ``i.g == q and j.g == q`` becomes ``i.g == q and j.g == i.g``, so that i alone decides
    the rows of j.
    """
    equalities = [c for c in conditions if len(binders) > 1 and _compares_keys(c)]
    for keys in _classes(equalities):
        if len(keys) < 3:
            continue
        own_equalities = [c for c in equalities if any(ir.same(_sides(c)[0], key) for key in keys)]
        others = [c for c in conditions if all(c is not own for own in own_equalities)]
        keys_of = [[k for k in keys if binder in ir.free_binders(k)] for binder in binders]
        anchors = [k for k in keys if ir.free_binders(k)[0] not in binders]
        if any(len(own_keys) > 1 for own_keys in keys_of) or len(anchors) > 1:
            continue
        rewritten: list[ir.Expr] = []
        for binder, own_keys in zip(binders, keys_of, strict=True):
            if anchors:
                for key in own_keys:
                    anchor = _nearest(anchors, binder, others)
                    rewritten.append(_equality(own_equalities, key, anchor))
            anchors += own_keys
        conditions = others + rewritten
    return conditions


def _nearest(anchors: Sequence[ir.Expr], binder: ir.Binder, others: Sequence[ir.Expr]) -> ir.Expr:
    """The first key of a binder that other conditions relate to the given one, or else the first key."""
    related: set[ir.Binder] = set()
    for condition in others:
        free = ir.free_binders(condition)
        if binder in free:
            related.update(free)
    return next((key for key in anchors if ir.free_binders(key)[0] in related), anchors[0])


def _compares_keys(condition: ir.Expr) -> bool:
    """Whether a condition equates two expressions, each of one listed element, of different binders."""
    if not (isinstance(condition, ir.Apply) and condition.op == "eq" and len(condition.args) == 2):
        return False
    free = [ir.free_binders(arg) for arg in condition.args]
    return all(len(binders) == 1 and listed(binders[0]) for binders in free) and free[0] != free[1]


def _sides(condition: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
    """Both sides of an equality."""
    assert isinstance(condition, ir.Apply)
    left, right = condition.args
    return left, right


def _classes(equalities: Sequence[ir.Expr]) -> list[list[ir.Expr]]:
    """The classes of expressions that the equalities make equal, in the order in which they occur."""
    classes: list[list[ir.Expr]] = []
    for condition in equalities:
        sides = _sides(condition)
        separate: list[list[ir.Expr]] = []
        joined: list[ir.Expr] = []
        for keys in classes:
            if any(ir.same(side, key) for side in sides for key in keys):
                joined += keys
            else:
                separate.append(keys)
        joined += [side for side in sides if not any(ir.same(side, key) for key in joined)]
        classes = [*separate, joined]
    return classes


def _equality(known: Sequence[ir.Expr], one: ir.Expr, other: ir.Expr) -> ir.Expr:
    """The condition that two expressions are equal, as written among ``known`` if it is there."""
    for condition in known:
        sides = _sides(condition)
        if any(ir.same(one, a) and ir.same(other, b) for a, b in (sides, sides[::-1])):
            return condition
    return ir.Apply(op="eq", args=(one, other), span=one.span)


def listed(binder: ir.Binder) -> bool:
    """Whether a binder ranges over a finite list, not over draws of a distribution or vectors."""
    return not isinstance(binder.domain, ir.Distribution | ir.VectorSet)


def _with(part: Selection, conjunct: ir.Expr, free: tuple[ir.Binder, ...]) -> Selection:
    """The selection with one more conjunct, whose free binders are ``free``."""
    binder = part.binder
    outer = [b for b in free if b is not binder]
    parents = tuple(dict.fromkeys((*part.parents, *outer)))
    if not parents and listed(binder):
        return replace(part, static=(*part.static, conjunct))
    if all(b is binder for b in free) and listed(binder):
        return replace(part, static=(*part.static, conjunct))
    part = replace(part, parents=parents)
    masked = replace(part, masks=(*part.masks, conjunct))
    if not isinstance(conjunct, ir.Apply) or len(conjunct.args) != 2:
        return masked
    if binder not in free or not all(listed(b) for b in free):
        return masked
    op = conjunct.op
    left, right = conjunct.args
    if binder in ir.free_binders(right):
        op, left, right = FLIPPED.get(op, op), right, left
    if binder in ir.free_binders(right):
        return masked
    if op in FLIPPED:
        found = _comparisons(binder, conjunct, op, left, right)
        inners = [order.inner for order in (*part.orders, *found)]
        if not found or not all(ir.same(inners[0], other) for other in inners[1:]):
            return masked
        return replace(part, orders=(*part.orders, *found))
    if ir.free_binders(left) != (binder,):
        return masked
    if op == "eq":
        return replace(part, keys=(*part.keys, (left, right)))
    if op == "ne" and not part.excludes and _same_row(left, right):
        assert isinstance(right, ir.Element)
        return replace(part, excludes=(right.binder,))
    return masked


def _comparisons(
    binder: ir.Binder, conjunct: ir.Expr, op: str, left: ir.Expr, right: ir.Expr
) -> tuple[Comparison, ...]:
    """The comparisons with thresholds that ``left op right`` is equivalent to; none if it is not.

    The binder is in ``left`` alone. ``abs(u) <= c`` is ``u <= c`` and ``u >= -c``.
    """
    if ir.free_binders(left) == (binder,):
        test = ir.Apply(op=op, args=(left, right))
        return (Comparison(op=op, inner=left, outer=right, test=test),)
    if isinstance(left, ir.Apply) and left.op == "abs" and op in ("le", "lt"):
        (inside,) = left.args
        below = ir.Apply(op=op, args=(inside, right))
        least = ir.Apply(op="neg", args=(right,), shape=right.shape, span=right.span)
        above = ir.Apply(op=FLIPPED[op], args=(inside, least))
        halves = [_comparison(binder, test) for test in (below, above)]
        return tuple(half for half in halves if half is not None)
    found = _comparison(binder, ir.Apply(op=op, args=(left, right)), conjunct)
    return () if found is None else (found,)


def _comparison(binder: ir.Binder, condition: ir.Apply, test: ir.Expr | None = None) -> Comparison | None:
    """A comparison whose left side is monotone in a quantity of the binder's element, or None.

    ``test``: the condition as written, if this is not it.
    """
    left, _ = condition.args
    found = _monotone(left, binder)
    if found is None:
        return None
    inner, rises = found
    op = condition.op
    if not rises:
        op = FLIPPED[op]
    return Comparison(op=op, inner=inner, test=test or condition)


def _monotone(expr: ir.Expr, binder: ir.Binder) -> tuple[ir.Expr, bool] | None:
    """The quantity of the binder's element alone in which an expression is monotone, and whether it
    rises; or None.

    Sums, differences, and products and quotients with constants are known. Their rounding is
    monotone too, so computed values keep the order.
    """
    if ir.free_binders(expr) == (binder,):
        return expr, True
    if not isinstance(expr, ir.Apply):
        return None
    places = [k for k, arg in enumerate(expr.args) if binder in ir.free_binders(arg)]
    if len(places) != 1:
        return None
    (place,) = places
    found = _monotone(expr.args[place], binder)
    if found is None:
        return None
    inner, rises = found
    match expr.op:
        case "add":
            return inner, rises
        case "neg":
            return inner, not rises
        case "sub":
            return inner, rises == (place == 0)
        case "mul" | "div":
            factor = expr.args[1 - place]
            if isinstance(factor, ir.Const) and factor.value != 0 and (expr.op == "mul" or place == 0):
                return inner, rises == (factor.value > 0)
    return None


def _same_row(left: ir.Expr, right: ir.Expr) -> bool:
    """Whether both expressions are rows of one table."""
    if not (isinstance(left, ir.Element) and isinstance(right, ir.Element)):
        return False
    a, b = left.binder.domain, right.binder.domain
    return isinstance(a, ir.RowSet) and isinstance(b, ir.RowSet) and a.table == b.table


def taken_by(root: ir.Expr) -> dict[ir.Binder, Selection]:
    """The selection of each binder in an expression; all elements if two reductions differ in it."""
    taken: dict[ir.Binder, Selection] = {}
    conditions: dict[ir.Binder, ir.Expr | None] = {}
    for node in ir.walk(root):
        if not isinstance(node, ir.Reduce):
            continue
        for part in split(node.binders, node.condition):
            differ = part.binder in taken and conditions[part.binder] is not node.condition
            if differ:
                taken[part.binder] = Selection(binder=part.binder)
            else:
                taken[part.binder] = part
            conditions[part.binder] = node.condition
    return taken


def relations(selection: Selection) -> list[ir.Expr]:
    """The conditions of a selection that relate it to other binders, as expressions."""
    conditions: list[ir.Expr] = [ir.Apply(op="eq", args=pair) for pair in selection.keys]
    conditions += [order.test for order in selection.orders]
    inner = ir.Element(binder=selection.binder)
    conditions += [ir.Apply(op="ne", args=(inner, ir.Element(binder=other))) for other in selection.excludes]
    return [*conditions, *selection.masks]


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
        return {
            binder: self.member(binder, arg, env)
            for binder, arg in zip(node.let.binders, node.args, strict=True)
        }

    def member(self, binder: ir.Binder, arg: ir.Expr, env: Env) -> Named:
        """The elements of one binder of a family: a constant, or the elements of an outer binder."""
        if isinstance(arg, ir.Const):
            return self.memo.setdefault(("member", int(arg.value)), Named(torch.tensor(int(arg.value))))
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
            table = remember(self.bound, ("exists", node), lambda: _exists(self.bound, part))
            at, axes = _aligned([env[parent] for parent in part.parents])
            return _named(table[tuple(at)].astype(np.float64), axes)
        _, count, skip = index(self.bound, part).locate(env)
        (number, left_out), axes = _aligned([count, skip or _named(np.full((), -1), ())])
        return _named((number > (left_out >= 0)).astype(np.float64), axes)


def _exists(bound: Bound, selection: Selection) -> np.ndarray:
    """Whether a selection with masks has elements, for every combination of the parents' ids."""
    ranges = realise(bound, selection, empty="keep")
    assert ranges.size is not None and ranges.accept is not None
    return (ranges.size > 0) & (ranges.accept > 0)


# ----------------------------------------------------------------------------------------- indexing
@dataclass(frozen=True, eq=False, kw_only=True)
class Index(Order, Owned):
    """The elements of a selection, sorted so that keys and orders select a contiguous run."""

    owner: weakref.ref[Bound]
    selection: Selection

    def locate(self, env: Env) -> tuple[Named, Named, Named | None]:
        """(start, size, skip) of the runs for the parents' elements in ``env``; skip may be None."""
        evaluate = Conditions(self.bound)
        group = Named(torch.zeros((), dtype=torch.int64))
        code, occurs = _joined([evaluate.value(outer, env) for _, outer in self.selection.keys], self.keys)
        if self.keys:
            at = np.searchsorted(self.groups, code.data.numpy()).clip(0, max(len(self.groups) - 1, 0))
            hit = np.zeros_like(occurs)
            if len(self.groups):
                hit = occurs & (self.groups[at] == code.data.numpy())
            group = _named(np.where(hit, at, len(self.groups)), code.axes)
        low = _named(self.bounds[group.data.numpy()], group.axes)
        high = _named(self.bounds[(group.data.numpy() + 1).clip(max=len(self.groups))], group.axes)
        for order in self.selection.orders:
            low, high = self._narrow(order, self._levels_below(order, env), group, low, high)
        (start, end), axes = _aligned([low, high])
        count = (end - start).clip(0)
        skip = None
        for binder in self.selection.excludes:
            place = _named(self.place[env[binder].data], env[binder].axes)
            run = [_named(start, axes), _named(count, axes)]
            (first, length, at), axes_skip = _aligned([*run, place])
            inside = (at >= first) & (at < first + length)
            skip = _named(np.where(inside, at - first, -1), axes_skip)
        return _named(start, axes), _named(count, axes), skip

    def _levels_below(self, order: Comparison, env: Env) -> Named:
        """The number of levels below a comparison's threshold."""
        evaluate = Conditions(self.bound)
        if order.outer is not None:
            threshold = evaluate.value(order.outer, env)
            side: Literal["left", "right"] = "left" if order.op in ("ge", "lt") else "right"
            return _named(np.searchsorted(self.levels, threshold.data.numpy(), side), threshold.axes)
        rows, binder = self.rows_of_levels(), self.selection.binder
        around = [env[b] for b in ir.free_binders(order.test) if b is not binder]
        lengths = {axis: value.length(axis) for value in around for axis in value.axes}
        axes = tuple(sorted(lengths))
        first = np.zeros([lengths[axis] for axis in axes], dtype=np.int64)
        last = np.full(first.shape, len(rows))
        while (open := first < last).any():  # bisection: the test holds on one side of the threshold
            middle = (first + last) // 2
            at = _named(rows[middle.clip(max=len(rows) - 1)], axes)
            tests = evaluate.value(order.test, {**env, binder: at})
            holds = np.broadcast_to(spread(tests, axes).numpy().astype(bool), first.shape)
            below = holds != order.upwards
            first = np.where(open & below, middle + 1, first)
            last = np.where(open & ~below, middle, last)
        return _named(first, axes)

    def rows_of_levels(self) -> np.ndarray:
        """A row with each of the levels."""
        rows = np.zeros(len(self.levels), dtype=np.int64)
        rows[self.ranked % (len(self.levels) + 1)] = self.rows
        return rows

    def _narrow(
        self, order: Comparison, level: Named, group: Named, low: Named, high: Named
    ) -> tuple[Named, Named]:
        """The runs from ``low`` to ``high``, narrowed to one side of a threshold that has ``level`` levels
        below it."""
        (inner, rank), axes = _aligned([group, level])
        at = np.searchsorted(self.ranked, inner * (len(self.levels) + 1) + rank, "left")
        (at, first, last), axes = _aligned([_named(at, axes), low, high])
        at = np.clip(at, first, last)
        if order.upwards:
            return _named(np.maximum(at, first), axes), _named(last, axes)
        return _named(first, axes), _named(np.minimum(at, last), axes)


def _named(array: np.ndarray, axes: tuple[int, ...]) -> Named:
    return Named(torch.from_numpy(np.asarray(array)), axes)


def _aligned(parts: Sequence[Named]) -> tuple[list[np.ndarray], tuple[int, ...]]:
    """The arrays of the values broadcast over all their axes, and these."""
    axes = tuple(sorted({axis for part in parts for axis in part.axes}))
    arrays = np.broadcast_arrays(*(spread(part, axes).numpy() for part in parts))
    return [np.array(array) for array in arrays], axes


def _joined(parts: Sequence[Named], keys: Sequence[np.ndarray]) -> tuple[Named, np.ndarray]:
    """One code for several key values, and whether all of them occur among ``keys``."""
    code, occurs = np.zeros((), dtype=np.int64), np.ones((), dtype=bool)
    axes: tuple[int, ...] = ()
    for part, key in zip(parts, keys, strict=True):
        at = np.searchsorted(key, part.data.numpy()).clip(0, max(len(key) - 1, 0))
        if len(key):
            hit = key[at] == part.data.numpy()
        else:
            hit = np.zeros(at.shape, dtype=bool)
        pieces = ((code, axes), (occurs, axes), (at, part.axes), (hit, part.axes))
        (code, occurs, at, hit), axes = _aligned([_named(array, dims) for array, dims in pieces])
        code, occurs = code * max(len(key), 1) + at, occurs & hit
    return _named(code, axes), occurs


def key_codes(bound: Bound, binder: ir.Binder, keys: Sequence[ir.Expr], elements: np.ndarray) -> np.ndarray:
    """A number for each element; it is equal for elements at which all key expressions are equal."""
    env = {binder: _named(np.ascontiguousarray(elements), (new_axis(),))}
    code = np.zeros(len(elements), dtype=np.int64)
    for expr in keys:
        values = np.broadcast_to(Conditions(bound).value(expr, env).data.numpy(), (len(elements),))
        own, at = np.unique(values, return_inverse=True)
        code = code * max(len(own), 1) + at.reshape(-1)
    return code


def index(bound: Bound, selection: Selection) -> Index:
    """The sorted rows of a selection, made once for the same data."""
    keys = (own for own, _ in selection.keys)
    inner = (*selection.static, *keys, *(order.inner for order in selection.orders))
    made_of = (*inner, *deciding(selection.binder.domain))
    return common(bound, ("index", selection), made_of, lambda: _index(bound, selection))


def _index(bound: Bound, selection: Selection) -> Index:
    """The index of a selection; selections with the same conditions, keys and quantity share one order."""
    domain, text = selection.binder.domain, decided_by(selection)
    table = domain.table if isinstance(domain, ir.RowSet) else domain
    key = ("order", table, selection if text is None else text)
    order = remember(bound, key, lambda: indices.prepared(bound, domain, text) or order_of(bound, selection))
    arrays = {field.name: getattr(order, field.name) for field in fields(Order)}
    if selection.excludes and not len(order.place):
        arrays["place"] = remember(bound, ("place", *key[1:]), lambda: places(bound, selection, order.rows))
    return Index(owner=weakref.ref(bound), selection=selection, **arrays)


def decided_by(selection: Selection) -> str | None:
    """The text that decides a selection's order, or None (see ``indices.decided``)."""
    inner = [own for own, _ in selection.keys]
    if selection.orders:
        along = selection.orders[0].inner
    else:
        along = None
    return indices.decided(selection.binder.domain, selection.static, inner, along)


def order_of(bound: Bound, selection: Selection) -> Order:
    """The rows of a selection, sorted."""
    binder = selection.binder
    rows = ids(bound, binder.domain)
    if selection.static:
        rows = rows[accepted(bound, binder, selection.static, rows, Conditions)]
    groups = np.zeros(1, dtype=np.int64)  # without keys there is one group
    bounds = np.array([0, len(rows)], dtype=np.int64)
    if not selection.keys and not selection.orders:
        return Order(rows=rows, groups=groups, bounds=bounds)
    env = {binder: _named(np.ascontiguousarray(rows), (new_axis(),))}
    evaluate = Conditions(bound)

    def distinct(expr: ir.Expr) -> tuple[np.ndarray, np.ndarray]:
        """The distinct values of the rows, and the number of each row's value."""
        value = evaluate.value(expr, env)
        return np.unique(np.broadcast_to(value.data.numpy(), (len(rows),)), return_inverse=True)

    code = np.zeros(len(rows), dtype=np.int64)
    keys = []
    levels = indices.NONE
    for expr, _ in selection.keys:
        own, at = distinct(expr)
        keys.append(own)
        code = code * max(len(own), 1) + at
    if selection.orders:
        levels, level = distinct(selection.orders[0].inner)
        order = np.lexsort((level, code))
    else:
        order = np.argsort(code, kind="stable")
    if selection.keys:
        code = code[order]
        if len(rows):
            first = np.flatnonzero(np.append(True, code[1:] != code[:-1]))
        else:
            first = indices.NONE
        groups, bounds = code[first], np.append(first, len(rows))
    ranked = indices.NONE
    if selection.orders:
        ranked = np.repeat(np.arange(len(groups)), np.diff(bounds)) * (len(levels) + 1) + level[order]
    return Order(
        rows=rows[order], keys=tuple(keys), groups=groups, bounds=bounds, levels=levels, ranked=ranked
    )


def places(bound: Bound, selection: Selection, rows: np.ndarray) -> np.ndarray:
    """The position of each id in ``rows``, or -1."""
    place = np.full(extent(bound, selection.binder.domain), -1, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    return place


# ---------------------------------------------------------------------------------------- realising
def realise(bound: Bound, selection: Selection, *, empty: str = "error") -> Ranges:
    """A selection as index arrays over all ids that its parents can have.

    empty   ``error``: F0705 names a cell of elements of the parents' sets that has no row;
            ``keep``: the size of such a cell is 0
    """
    if not selection.parents:
        rows = index(bound, selection).rows
        if not len(rows) and empty == "error":
            no_elements(bound, selection.binder)
        return Ranges(rows=rows)
    ranges = remember(bound, ("ranges", selection), lambda: _ranges_of(bound, selection))
    if empty == "error":
        _check(bound, selection, ranges)
    return ranges


def _ranges_of(bound: Bound, selection: Selection) -> Ranges:
    """``realise`` of a selection with parents, empty cells kept."""
    lookup = index(bound, selection)
    cells = tuple(extent(bound, parent.domain) for parent in selection.parents)
    needed = CELL_BYTES * math.prod(cells)
    if math.prod(cells) > MAX_CELLS:
        left: float | None = CELL_BYTES * MAX_CELLS
    else:
        left = memory.lacking(needed)
    if left is not None:
        error = errors.too_many_cells(selection.binder, math.prod(cells), needed, left)
        refuse(error, source=bound.problem.source)
    axes = tuple(new_axis() for _ in cells)
    env = {
        parent: Named(torch.arange(count), (axis,))
        for parent, count, axis in zip(selection.parents, cells, axes, strict=True)
    }

    def full(part: Named) -> np.ndarray:
        """The values of all cells."""
        return np.ascontiguousarray(np.broadcast_to(spread(part, axes).numpy(), cells))

    start, count, skip = lookup.locate(env)
    ranges = Ranges(rows=lookup.rows, start=full(start), size=full(count))
    if skip is not None:
        ranges = replace(ranges, skip=full(skip))
    if selection.masks:
        ranges = replace(ranges, accept=_accepted(bound, selection, ranges))
    return ranges


def _check(bound: Bound, selection: Selection, ranges: Ranges) -> None:
    """Raise F0705 if a cell of elements of the parents' sets has no row."""
    assert ranges.size is not None
    lists = [ids(bound, parent.domain) for parent in selection.parents]
    members = np.ix_(*lists)
    count = ranges.size[members]
    if ranges.skip is not None:
        count = count - (ranges.skip[members] >= 0)
    if ranges.accept is not None:
        count = count * ranges.accept[members]
    if count.size and not (count > 0).all():
        cell = np.unravel_index(int(np.argmin(count > 0)), count.shape)
        chosen = zip(selection.parents, lists, cell, strict=True)
        which = {parent: int(parent_ids[at]) for parent, parent_ids, at in chosen}
        no_elements(bound, selection.binder, which, int((count <= 0).sum()))


def no_elements(
    bound: Bound, binder: ir.Binder, which: Mapping[ir.Binder, int] | None = None, total: int = 1
) -> NoReturn:
    """Raise F0705: the outer elements ``which``, one of ``total`` cases, leave no element for the binder."""
    named = (which or {}).items()
    where = ", ".join(f"{b.name} = {name_of(bound, b.domain, element)}" for b, element in named)
    if total > 1:
        where += f" (and for {total - 1} more)"
    refuse(errors.group_left_empty(binder, where), source=bound.problem.source)


def _accepted(bound: Bound, selection: Selection, ranges: Ranges) -> np.ndarray:
    """The fraction of each cell's run that passes the masks; 0 for ids outside of the parents' sets."""
    assert ranges.start is not None and ranges.size is not None
    members = [ids(bound, parent.domain) for parent in selection.parents]
    lengths = tuple(len(m) for m in members)
    grid = np.ix_(*members)
    start, count = ranges.start[grid].ravel(), ranges.size[grid].ravel()
    skip = None
    if ranges.skip is not None:
        skip = ranges.skip[grid].ravel()
    if int(count.sum()) > MAX_TESTS:
        refuse(errors.too_many_tests(selection.binder, count.sum()), source=bound.problem.source)
    if selection.keys or selection.orders:
        passed = _passed_in_runs(bound, selection, ranges, start, count, skip)
    else:
        passed = _passed_of_all(bound, selection, ranges.rows, lengths, skip)
    valid = count - (0 if skip is None else (skip >= 0))
    accept = np.zeros(ranges.size.shape)
    accept[grid] = (passed / np.maximum(valid, 1)).reshape(lengths)
    return accept


def _passed_in_runs(
    bound: Bound,
    selection: Selection,
    ranges: Ranges,
    start: np.ndarray,
    count: np.ndarray,
    skip: np.ndarray | None,
) -> np.ndarray:
    """The number of rows of each cell's run that pass the masks, which are tested pair by pair."""
    members = [ids(bound, parent.domain) for parent in selection.parents]
    lengths = tuple(len(m) for m in members)
    passed = np.zeros(len(count), dtype=np.int64)
    for cell, offset in pair_blocks(count):
        rows = ranges.rows[start[cell] + offset]
        axis = new_axis()
        env = {selection.binder: _named(rows, (axis,))}
        places = np.unravel_index(cell, lengths)
        for parent, parent_ids, at in zip(selection.parents, members, places, strict=True):
            env[parent] = _named(parent_ids[at], (axis,))
        if skip is None:
            keep = np.ones(len(rows), dtype=bool)
        else:
            keep = offset != skip[cell]
        for mask in selection.masks:
            keep &= np.broadcast_to(Conditions(bound).value(mask, env).data.bool().numpy(), keep.shape)
        passed += np.bincount(cell[keep], minlength=len(count))
    return passed


def _passed_of_all(
    bound: Bound,
    selection: Selection,
    rows: np.ndarray,
    lengths: tuple[int, ...],
    skip: np.ndarray | None,
) -> np.ndarray:
    """How many of all rows pass the masks in each cell, without a list of the pairs: a block of cells
    lies along one axis, the rows along another."""
    members = [ids(bound, parent.domain) for parent in selection.parents]
    total, axes = math.prod(lengths), (new_axis(), new_axis())
    passed = np.zeros(total, dtype=np.int64)
    step = max(1, MASK_BLOCK // max(len(rows), 1))
    for low in range(0, total, step):
        cells = np.arange(low, min(low + step, total))
        places = np.unravel_index(cells, lengths)
        env = {selection.binder: _named(rows, axes[1:])}
        for parent, parent_ids, at in zip(selection.parents, members, places, strict=True):
            env[parent] = _named(parent_ids[at], axes[:1])
        keep = np.ones((len(cells), len(rows)), dtype=bool)
        for mask in selection.masks:
            keep &= spread(Conditions(bound).value(mask, env), axes).bool().numpy()
        if skip is not None:
            left_out = skip[cells]
            keep[np.flatnonzero(left_out >= 0), left_out[left_out >= 0]] = False
        passed[cells] = keep.sum(1)
    return passed


def pair_blocks(count: np.ndarray, block: int = 1 << 20) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """All pairs (cell, offset < count[cell]) in blocks of at most ``block`` pairs, in order."""
    ends = np.cumsum(count)
    if len(ends):
        total = int(ends[-1])
    else:
        total = 0
    for low in range(0, total, block):
        flat = np.arange(low, min(low + block, total))
        cell = np.searchsorted(ends, flat, "right")
        yield cell, flat - (ends[cell] - count[cell])
