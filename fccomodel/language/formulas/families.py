"""Families, as in ``rate[k in K]``, and the declared indices that a statement leaves open."""

from __future__ import annotations

from collections.abc import Sequence

from fccomodel.core import ir
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import declarations, reductions
from fccomodel.language.formulas.context import Context, Scope


def family(
    ctx: Context, indexing: syntax.Indexing, what: str, scope: Scope = declarations.HERE
) -> reductions.Head | None:
    """The binders of a family, or None after an error; ``what`` names the family in messages."""
    for binder in indexing.binders:
        if binder.kind != "in":
            ctx.report(
                errors.reductions.family_drawn(what, binder.name, ctx.quote(binder.domain), binder.span)
            )
            return None
    head = reductions.bind(ctx, scope, indexing.binders, indexing.condition)
    if head.broken:
        return None
    for bound in head.binders:
        if isinstance(bound.domain, ir.VectorSet):
            ctx.report(errors.sets.family_over_vectors(bound.name, bound.span))
            return None
    return head


def open_scope(ctx: Context) -> Scope:
    """The scope of a statement whose declared indices stand open."""
    ctx.pending = {}
    return reductions.indices_open(ctx, Scope())


def settled(
    ctx: Context, body: ir.Expr, binders: Sequence[ir.Binder], what: str, *, family: bool = False
) -> bool:
    """Whether every index of a value is bound. Reports the first that is not."""
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
