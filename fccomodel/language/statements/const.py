"""``const p = 4;``: numbers that are baked in."""

from __future__ import annotations

from dataclasses import dataclass

from fccomodel.core import ir
from fccomodel.core.source import Span
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import declarations, expressions
from fccomodel.language.formulas.context import ConstSymbol, Context
from fccomodel.language.printing import Writer
from fccomodel.language.python_code import PythonWriter
from fccomodel.language.statements import StatementKind
from fccomodel.language.tree import declared


@dataclass(frozen=True, kw_only=True)
class ConstDecl(syntax.Statement):
    """``const name = value;``."""

    name: str
    value: syntax.Expr


def _read(c: list, at: Span) -> ConstDecl:
    return ConstDecl(name=declared(c[0]), value=c[1], span=at)


def _check(ctx: Context, node: ConstDecl) -> None:
    span = declarations.name_span(ctx, node, node.name)
    value = expressions.number(ctx, declarations.HERE, node.value, "a constant")
    if value is None:
        declarations.broken(ctx, node, node.name)
        return
    if not isinstance(value, ir.Const):
        ctx.report(errors.values.const_not_constant(ctx.quote(node.value)))
        declarations.broken(ctx, node, node.name)
        return
    ctx.declare(ConstSymbol(name=node.name, what="a constant", span=span, value=value.value))


def _write(writer: Writer, node: ConstDecl) -> None:
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
    rules={"const": _read},
    check=_check,
    write=_write,
    python=_python,
)
