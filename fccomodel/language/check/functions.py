"""``def`` and ``let``."""

from __future__ import annotations

from collections.abc import Sequence

from fccomodel.core import ir
from fccomodel.language import syntax
from fccomodel.language.check import (
    atom_calls,
    declarations,
    expressions,
    index_sets,
    reductions,
)
from fccomodel.language.check.context import (
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
            ctx.error(
                "F0203",
                f"`{node.name}` has two parameters `{parameter}`",
                span,
                reason="One name means one argument.",
                fix="Rename one.",
            )
            declarations.broken(ctx, node, node.name)
            return
    before = len(ctx.errors)
    unknown = Scope(locals=dict.fromkeys(node.params))
    expressions.evaluate(ctx, reductions.indices_open(ctx, unknown, pending={}), node.body)
    if node.name in atom_calls.named_atoms():
        declarations.taken(ctx, node.name, span)
    if len(ctx.errors) > before:
        declarations.broken(ctx, node, node.name)
        return
    ctx.declare(
        DefSymbol(
            name=node.name, what="a function", span=span, params=node.params, body=node.body, symbols=frozenset(ctx.symbols)
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
            ctx.error(
                "F0416",
                f"the family `{node.name}` has a condition",
                node.family.span,
                reason="Every combination of its indices is a member, so that each use finds one.",
                fix="Leave the condition out here, and restrict the reductions that use it.",
            )
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
    made = ir.Let(name=node.name, binders=binders, body=body, span=span)
    if ctx.declare(LetSymbol(name=node.name, what="a `let`", span=span, let=made)):
        ctx.lets[node.name] = made


def settled(ctx: Context, body: ir.Expr, binders: Sequence[ir.Binder], what: str, *, family: bool = False) -> bool:
    """True, or an error: the value depends on an index that nothing binds."""
    for binder in ir.free_binders(body, lets=False):  # those used are settled themselves
        if binder in binders:
            continue
        place = next(n for n in ir.walk(body, lets=False) if isinstance(n, ir.Column | ir.Element) and n.binder is binder)
        word = "`mean_{0}`, `sum_{0}` or `max_{0}`" if binder.kind == "in" else "`E_{0}`, or `E[...]` around it"
        fix = f"Reduce over it: {word.format(binder.name)}."
        if family and binder.kind == "in":
            fix += f" For one value per `{binder.name}` declare a family, `let x[{binder.name} in {binder.domain.name}] = ...`."
        ctx.error(
            "F0403",
            f"{what} depends on the index `{binder.name}`, which nothing binds",
            place.span,
            reason=f"`index {binder.name} {binder.kind} {binder.domain.name}` is declared on line {ctx.line(binder.span)};"
            + (" what is drawn must be averaged." if binder.kind == "~" else " it stands for every element of its set."),
            fix=fix,
        )
        return False
    return True
