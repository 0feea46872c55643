"""``data``: tables, families of tables, arrays, and the types of their columns."""

from __future__ import annotations

from dataclasses import replace

from fccomodel.core import ir
from fccomodel.core.source import Span
from fccomodel.language import errors, syntax
from fccomodel.language.check import index_sets
from fccomodel.language.formulas import declarations, literals
from fccomodel.language.formulas.context import (
    BrokenSymbol,
    Context,
    NumberSymbol,
    SetSymbol,
    TableSymbol,
)


def data(ctx: Context, node: syntax.DataDecl) -> None:
    span = declarations.name_span(ctx, node, node.name)
    if node.type is not None:
        _array(ctx, node, node.type, span)
    else:
        _table(ctx, node, span)


def _array(ctx: Context, node: syntax.DataDecl, written: syntax.TypeExpr, span: Span) -> None:
    """``data c : real[K];``"""
    if node.family is not None:
        kind = None
    else:
        kind = column_type(ctx, written)
    if node.family is not None:
        ctx.report(errors.declarations.family_without_rows(node.name, span))
    if kind is None:
        declarations.broken(ctx, node, node.name)
        return
    param = ir.Param(name=node.name, shape=kind.shape, span=span)
    what = "an array" if kind.shape else "a number given as data"
    if ctx.declare(NumberSymbol(name=node.name, what=what, span=span, node=param)):
        ctx.arrays[node.name] = ir.Array(name=node.name, type=kind, span=span)


def _table(ctx: Context, node: syntax.DataDecl, span: Span) -> None:
    """``data D : table(x: real[d], ...);`` or a family of tables."""
    family: ir.Binder | None = None
    broken = False
    if node.family is not None:
        head = index_sets.family(ctx, node.family, "a family of tables")
        if head is not None and (len(head.binders) > 1 or head.condition is not None):
            ctx.report(errors.declarations.family_of_tables(node.name, node.family.span))
            head = None
        broken = head is None
        if head is not None:
            family = head.binders[0]
        else:
            family = None
    columns: dict[str, ir.ColumnType] = {}
    for column in node.fields or ():
        if column.name in columns:
            ctx.report(errors.names.column_twice(column.name, column.span))
            continue
        kind = column_type(ctx, column.type)
        broken = broken or kind is None
        if kind is not None:
            columns[column.name] = replace(kind, span=column.span)
    if broken:
        declarations.broken(ctx, node, node.name)
        return
    what = "a family of tables" if family is not None else "a table"
    rows = ir.RowSet(name=node.name, table=node.name)
    if ctx.declare(TableSymbol(name=node.name, what=what, span=span, rows=rows)):
        ctx.tables[node.name] = ir.Table(name=node.name, columns=columns, family=family, span=span)


def column_type(ctx: Context, node: syntax.TypeExpr) -> ir.ColumnType | None:
    """``real[d]``, ``int``, ``{-1, 1}``, a set's name."""
    shape = literals.declared_shape(ctx, declarations.HERE, node.shape)
    if node.values is not None:
        domain = literals.literal_set(ctx, declarations.HERE, node.values)
        if domain is None or shape is None:
            return None
        return ir.ColumnType(kind="values", shape=shape, domain=domain, span=node.span)
    if node.name in ("real", "int"):
        if shape is None:
            return None
        return ir.ColumnType(kind=node.name, shape=shape, span=node.span)
    assert node.name is not None
    symbol = ctx.symbols.get(node.name)
    if isinstance(symbol, SetSymbol) and isinstance(symbol.set, ir.ValueSet | ir.LabelSet):
        ctx.used.add(node.name)
        if shape is None:
            return None
        return ir.ColumnType(kind="values", shape=shape, domain=symbol.set, span=node.span)
    if isinstance(symbol, BrokenSymbol):
        ctx.used.add(node.name)
        return None
    _no_type(ctx, node, node.name)
    return None


#: types of other languages -> what to write
FOREIGN = {
    "float": "`real`",
    "number": "`real`",
    "double": "`real`",
    "integer": "`int`",
    "bool": "`{0, 1}`",
    "binary": "`{0, 1}`",
    "boolean": "`{0, 1}`",
    "string": "a set of labels: `set G;` before the table, then `G`",
    "str": "a set of labels: `set G;` before the table, then `G`",
}


def _no_type(ctx: Context, node: syntax.TypeExpr, name: str) -> None:
    """The error for a name that is not the type of a column."""
    symbol = ctx.symbols.get(name)
    at = Span(start=node.span.start, end=node.span.start + len(name))
    if symbol is not None:
        ctx.used.add(name)
        ctx.report(errors.declarations.not_a_type(name, symbol.what, at))
    elif name in ctx.later:
        ctx.report(errors.names.too_early(name, ctx.line(ctx.later[name]), at))
    else:
        sets = [
            n
            for n, s in ctx.symbols.items()
            if isinstance(s, SetSymbol) and isinstance(s.set, ir.ValueSet | ir.LabelSet)
        ]
        ctx.report(errors.declarations.unknown_type(name, sets, FOREIGN.get(name, ""), at))
