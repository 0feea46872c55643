"""Whether two expressions are the same but for the names of their own binders."""

from __future__ import annotations

from collections.abc import Mapping

from fccomodel.core import ir

Renaming = Mapping[ir.Binder, ir.Binder]


def equal(a: ir.Expr, b: ir.Expr, renamed: Renaming | None = None) -> bool:
    """Whether the texts of two expressions show that they are equal: the same nodes over the same
    sets.

    Draws of a distribution are never equal.
    """
    names = renamed or {}
    if a is b and not names:
        return True
    if type(a) is not type(b) or a.shape != b.shape or len(a.children) != len(b.children):
        return False
    if isinstance(a, ir.Reduce) and isinstance(b, ir.Reduce):
        inner = same_elements(a, b, names)
        if a.kind != b.kind or inner is None or a.options.keys() != b.options.keys():
            return False
        names = inner
    elif isinstance(a, ir.Element | ir.Column) and isinstance(b, ir.Element | ir.Column):
        same_name = getattr(a, "name", "") == getattr(b, "name", "")
        return names.get(a.binder, a.binder) is b.binder and same_name
    elif not a.children:
        return ir.same(a, b)
    elif not _same_operation(a, b, names):
        return False
    return all(equal(x, y, names) for x, y in zip(a.children, b.children, strict=True))


def _same_operation(a: ir.Expr, b: ir.Expr, names: Renaming) -> bool:
    """Whether two nodes of one type do the same to their children."""
    match a, b:
        case (ir.Apply(), ir.Apply()):
            return a.op == b.op
        case (ir.NetCall(), ir.NetCall()):
            return a.net == b.net
        case (ir.LetRef(), ir.LetRef()):
            return a.let is b.let and not any(arg in names for arg in ir.free_binders(a.let.body))
    return isinstance(a, ir.Item)


def same_elements(a: ir.Reduce, b: ir.Reduce, renamed: Renaming | None = None) -> Renaming | None:
    """The map of one reduction's binders to those of another over the same elements, or None."""
    if len(a.binders) != len(b.binders) or (a.condition is None) != (b.condition is None):
        return None
    if not all(same_set(x.domain, y.domain) for x, y in zip(a.binders, b.binders, strict=True)):
        return None
    names = {**(renamed or {}), **dict(zip(a.binders, b.binders, strict=True))}
    if a.condition is not None and b.condition is not None and not equal(a.condition, b.condition, names):
        return None
    return names


def same_set(a: ir.Set, b: ir.Set) -> bool:
    """Whether two sets are written alike: one declared set, all rows of one table, or the same
    numbers."""
    match a, b:
        case (ir.Distribution(), _) | (ir.VectorSet(), _):
            return False
        case (ir.RowSet(row=row, where=where), ir.RowSet(row=other, where=condition)):
            if a.table != b.table or (where is None) != (condition is None):
                return False
            if row is not None and other is not None:
                named = {row: other}
            else:
                named = {}
            return where is None or condition is None or equal(where, condition, named)
        case (ir.ValueSet(), ir.ValueSet()):
            return a is b or all(
                _same(getattr(a, end), getattr(b, end)) for end in ("low", "high", "step", "items")
            )
    return a is b


def _same(a: ir.Expr | tuple[ir.Expr, ...] | None, b: ir.Expr | tuple[ir.Expr, ...] | None) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(ir.same, a, b))
    return a is b or isinstance(a, ir.Expr) and isinstance(b, ir.Expr) and ir.same(a, b)
