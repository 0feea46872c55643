"""``let risk[k in K] = E[z ~ D | z.g == k] loss(z);``: quantities and families of them."""

from __future__ import annotations

from dataclasses import dataclass

from fccomodel.core import ir
from fccomodel.core.source import Span
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import arrays, declarations, expressions, families, recursions, reductions
from fccomodel.language.formulas.context import Context, FormulaArray, LetSymbol, Scope
from fccomodel.language.printing import TextWriter
from fccomodel.language.python_code import Precedence, PythonWriter
from fccomodel.language.statements import StatementKind
from fccomodel.language.tree import declared


@dataclass(frozen=True, kw_only=True)
class LetDecl(syntax.Statement):
    """``let name[family] = value;``."""

    name: str
    value: syntax.Expr
    family: syntax.Indexing | None = None


def _read(c: list, at: Span) -> LetDecl:
    return LetDecl(name=declared(c[0]), family=c[1], value=c[2], span=at)


def _check(ctx: Context, node: LetDecl) -> None:
    span = declarations.name_span(ctx, node, node.name)
    ctx.pending = {}
    scope = reductions.indices_open(ctx, declarations.HERE)
    binders: tuple[ir.Binder, ...] = ()
    if node.family is not None:
        head = families.family(ctx, node.family, "a family of quantities", scope)
        if head is None:
            declarations.broken(ctx, node, node.name)
            return
        if head.condition is not None:
            ctx.report(errors.declarations.family_with_condition(node.name, node.family.span))
            declarations.broken(ctx, node, node.name)
            return
        scope, binders = head.scope, head.binders
    used = recursions.uses_itself(node.name, node.value)
    if used is not None and node.name not in scope.locals:
        _check_recursion(ctx, node, (scope, binders), used.span)
        return
    body = arrays.operand(ctx, scope, node.value)
    if isinstance(body, FormulaArray):
        with arrays.elements(ctx, body, body.axes, node.span) as at:
            binders += tuple(element.binder for element in at)
            body = body.entry(tuple(at))
    if body is None or not expressions.is_number(ctx, body, "a `let`"):
        declarations.broken(ctx, node, node.name)
        return
    if not families.settled(ctx, body, binders, f"`let {node.name}`", family=True):
        declarations.broken(ctx, node, node.name)
        return
    _declare(ctx, ir.Let(name=node.name, binders=binders, body=body, span=span))


def _check_recursion(
    ctx: Context, node: LetDecl, head: tuple[Scope, tuple[ir.Binder, ...]], used: Span
) -> None:
    """Declare a family that is made of its own earlier members."""
    quantity: ir.Let | None = None
    if node.family is None:
        ctx.report(errors.recursions.without_family(node.name, used))
    else:
        span = declarations.name_span(ctx, node, node.name)
        quantity = recursions.family(ctx, node.name, node.value, head, span)
    if quantity is None:
        declarations.broken(ctx, node, node.name)
    else:
        _declare(ctx, quantity)


def _declare(ctx: Context, quantity: ir.Let) -> None:
    """Give a quantity its name."""
    name, span = quantity.name, quantity.span
    if ctx.declare(LetSymbol(name=name, what="a `let`", span=span, let=quantity)):
        ctx.lets[name] = quantity


def _write(writer: TextWriter, node: LetDecl) -> None:
    writer("let ", node.name)
    writer.indexing(node.family)
    writer.after(" = ", node.value)


def _python(writer: PythonWriter, node: LetDecl, doc: str) -> str:
    if recursions.uses_itself(node.name, node.value) is None:
        own: list[str] = []
    else:
        own = [node.name]
    with writer.locals(own):
        value = writer.family(node.family, lambda: writer.symbolic(node.value, Precedence.COMPARED))
    if own:
        value = f"lambda {node.name}: {value}"
    return writer.named("let", node.name, value, doc)


let = StatementKind(
    name="let",
    order=120,
    node=LetDecl,
    forms={"let": "let risk[k in K] = E[z ~ D | z.g == k] loss(z);"},
    token="LET",
    follows="NAME",
    rules={"let": _read},
    check=_check,
    write=_write,
    python=_python,
)
