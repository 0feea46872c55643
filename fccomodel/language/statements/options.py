"""``options { algorithm = sonex; seed = 1; }``: how to solve, in the last statement."""

from __future__ import annotations

from dataclasses import dataclass

from fccomodel.core import ir
from fccomodel.core.source import Span
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import expressions
from fccomodel.language.formulas.context import Context, Scope
from fccomodel.language.printing import TextWriter
from fccomodel.language.python_code import PythonWriter
from fccomodel.language.statements import Key, StatementKind, no_names
from fccomodel.language.tree import distinct


@dataclass(frozen=True, kw_only=True)
class Options(syntax.Statement):
    """``options { algorithm = sonex; ... }``; keyword names may be dotted."""

    items: tuple[syntax.Keyword, ...]


def _read(c: list, at: Span) -> Options:
    return Options(items=distinct(c), span=at)


def _check(ctx: Context, node: Options) -> None:
    """Dotted names with plain values: numbers, texts, words, true and false."""
    for item in node.items:
        value = _plain(ctx, item.value)
        if value is None:
            ctx.report(errors.declarations.not_an_option(ctx.quote(item.value)))
            continue
        ctx.options[item.name] = value


def _plain(ctx: Context, node: syntax.Expr) -> object:
    """The value of an option, or None if it has no plain value."""
    match node:
        case syntax.Name():
            return {"true": True, "false": False}.get(node.id, node.id)
        case syntax.String():
            return node.value
        case syntax.Number():
            if node.text.isdigit():
                return int(node.text)
            return node.value
        case syntax.Unary(op="-", arg=syntax.Number() as inner):
            value = _plain(ctx, inner)
            if isinstance(value, int | float):
                return -value
            return None
        case syntax.SetLiteral():
            values = [_plain(ctx, i) for i in node.items]
            if any(v is None for v in values):
                return None
            return tuple(values)
        case syntax.Call():
            return ctx.text(node.span)
        case syntax.Binary():
            reported = len(ctx.diagnostics)
            value = expressions.evaluate(ctx, Scope(), node)
            del ctx.diagnostics[reported:]
            if isinstance(value, ir.Const):
                return value.value
            return None
    return None


def _keys(node: Options) -> frozenset[Key]:
    return frozenset({("options", "")})


def _write(writer: TextWriter, node: Options) -> None:
    writer("options {")
    for item in node.items:
        writer(" ")
        writer.keyword(item)
        writer(";")
    writer(" }")


def _python(writer: PythonWriter, node: Options, doc: str) -> str:
    return writer.method("options", [writer.mapping(node.items)], doc)


options = StatementKind(
    name="options",
    order=150,
    node=Options,
    forms={"options": "options { algorithm = sonex; seed = 1; }"},
    elsewhere={"option": "options"},
    token="OPTIONS",
    follows="LBRACE",
    ends="",
    group="options",
    included=False,
    rules={"options": _read},
    check=_check,
    names=no_names,
    keys=_keys,
    write=_write,
    python=_python,
)
