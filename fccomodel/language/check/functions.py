"""``def`` and ``let``."""

from __future__ import annotations

from collections.abc import Sequence

from fccomodel.core import ir
from fccomodel.language import errors, syntax
from fccomodel.language.check import index_sets
from fccomodel.language.formulas import atom_calls, declarations, expressions, reductions
from fccomodel.language.formulas.context import (
    Context,
    DefSymbol,
    LetSymbol,
    Scope,
)


def def_(ctx: Context, node: syntax.DefDecl) -> None:
    """A function: its names are checked now, its shapes at each call."""
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


def let(ctx: Context, node: syntax.LetDecl) -> None:
    span = declarations.name_span(ctx, node, node.name)
    ctx.pending = {}
    scope = reductions.indices_open(ctx, declarations.HERE)
    binders: tuple[ir.Binder, ...] = ()
    if node.family is not None:
        head = index_sets.family(ctx, node.family, "a family of quantities", scope)
        if head is None:
            declarations.broken(ctx, node, node.name)
            return
        if head.condition is not None:
            ctx.report(errors.declarations.family_with_condition(node.name, node.family.span))
            declarations.broken(ctx, node, node.name)
            return
        scope, binders = head.scope, head.binders
    body = expressions.evaluate(ctx, scope, node.value)
    if (
        body is None
        or not expressions.is_number(ctx, body, "a `let`")
        or not settled(ctx, body, binders, f"`let {node.name}`", family=True)
    ):
        declarations.broken(ctx, node, node.name)
        return
    quantity = ir.Let(name=node.name, binders=binders, body=body, span=span)
    if ctx.declare(LetSymbol(name=node.name, what="a `let`", span=span, let=quantity)):
        ctx.lets[node.name] = quantity


def settled(
    ctx: Context, body: ir.Expr, binders: Sequence[ir.Binder], what: str, *, family: bool = False
) -> bool:
    """True, or an error: the value depends on an index that nothing binds."""
    for binder in ir.free_binders(body, lets=False):  # those used are settled themselves
        if binder in binders:
            continue
        place = next(
            n
            for n in ir.walk(body, lets=False)
            if isinstance(n, ir.Column | ir.Element) and n.binder is binder
        )
        index = binder.name, binder.kind, binder.domain.name, ctx.line(binder.span)
        ctx.report(errors.reductions.unbound_index(what, *index, place.span, family=family))
        return False
    return True
