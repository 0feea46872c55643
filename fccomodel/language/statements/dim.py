"""``dim d, k;``: sizes that the data decide."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fccomodel.core.source import Span
from fccomodel.language import syntax
from fccomodel.language.formulas import declarations
from fccomodel.language.formulas.context import ConstSymbol, Context, DimSymbol, Symbol
from fccomodel.language.printing import TextWriter
from fccomodel.language.python_code import PythonWriter
from fccomodel.language.statements import StatementKind
from fccomodel.language.statements.const import ConstDecl
from fccomodel.language.tree import declared


@dataclass(frozen=True, kw_only=True)
class DimDecl(syntax.Statement):
    """``dim names;``."""

    names: tuple[str, ...]


def _read(c: list, at: Span) -> syntax.Statement:
    if isinstance(c[0], ConstDecl):
        return replace(c[0], span=at)
    return DimDecl(names=tuple(declared(t) for t in c), span=at)


def _check(ctx: Context, node: DimDecl) -> None:
    for name in node.names:
        span = declarations.name_span(ctx, node, name)
        symbol: Symbol = DimSymbol(name=name, what="a dim", span=span)
        if name in ctx.known_sizes:
            symbol = ConstSymbol(name=name, what="a dim", span=span, value=float(ctx.known_sizes[name]))
        if ctx.declare(symbol):
            ctx.dims.append(name)


def _names(node: DimDecl) -> tuple[str, ...]:
    return node.names


def _without(node: DimDecl, names: list[str]) -> DimDecl | None:
    if not names:
        return None
    return replace(node, names=tuple(name for name in node.names if name in names))


def _write(writer: TextWriter, node: DimDecl) -> None:
    writer("dim ", ", ".join(node.names))


def _python(writer: PythonWriter, node: DimDecl, doc: str) -> str:
    if len(node.names) == 1:
        return writer.assigned(node.names[0], writer.fc("dim"), [], doc)
    return writer.method("dim", [repr(name) for name in node.names], doc)


dim = StatementKind(
    name="dim",
    order=30,
    node=DimDecl,
    forms={"dim": "dim d;"},
    elsewhere={"dimension": "dim"},
    token="DIM",
    follows="NAME",
    rules={"dim": _read},
    check=_check,
    names=_names,
    without=_without,
    stands_for=lambda node: "dim",
    write=_write,
    python=_python,
)
