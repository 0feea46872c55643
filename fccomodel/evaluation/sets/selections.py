"""Selections: the elements of a binder given the binders around it.

A condition is taken apart into one selection per binder, whose conjuncts are sorted by kind.
``realising`` turns a selection into arrays of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from fccomodel.core import ir
from fccomodel.core.rewrite import conjuncts

#: Conditions whose selections are remembered.
MOST_SPLITS = 4096


@dataclass(frozen=True, kw_only=True)
class ThresholdCondition:
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
    orders: tuple[ThresholdCondition, ...] = ()
    excludes: tuple[ir.Binder, ...] = ()
    masks: tuple[ir.Expr, ...] = ()
    parents: tuple[ir.Binder, ...] = ()


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
        mentioned = [k for k, binder in enumerate(binders) if binder in free]
        last = mentioned[-1] if mentioned else len(parts) - 1
        parts[last] = _with(parts[last], conjunct, free)
    return tuple(parts)


def _through_equal_keys(binders: Sequence[ir.Binder], conditions: list[ir.Expr]) -> list[ir.Expr]:
    """The conditions with equalities of keys rewritten so that each binder is compared with few others.

    Each binder is compared with one that comes before it. ``j.g == i.g and j.g == q`` becomes
    ``i.g == q and j.g == q``, so that i takes only the rows of q. If j is compared with i in another
    way too, ``i.g == q and j.g == q`` becomes ``i.g == q and j.g == i.g``, so that i alone decides
    the rows of j.
    """
    if len(binders) <= 1:
        return conditions
    equalities = [c for c in conditions if _compares_keys(c)]
    for keys in _classes(equalities):
        if len(keys) >= 3:
            conditions = _with_anchors(binders, conditions, equalities, keys)
    return conditions


def _with_anchors(
    binders: Sequence[ir.Binder],
    conditions: list[ir.Expr],
    equalities: Sequence[ir.Expr],
    keys: Sequence[ir.Expr],
) -> list[ir.Expr]:
    """The conditions with the equalities of one class of keys rewritten.

    The key of each binder becomes equal to its anchor: the key of an outer binder, or of a binder before
    it. The conditions stay as they are if a binder has two keys, or if there are two outer keys.
    """
    keys_of = [[key for key in keys if binder in ir.free_binders(key)] for binder in binders]
    anchors = [key for key in keys if ir.free_binders(key)[0] not in binders]
    if any(len(own_keys) > 1 for own_keys in keys_of) or len(anchors) > 1:
        return conditions
    class_equalities = []
    for equality in equalities:
        left, _ = _sides(equality)
        if any(ir.same(left, key) for key in keys):
            class_equalities.append(equality)
    others = [c for c in conditions if all(c is not equality for equality in class_equalities)]
    rewritten: list[ir.Expr] = []
    for binder, own_keys in zip(binders, keys_of, strict=True):
        if anchors:
            for key in own_keys:
                anchor = _nearest(anchors, binder, others)
                rewritten.append(_equality(class_equalities, key, anchor))
        anchors += own_keys
    return others + rewritten


def _nearest(anchors: Sequence[ir.Expr], binder: ir.Binder, others: Sequence[ir.Expr]) -> ir.Expr:
    """The first key of a binder that other conditions relate to the given one, or else the first key."""
    related: set[ir.Binder] = set()
    for condition in others:
        free = ir.free_binders(condition)
        if binder in free:
            related.update(free)
    for key in anchors:
        if ir.free_binders(key)[0] in related:
            return key
    return anchors[0]


def _compares_keys(condition: ir.Expr) -> bool:
    """Whether a condition equates two expressions, each of one listed element, of different binders."""
    if not isinstance(condition, ir.Apply) or condition.op != "eq" or len(condition.args) != 2:
        return False
    left, right = (ir.free_binders(arg) for arg in condition.args)
    if len(left) != 1 or len(right) != 1:
        return False
    return listed(left[0]) and listed(right[0]) and left != right


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
            if any(_among(side, keys) for side in sides):
                joined += keys
            else:
                separate.append(keys)
        joined += [side for side in sides if not _among(side, joined)]
        classes = [*separate, joined]
    return classes


def _among(expr: ir.Expr, keys: Sequence[ir.Expr]) -> bool:
    """Whether an expression is the same as one of the keys."""
    return any(ir.same(expr, key) for key in keys)


def _equality(known: Sequence[ir.Expr], one: ir.Expr, other: ir.Expr) -> ir.Expr:
    """The condition that two expressions are equal, as written among ``known`` if it is there."""
    for condition in known:
        left, right = _sides(condition)
        as_written = ir.same(one, left) and ir.same(other, right)
        reversed_sides = ir.same(one, right) and ir.same(other, left)
        if as_written or reversed_sides:
            return condition
    return ir.Apply(op="eq", args=(one, other), span=one.span)


def listed(binder: ir.Binder) -> bool:
    """Whether a binder ranges over a finite list, not over draws of a distribution or vectors."""
    return not isinstance(binder.domain, ir.Distribution | ir.VectorSet)


def _with(part: Selection, conjunct: ir.Expr, free: tuple[ir.Binder, ...]) -> Selection:
    """The selection with one more conjunct, whose free binders are ``free``."""
    binder = part.binder
    outer = [other for other in free if other is not binder]
    parents = tuple(dict.fromkeys((*part.parents, *outer)))
    if not outer and listed(binder):
        return replace(part, static=(*part.static, conjunct))
    part = replace(part, parents=parents)
    masked = replace(part, masks=(*part.masks, conjunct))
    if binder not in free or not all(listed(other) for other in free):
        return masked
    if not isinstance(conjunct, ir.Apply) or len(conjunct.args) != 2:
        return masked
    return _with_relation(part, conjunct) or masked


def _with_relation(part: Selection, conjunct: ir.Apply) -> Selection | None:
    """The selection with a conjunct as a key, a comparison or an excluded row; None if it is none of these.

    The binder must be on one side alone, which is turned to the left.
    """
    binder = part.binder
    op = conjunct.op
    left, right = conjunct.args
    if binder in ir.free_binders(right):
        op, left, right = FLIPPED.get(op, op), right, left
    if binder in ir.free_binders(right):
        return None
    if op in FLIPPED:
        comparisons = _comparisons(binder, conjunct, op, left, right)
        orders = (*part.orders, *comparisons)
        one_quantity = all(ir.same(orders[0].inner, order.inner) for order in orders)
        if not comparisons or not one_quantity:
            return None
        return replace(part, orders=orders)
    if ir.free_binders(left) != (binder,):
        return None
    if op == "eq":
        return replace(part, keys=(*part.keys, (left, right)))
    if op == "ne" and not part.excludes and _same_row(left, right):
        assert isinstance(right, ir.Element)
        return replace(part, excludes=(right.binder,))
    return None


def _comparisons(
    binder: ir.Binder, conjunct: ir.Expr, op: str, left: ir.Expr, right: ir.Expr
) -> tuple[ThresholdCondition, ...]:
    """The comparisons with thresholds that ``left op right`` is equivalent to; none if it is not.

    The binder is in ``left`` alone. ``abs(u) <= c`` is ``u <= c`` and ``u >= -c``.
    """
    condition = ir.Apply(op=op, args=(left, right))
    if ir.free_binders(left) == (binder,):
        return (ThresholdCondition(op=op, inner=left, outer=right, test=condition),)
    if isinstance(left, ir.Apply) and left.op == "abs" and op in ("le", "lt"):
        (inside,) = left.args
        minus_right = ir.Apply(op="neg", args=(right,), shape=right.shape, span=right.span)
        below = ir.Apply(op=op, args=(inside, right))
        above = ir.Apply(op=FLIPPED[op], args=(inside, minus_right))
        comparisons = [_comparison(binder, below), _comparison(binder, above)]
    else:
        comparisons = [_comparison(binder, condition, conjunct)]
    return tuple(comparison for comparison in comparisons if comparison is not None)


def _comparison(
    binder: ir.Binder, condition: ir.Apply, test: ir.Expr | None = None
) -> ThresholdCondition | None:
    """A comparison whose left side is monotone in a quantity of the binder's element, or None.

    ``test``: the condition as written, if this is not it.
    """
    left, _ = condition.args
    monotone = _monotone(left, binder)
    if monotone is None:
        return None
    quantity, rises = monotone
    op = condition.op
    if not rises:
        op = FLIPPED[op]
    return ThresholdCondition(op=op, inner=quantity, test=test or condition)


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
    monotone = _monotone(expr.args[place], binder)
    if monotone is None:
        return None
    keeps_direction = _rises_in(expr, place)
    if keeps_direction is None:
        return None
    quantity, rises = monotone
    return quantity, rises == keeps_direction


def _rises_in(expr: ir.Apply, place: int) -> bool | None:
    """Whether an operation rises in the argument at this place; None if it need not be monotone in it."""
    match expr.op:
        case "add":
            return True
        case "neg":
            return False
        case "sub":
            return place == 0
        case "mul" | "div":
            factor = expr.args[1 - place]
            divides = expr.op == "div" and place == 1
            if isinstance(factor, ir.Const) and factor.value != 0 and not divides:
                return factor.value > 0
    return None


def _same_row(left: ir.Expr, right: ir.Expr) -> bool:
    """Whether both expressions are rows of one table."""
    if not isinstance(left, ir.Element) or not isinstance(right, ir.Element):
        return False
    left_set = left.binder.domain
    right_set = right.binder.domain
    if not isinstance(left_set, ir.RowSet) or not isinstance(right_set, ir.RowSet):
        return False
    return left_set.table == right_set.table


def taken_by(root: ir.Expr) -> dict[ir.Binder, Selection]:
    """The selection of each binder in an expression; all elements if two reductions differ in it."""
    selections: dict[ir.Binder, Selection] = {}
    conditions: dict[ir.Binder, ir.Expr | None] = {}
    for node in ir.walk(root):
        if not isinstance(node, ir.Reduce):
            continue
        for part in split(node.binders, node.condition):
            binder = part.binder
            differ = binder in selections and conditions[binder] is not node.condition
            if differ:
                part = Selection(binder=binder)
            selections[binder] = part
            conditions[binder] = node.condition
    return selections


def relations(selection: Selection) -> list[ir.Expr]:
    """The conditions of a selection that relate it to other binders, as expressions."""
    conditions: list[ir.Expr] = []
    conditions += [ir.Apply(op="eq", args=sides) for sides in selection.keys]
    conditions += [order.test for order in selection.orders]
    own = ir.Element(binder=selection.binder)
    for other in selection.excludes:
        theirs = ir.Element(binder=other)
        conditions.append(ir.Apply(op="ne", args=(own, theirs)))
    conditions += selection.masks
    return conditions
