"""``def f(u, v) = u^2 + v;``: functions, whose body stands in the place of each call."""

from __future__ import annotations

from dataclasses import dataclass

from fccomodel.core.source import Span
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import atom_calls, declarations, expressions, reductions
from fccomodel.language.formulas.context import Context, DefSymbol, Scope
from fccomodel.language.printing import TextWriter
from fccomodel.language.python_code import Precedence, PythonWriter
from fccomodel.language.statements import StatementKind
from fccomodel.language.tree import declared


@dataclass(frozen=True, kw_only=True)
class DefDecl(syntax.Statement):
    """``def name(params) = body;``."""

    name: str
    params: tuple[str, ...]
    body: syntax.Expr


def _read(c: list, at: Span) -> DefDecl:
    return DefDecl(name=declared(c[0]), params=c[1], body=c[2], span=at)


def _read_parameters(c: list, at: Span) -> tuple[str, ...]:
    return tuple(declared(token) for token in c)


def _check(ctx: Context, node: DefDecl) -> None:
    """Check the names in the body now; its shapes are checked at each call."""
    span = declarations.name_span(ctx, node, node.name)
    for k, parameter in enumerate(node.params):
        if parameter in node.params[:k]:
            ctx.report(errors.names.parameter_twice(node.name, parameter, span))
            declarations.broken(ctx, node, node.name)
            return
    errors_before = len(ctx.errors)
    scope = Scope(locals=dict.fromkeys(node.params))
    expressions.evaluate(ctx, reductions.indices_open(ctx, scope, pending={}), node.body)
    if node.name in atom_calls.named_atoms():
        declarations.taken(ctx, node.name, span)
    if len(ctx.errors) > errors_before:
        declarations.broken(ctx, node, node.name)
        return
    ctx.declare(
        DefSymbol(
            name=node.name,
            what="a function",
            span=span,
            params=node.params,
            body=node.body,
            symbols=frozenset(ctx.symbols),
        )
    )


def _write(writer: TextWriter, node: DefDecl) -> None:
    writer(f"def {node.name}({', '.join(node.params)})")
    writer.after(" = ", node.body)


def _python(writer: PythonWriter, node: DefDecl, doc: str) -> str:
    with writer.locals(node.params):
        text = writer.symbolic(node.body, Precedence.COMPARED)
    head = [f"\n@{writer.model}.define", f"def {node.name}({', '.join(node.params)}):"]
    return "\n".join([*head, *_docstring(doc), f"    return {text}", ""])


def _docstring(doc: str) -> list[str]:
    """The lines of a function's docstring."""
    if any(character in doc for character in '"\\'):
        return [f"    {doc!r}"]
    if not doc:
        return []
    return [f"    {line}".rstrip() for line in f'"""{doc}"""'.splitlines()]


define = StatementKind(
    name="def",
    order=110,
    node=DefDecl,
    forms={"def": "def f(u, v) = u^2 + v;"},
    elsewhere={"function": "def", "func": "def", "define": "def"},
    token="DEF",
    follows="NAME",
    rules={"def": _read, "parameters": _read_parameters},
    check=_check,
    stands_for=lambda node: "define",
    write=_write,
    python=_python,
)
