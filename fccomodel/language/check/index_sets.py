"""``dim``, ``set`` and ``index``."""

from __future__ import annotations

from dataclasses import replace

from fccomodel.core import ir
from fccomodel.core.source import Span
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import declarations, domains, reductions
from fccomodel.language.formulas.context import (
    BrokenSymbol,
    Context,
    DimSymbol,
    Domain,
    IndexSymbol,
    Scope,
    SetFamilySymbol,
    SetSymbol,
)


def dim(ctx: Context, node: syntax.DimDecl) -> None:
    for name in node.names:
        if ctx.declare(DimSymbol(name=name, what="a dim", span=declarations.name_span(ctx, node, name))):
            ctx.dims.append(name)


def set_(ctx: Context, node: syntax.SetDecl) -> None:
    span = declarations.name_span(ctx, node, node.name)
    if node.value is None:
        if node.family is not None:
            ctx.report(errors.declarations.family_without_value(node.name, span))
            declarations.broken(ctx, node, node.name)
            return
        labels = ir.LabelSet(name=node.name)
        if ctx.declare(
            SetSymbol(name=node.name, what="a set", span=span, set=labels, base=Domain(set=labels))
        ):
            ctx.sets[node.name] = labels
        return
    if node.family is not None:
        _set_family(ctx, node, span)
        return
    domain = domains.domain_of(ctx, declarations.HERE, node.value, "in")
    if domain is None:
        declarations.broken(ctx, node, node.name)
        return
    if isinstance(domain.set, ir.VectorSet | ir.Distribution):
        ctx.report(errors.declarations.set_of_no_elements(ctx.quote(node.value)))
        declarations.broken(ctx, node, node.name)
        return
    if domain.rules:
        if ctx.declare(SetSymbol(name=node.name, what="a set", span=span, set=None, base=domain)):
            ctx.used.discard(node.name)
        return
    if isinstance(node.value, syntax.Name):
        named = domain.set
    else:
        named = replace(domain.set, name=node.name)
    if ctx.declare(SetSymbol(name=node.name, what="a set", span=span, set=named, base=Domain(set=named))):
        ctx.sets[node.name] = named


def _set_family(ctx: Context, node: syntax.SetDecl, span: Span) -> None:
    assert node.family is not None and node.value is not None
    head = family(ctx, node.family, "a family of sets")
    if head is None:
        declarations.broken(ctx, node, node.name)
        return
    errors_before = len(ctx.errors)
    domain = domains.domain_of(ctx, head.scope, node.value, "in")
    if domain is None or len(ctx.errors) > errors_before:
        declarations.broken(ctx, node, node.name)
        return
    if not isinstance(domain.set, ir.RowSet) and not domain.rules:
        pass  # a family of equal sets: allowed, and harmless
    ctx.declare(
        SetFamilySymbol(
            name=node.name,
            what="a family of sets",
            span=span,
            names=tuple(b.name for b in head.binders),
            binders=head.binders,
            value=node.value,
        )
    )


def family(
    ctx: Context, indexing: syntax.Indexing, what: str, scope: Scope = declarations.HERE
) -> reductions.Head | None:
    """The binders of a family; None after an error."""
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


def index(ctx: Context, node: syntax.IndexDecl) -> None:
    for binder in node.binders:
        scope = reductions.indices_open(ctx, declarations.HERE, pending={})
        domain = domains.domain_of(ctx, scope, binder.domain, binder.kind)
        span = Span(start=binder.span.start, end=binder.span.start + len(binder.name))
        if domain is None:
            ctx.declare(BrokenSymbol(name=binder.name, what="an index", span=span))
            continue
        if isinstance(domain.set, ir.VectorSet):
            ctx.report(errors.sets.index_over_vectors(ctx.quote(binder.domain)))
            ctx.declare(BrokenSymbol(name=binder.name, what="an index", span=span))
            continue
        ctx.declare(IndexSymbol(name=binder.name, what="an index", span=span, binder=binder))
