"""``const p = 4;``: numbers that are baked in."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from fccomodel.core import ir
from fccomodel.core.source import Span
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import arrays, declarations, expressions, shapes
from fccomodel.language.formulas.context import ArraySymbol, ConstSymbol, Context, FormulaArray
from fccomodel.language.printing import TextWriter
from fccomodel.language.python_code import PythonWriter
from fccomodel.language.statements import StatementKind
from fccomodel.language.tree import declared


@dataclass(frozen=True, kw_only=True)
class ConstDecl(syntax.Statement):
    """``const name = value;``, or ``dim name = value;``, which says the same."""

    name: str
    value: syntax.Expr


def _read(c: list, at: Span) -> ConstDecl:
    return ConstDecl(name=declared(c[0]), value=c[1], span=at)


def _check(ctx: Context, node: ConstDecl) -> None:
    span = declarations.name_span(ctx, node, node.name)
    value = arrays.operand(ctx, declarations.HERE, node.value)
    if value is not None and not isinstance(value, FormulaArray):
        value = expressions.as_number(ctx, value, "a constant")
    if value is None:
        declarations.broken(ctx, node, node.name)
        return
    if value.shape and _is_constant(ctx, value):
        ctx.declare(ArraySymbol(name=node.name, what="an array of constants", span=span, value=value))
        return
    if not isinstance(value, ir.Const):
        ctx.report(errors.values.const_not_constant(ctx.quote(node.value)))
        declarations.broken(ctx, node, node.name)
        return
    ctx.declare(ConstSymbol(name=node.name, what="a constant", span=span, value=value.value))


def _is_constant(ctx: Context, value: ir.Expr) -> bool:
    """Whether all entries of an array are numbers that the text gives."""
    if not isinstance(value, FormulaArray):
        return all(isinstance(node, ir.Const | ir.Apply) for node in ir.walk(value))
    counts = [shapes.count(axis) for axis in value.axes]
    if any(count is None or count > expressions.MAX_WRITTEN_OUT for count in counts):
        return False
    places = itertools.product(*(shapes.listed(axis, value.span) for axis in value.axes))
    return all(isinstance(value.entry(place), ir.Const) for place in places)


def _write(writer: TextWriter, node: ConstDecl) -> None:
    writer("const ", node.name)
    writer.after(" = ", node.value)


def _python(writer: PythonWriter, node: ConstDecl, doc: str) -> str:
    return writer.assigned(node.name, writer.fc("const"), [writer.formula(node.value)], doc)


const = StatementKind(
    name="const",
    order=80,
    node=ConstDecl,
    forms={"const": "const p = 4;"},
    elsewhere={"constant": "const"},
    token="CONST",
    follows="NAME",
    rules={"const": _read, "dim_value": _read},
    check=_check,
    write=_write,
    python=_python,
)
