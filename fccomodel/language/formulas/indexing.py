"""``z.x`` and ``v[k]``: columns of rows, entries of arrays, members of families."""

from __future__ import annotations

from fccomodel.core import ir
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import arrays, expressions, names, places, shapes
from fccomodel.language.formulas.context import (
    BrokenSymbol,
    Context,
    FormulaArray,
    LetSymbol,
    Scope,
    SetFamilySymbol,
    TableSymbol,
)
from fccomodel.language.formulas.shapes import describe, described, show, sort


@expressions.evaluates(syntax.Field)
def field(ctx: Context, scope: Scope, node: syntax.Field) -> ir.Expr | None:
    """``z.x``: a column at a row."""
    if isinstance(node.obj, syntax.Name) and node.obj.id not in scope.locals:
        symbol = names.find(ctx, node.obj.id)
        if isinstance(symbol, TableSymbol):
            ctx.used.add(symbol.name)
            ctx.report(errors.sorts.column_of_whole_table(ctx.quote(node), symbol.name, node.name))
            return None
    row = expressions.evaluate(ctx, scope, node.obj)
    if row is None:
        return None
    if sort(ctx, row) != "row":
        description = described(ctx, row, at=node.obj)
        ctx.report(errors.sorts.no_columns(description, node.name, node.span))
        return None
    assert isinstance(row, ir.Element) and isinstance(row.binder.domain, ir.RowSet)
    table = ctx.tables[row.binder.domain.table]
    if node.name not in table.columns:
        ctx.report(
            errors.names.unknown_column(table.name, node.name, table.columns, ctx.line(table.span), node.span)
        )
        return None
    return ir.Column(binder=row.binder, name=node.name, shape=table.columns[node.name].shape, span=node.span)


@expressions.evaluates(syntax.Index)
def index(ctx: Context, scope: Scope, node: syntax.Index) -> ir.Expr | None:
    """``v[i]``, ``A[i, j]``, ``tpr[0, t]``."""
    if isinstance(node.obj, syntax.Name) and node.obj.id not in scope.locals:
        symbol = names.find(ctx, node.obj.id)
        if isinstance(symbol, LetSymbol):
            ctx.used.add(symbol.name)
            return member(ctx, scope, node, symbol)
        if isinstance(symbol, SetFamilySymbol | TableSymbol):
            ctx.used.add(symbol.name)
            ctx.report(errors.sorts.member_of_family_as_number(ctx.quote(node)))
            return None
        if isinstance(symbol, BrokenSymbol):
            ctx.used.add(symbol.name)
            _check_items(ctx, scope, node)
            return None
    base = arrays.operand(ctx, scope, node.obj)
    if base is None:
        _check_items(ctx, scope, node)
        return None
    if not base.shape or shapes.is_net_parameters(base):
        ctx.report(errors.indices.not_indexable(ctx.quote(node.obj), describe(ctx, base), node.span))
        return None
    return _entry(ctx, scope, node, base)


def _check_items(ctx: Context, scope: Scope, node: syntax.Index) -> None:
    """Report the errors inside the brackets, of slices those of their ends."""
    for item in node.items:
        match item:
            case syntax.Whole():
                ends: tuple[syntax.Expr, ...] = ()
            case syntax.Range():
                ends = (item.low, item.high)
            case _:
                ends = (item,)
        for end in ends:
            expressions.evaluate(ctx, scope, end)


def _entry(ctx: Context, scope: Scope, node: syntax.Index, base: ir.Expr) -> ir.Expr | None:
    """An entry of an array, or a part of it if there are fewer indices than axes: ``A[k]`` is a row."""
    axes = len(base.shape)
    if len(node.items) > axes and not _has_indices(ctx, node, axes, f"a {show(base.shape)}"):
        return None
    if isinstance(base, FormulaArray) or any(map(arrays.is_slice, node.items)):
        return arrays.indexed(ctx, scope, node, base)
    values = _values(ctx, scope, node)
    if values is None:
        return None
    return places.entry_at(ctx, base, values, node.span, ctx.text(node.obj.span))


def _values(ctx: Context, scope: Scope, node: syntax.Index) -> tuple[ir.Expr, ...] | None:
    """The values of the indices, or None after an error."""
    values = expressions.complete([expressions.evaluate(ctx, scope, item) for item in node.items])
    if values is None:
        return None
    return tuple(values)


def member(ctx: Context, scope: Scope, node: syntax.Index, symbol: LetSymbol) -> ir.Expr | None:
    """A member of a family of quantities, or an entry of a quantity that is an array."""
    let = symbol.let
    if not let.binders:
        if let.body.shape and len(node.items) <= len(let.body.shape):
            return _entry(ctx, scope, node, ir.LetRef(let=let, shape=let.body.shape, span=node.obj.span))
        what, line = describe(ctx, let.body), ctx.line(symbol.span)
        ctx.report(errors.indices.let_without_family(symbol.name, what, len(node.items), line, node.span))
        return None
    if len(node.items) < len(let.binders) or any(map(arrays.is_slice, node.items)):
        whole = arrays.family(ctx, let, node.obj.span)
        if whole is not None:
            return _entry(ctx, scope, node, whole)
    family = f"the family `{symbol.name}[{', '.join(b.name for b in let.binders)}]`"
    if not _has_indices(ctx, node, len(let.binders), family):
        return None
    values = _values(ctx, scope, node)
    if values is None:
        return None
    return places.member_at(ctx, let, values, node.span)


def _has_indices(ctx: Context, node: syntax.Index, wanted: int, what: str) -> bool:
    """Whether the number of indices is right. Reports an error if not."""
    count = len(node.items)
    if count == wanted:
        return True
    ctx.report(errors.indices.wrong_number(ctx.quote(node), count, what, wanted))
    return False
