"""``data D : table(x: real[d], y: {-1, 1});``, ``data c : real[A];``: tables, families of tables, arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fccomodel.core import ir
from fccomodel.core.source import Span
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import declarations, families, limits, literals
from fccomodel.language.formulas.context import (
    BrokenSymbol,
    Context,
    NumberSymbol,
    SetSymbol,
    TableSymbol,
)
from fccomodel.language.printing import TextWriter
from fccomodel.language.python_code import PythonWriter, doc_argument, is_keyword
from fccomodel.language.statements import StatementKind
from fccomodel.language.tree import declared


@dataclass(frozen=True, kw_only=True)
class DataDecl(syntax.Statement):
    """``data D : table(...)`` (``fields``), or ``data c : real[A]`` (``type``)."""

    name: str
    family: syntax.Indexing | None = None
    fields: tuple[syntax.FieldDecl, ...] | None = None
    type: syntax.TypeExpr | None = None


def _read(c: list, at: Span) -> DataDecl:
    name, family, content = declared(c[0]), c[1], c[2]
    if isinstance(content, syntax.TypeExpr):
        return DataDecl(name=name, family=family, type=content, span=at)
    return DataDecl(name=name, family=family, fields=content, span=at)


def _read_columns(c: list, at: Span) -> tuple[syntax.FieldDecl, ...]:
    return tuple(c)


def _read_column(c: list, at: Span) -> syntax.FieldDecl:
    return syntax.FieldDecl(name=str(c[0]), type=c[1], span=at)


# ------------------------------------------------------------------------------------------- checks
def _check(ctx: Context, node: DataDecl) -> None:
    span = declarations.name_span(ctx, node, node.name)
    if node.type is not None:
        _check_array(ctx, node, node.type, span)
    else:
        _check_table(ctx, node, span)


def _check_array(ctx: Context, node: DataDecl, written: syntax.TypeExpr, span: Span) -> None:
    """``data c : real[K];``."""
    if node.family is not None:
        ctx.report(errors.declarations.family_without_rows(node.name, span))
        declarations.broken(ctx, node, node.name)
        return
    kind = _column_type(ctx, node.name, written)
    if kind is None:
        declarations.broken(ctx, node, node.name)
        return
    param = ir.Param(name=node.name, shape=kind.shape, span=span)
    what = "an array" if kind.shape else "a number given as data"
    if ctx.declare(NumberSymbol(name=node.name, what=what, span=span, node=param)):
        ctx.arrays[node.name] = ir.Array(name=node.name, type=kind, span=span)


def _check_table(ctx: Context, node: DataDecl, span: Span) -> None:
    """``data D : table(x: real[d], ...);`` or a family of tables."""
    family: ir.Binder | None = None
    broken = False
    if node.family is not None:
        family = _table_family(ctx, node.name, node.family)
        broken = family is None
    columns: dict[str, ir.ColumnType] = {}
    for column in node.fields or ():
        if column.name in columns:
            ctx.report(errors.names.column_twice(column.name, column.span))
            continue
        kind = _column_type(ctx, column.name, column.type)
        if kind is not None and kind.definite:
            ctx.report(errors.declarations.definite_column(column.name, column.span))
            kind = None
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


def _table_family(ctx: Context, name: str, written: syntax.Indexing) -> ir.Binder | None:
    """The one index of a family of tables, or None after an error."""
    head = families.family(ctx, written, "a family of tables")
    if head is None:
        return None
    if len(head.binders) > 1 or head.condition is not None:
        ctx.report(errors.declarations.family_of_tables(name, written.span))
        return None
    return head.binders[0]


def _column_type(ctx: Context, name: str, node: syntax.TypeExpr) -> ir.ColumnType | None:
    """``real[d] >= 0``, ``int``, ``{-1, 1}``, or a set's name; None after an error."""
    kind = _unbounded_type(ctx, node)
    if kind is None or node.limit is None:
        return kind
    return limits.of_data(ctx, name, kind, node.limit)


def _unbounded_type(ctx: Context, node: syntax.TypeExpr) -> ir.ColumnType | None:
    """The type without its bound; None after an error."""
    shape = literals.declared_shape(ctx, declarations.HERE, node.shape)
    if node.values is not None:
        domain = literals.literal_set(ctx, declarations.HERE, node.values)
        if domain is None or shape is None:
            return None
        return ir.ColumnType(kind="values", shape=shape, domain=domain, span=node.span)
    if node.name in _NUMBERS and node.name not in ctx.symbols:
        if shape is None:
            return None
        return ir.ColumnType(kind=_NUMBERS[node.name], shape=shape, span=node.span)
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
    _report_no_type(ctx, node, node.name)
    return None


#: The kinds of numbers by the words for them.
_NUMBERS = {"real": "real", "int": "int", "integer": "int"}
#: What to write for types of other languages.
_ELSEWHERE = {
    "float": "`real`",
    "number": "`real`",
    "double": "`real`",
    "bool": "`{0, 1}`",
    "binary": "`{0, 1}`",
    "boolean": "`{0, 1}`",
    "string": "a set of labels: `set G;` before the table, then `G`",
    "str": "a set of labels: `set G;` before the table, then `G`",
}


def _report_no_type(ctx: Context, node: syntax.TypeExpr, name: str) -> None:
    """Report a name that is not the type of a column."""
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
        ctx.report(errors.declarations.unknown_type(name, sets, _ELSEWHERE.get(name, ""), at))


# ---------------------------------------------------------------------------------------- notations
def _stands_for(node: DataDecl) -> str:
    if node.fields is None:
        return "number"
    return "table"


def _write(writer: TextWriter, node: DataDecl) -> None:
    writer("data ", node.name)
    writer.indexing(node.family)
    writer(" : ")
    if node.fields is None:
        assert node.type is not None
        writer.type(node.type)
        return
    writer("table(")
    writer.listed(node.fields, lambda column: _write_column(writer, column))
    writer(")")


def _write_column(writer: TextWriter, node: syntax.FieldDecl) -> None:
    with writer.marked(node.span):
        writer(node.name, ": ")
        writer.type(node.type)


def _python(writer: PythonWriter, node: DataDecl, doc: str) -> str:
    return f"{writer.own_name(node.name)} = {writer.family(node.family, lambda: _value(writer, node, doc))}"


def _value(writer: PythonWriter, node: DataDecl, doc: str) -> str:
    """The call of ``array`` or ``table``."""
    if node.fields is None:
        assert node.type is not None
        return f"{writer.fc('array')}({', '.join(_array_arguments(writer, node.type) + doc_argument(doc))})"
    columns = [(column.name, writer.type(column.type)) for column in node.fields]
    if all(is_keyword(name) and name != "doc" for name, _ in columns):
        arguments = [f"{name}={kind}" for name, kind in columns]
    else:
        arguments = [f"{{{', '.join(f'{name!r}: {kind}' for name, kind in columns)}}}"]
    return f"{writer.fc('table')}({', '.join(arguments + doc_argument(doc))})"


def _array_arguments(writer: PythonWriter, type: syntax.TypeExpr) -> list[str]:
    if type.name == "real" and type.limit is None:
        return [writer.formula(size) for size in type.shape]
    return [writer.type(type)]


data = StatementKind(
    name="data",
    order=60,
    node=DataDecl,
    forms={"data": "data D : table(x: real[d], y: {-1, 1});"},
    elsewhere={"table": "data", "dataset": "data"},
    token="DATA",
    follows="NAME",
    spaced_colon=True,
    rules={"data": _read, "table": _read_columns, "column": _read_column},
    check=_check,
    stands_for=_stands_for,
    write=_write,
    python=_python,
)
