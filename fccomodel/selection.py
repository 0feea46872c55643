"""What a binder ranges over, given the binders around it: conditions taken apart, then realised as index arrays."""

from __future__ import annotations

from dataclasses import dataclass

from fccomodel import ir


@dataclass(frozen=True, eq=False, kw_only=True)
class Selection:
    """The elements of one binder, with its condition split by the way it can be sampled.

    static    conjuncts about the binder's own element alone (with those of its set): a filter, applied once
    keys      pairs (own, outer) that must be equal: a group index
    orders    triples (op, own, outer) meaning ``own op outer``, op of ``ge gt le lt``: a range of a sorted order
    excludes  outer binders of the same table whose row is left out (``j != i``)
    masks     every other conjunct: evaluated for each pair
    parents   the binders that keys, orders, excludes and masks depend on
    """

    binder: ir.Binder
    static: tuple[ir.Expr, ...] = ()
    keys: tuple[tuple[ir.Expr, ir.Expr], ...] = ()
    orders: tuple[tuple[str, ir.Expr, ir.Expr], ...] = ()
    excludes: tuple[ir.Binder, ...] = ()
    masks: tuple[ir.Expr, ...] = ()
    parents: tuple[ir.Binder, ...] = ()
