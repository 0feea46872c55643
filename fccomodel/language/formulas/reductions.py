"""Reductions: ``mean[i in I] e``, ``E[z ~ D | ...] e``, ``mean_i e``, ``E[e]`` and the others."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fccomodel.core import ir
from fccomodel.core.rewrite import conjunction
from fccomodel.core.source import Span
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import comparisons, domains, expressions, literals, names, shapes, signs
from fccomodel.language.formulas.context import BrokenSymbol, Context, IndexSymbol, Scope
from fccomodel.language.formulas.shapes import described
from fccomodel.library import domains as uses
from fccomodel.library import reductions
from fccomodel.library.reductions import Reduction


@expressions.evaluates(syntax.Reduce)
def reduce(ctx: Context, scope: Scope, node: syntax.Reduce) -> ir.Expr | None:
    """A reduction, with what its domains and its condition ask of its elements."""
    kind = reductions.all()[node.kind]
    options = _options(ctx, scope, node, kind)
    if node.indexing is not None:
        head = bind(ctx, scope, node.indexing.binders, node.indexing.condition)
        _check_kinds(ctx, node, kind, node.indexing.binders)
    elif node.subscript is not None:
        declared = _subscript(ctx, scope, node)
        if declared is None:
            expressions.evaluate(ctx, scope, node.body)
            return None
        head = bind(ctx, scope, declared, None, at=head_span(node))
        _check_kinds(ctx, node, kind, declared)
    else:
        return _free(ctx, scope, node, kind, options)
    body = expressions.evaluate(ctx, head.scope, node.body)
    if body is None or head.broken or options is None or not _fits(ctx, node, kind, body):
        return None
    if (
        kind.option is not None
        and kind.option.counts
        and not _enough(ctx, kind, options[kind.option.name], head)
    ):
        return None
    _lint_quotient(ctx, node, head.scope, head.binders, body)
    _lint_constant(ctx, node, head.binders, body)
    shape = () if kind.condition else body.shape
    return ir.Reduce(
        kind=node.kind,
        binders=head.binders,
        body=body,
        condition=head.condition,
        options=options,
        shape=shape,
        span=node.span,
    )


# ------------------------------------------------------------------------------------------ binders
@dataclass(frozen=True, kw_only=True)
class Head:
    """Binders made, the scope in which they are visible, and the condition on their elements."""

    scope: Scope
    binders: tuple[ir.Binder, ...]
    condition: ir.Expr | None
    broken: bool


def bind(
    ctx: Context,
    scope: Scope,
    binders: Sequence[syntax.Binder],
    condition: syntax.Expr | None,
    *,
    at: Span | None = None,
) -> Head:
    """Make binders one after the other, each visible to the next; ``at`` is the place of use of
    declared indices."""
    bound: list[ir.Binder] = []
    conditions: list[ir.Expr | None] = []
    broken = False
    for binder in binders:
        symbol = ctx.symbols.get(binder.name)
        is_index = isinstance(symbol, IndexSymbol) and names.find(ctx, binder.name) is symbol
        if at is not None:
            outside = Scope(indices=scope.indices, opened=scope.opened)
        else:
            outside = scope
        if at is None:
            allowed = domains.check_new(ctx, scope, binder) and (
                not is_index or _restates(ctx, binder, symbol)
            )
        else:
            allowed = True
        errors_before = len(ctx.errors)
        domain = domains.domain_of(ctx, outside, binder.domain, binder.kind)
        new: ir.Binder | None = None
        if domain is not None:
            new = ir.Binder(name=binder.name, kind=binder.kind, domain=domain.set, span=at or binder.span)
            bound.append(new)
            conditions.append(domains.condition_of(ctx, domain, new))
        broken = broken or new is None or not allowed or len(ctx.errors) > errors_before
        scope = scope.with_local(binder.name, new)
        if is_index:
            ctx.used.add(binder.name)
            scope = scope.with_index(binder.name, new, opened=True)
    if condition is not None:
        restriction = comparisons.condition(ctx, scope, condition, "what follows `|`")
        broken = broken or restriction is None
        conditions.append(restriction)
    joined = conjunction(conditions)
    if joined is not None and not domains.condition_is_fixed(ctx, joined):
        broken = True
    return Head(scope=scope, binders=tuple(bound), condition=joined, broken=broken)


def _restates(ctx: Context, binder: syntax.Binder, symbol: object) -> bool:
    """True, or an error: a binder takes the name of a declared index and means another."""
    assert isinstance(symbol, IndexSymbol)
    if symbol.binder == binder:
        return True
    ctx.report(errors.names.another_index(binder.name, ctx.quote(symbol.binder), binder.span))
    return False


def _subscript(ctx: Context, scope: Scope, node: syntax.Reduce) -> tuple[syntax.Binder, ...] | None:
    """The declared index that ``mean_i`` names."""
    name = node.subscript
    assert name is not None
    symbol = names.find(ctx, name)
    if not isinstance(symbol, IndexSymbol):
        if not isinstance(symbol, BrokenSymbol):
            names.unknown(ctx, scope, name, head_span(node))
        return None
    if name in scope.locals:
        ctx.report(errors.names.taken_by_subscript(name, head_span(node)))
        return None
    ctx.used.add(name)
    return (symbol.binder,)


def head_span(node: syntax.Reduce) -> Span:
    """The place of ``mean``, or of ``mean_i``."""
    length = len(node.kind) + (0 if node.subscript is None else 1 + len(node.subscript))
    return Span(start=node.span.start, end=node.span.start + length)


def _check_kinds(
    ctx: Context, node: syntax.Reduce, kind: Reduction, binders: Iterable[syntax.Binder]
) -> None:
    """An error where ``in`` and ``~`` do not fit the reduction."""
    binders = tuple(binders)
    for binder in binders:
        if binder.kind not in kind.binders:
            subscript = node.subscript is not None
            if subscript:
                span = head_span(node)
            else:
                span = binder.span
            written = node.kind, binder.name, binder.kind, ctx.text(binder.domain.span), span
            ctx.report(errors.reductions.iterates_or_draws(*written, instead=kind.twin, subscript=subscript))
            return
    if len({b.kind for b in binders}) > 1:
        ctx.report(errors.reductions.iterates_and_draws(node.span))


def _enough(ctx: Context, kind: Reduction, k: ir.Expr, head: Head) -> bool:
    """True, or an error: the largest k of fewer than k elements."""
    assert kind.option is not None
    sizes = [shapes.count(b.domain) for b in head.binders]
    elements = math.prod(n for n in sizes if n is not None)
    if isinstance(k, ir.Const) and None not in sizes and k.value > elements:
        ctx.report(errors.values.more_than_all(kind.name, kind.option.name, k.value, elements, k.span))
        return False
    return True


# --------------------------------------------------------------------------------------- free draws
def indices_open(
    ctx: Context, scope: Scope, kinds: str = "in ~", *, pending: dict[ir.Binder, ir.Expr | None] | None = None
) -> Scope:
    """The scope with a new binder for each declared index that nothing around this place binds;
    conditions go to ``pending``."""
    conditions = ctx.pending if pending is None else pending
    for name, symbol in ctx.symbols.items():
        if (
            not isinstance(symbol, IndexSymbol)
            or symbol.binder.kind not in kinds.split()
            or name in scope.opened
        ):
            continue
        if names.find(ctx, name) is None:
            continue
        domain = domains.domain_of(
            ctx, Scope(indices=scope.indices, opened=scope.opened), symbol.binder.domain, symbol.binder.kind
        )
        binder = None
        if domain is not None:
            binder = ir.Binder(name=name, kind=symbol.binder.kind, domain=domain.set, span=symbol.binder.span)
            conditions[binder] = domains.condition_of(ctx, domain, binder)
        scope = scope.with_index(name, binder)
    return scope


def needed(expr: ir.Expr, pending: Mapping[ir.Binder, ir.Expr | None]) -> tuple[ir.Binder, ...]:
    """The open binders that an expression depends on, through the conditions of their sets too, in the
    order of declaration."""
    reached: set[ir.Binder] = set()
    unvisited = list(ir.free_binders(expr))
    while unvisited:
        binder = unvisited.pop()
        if binder in pending and binder not in reached:
            reached.add(binder)
            condition = pending[binder]
            if isinstance(binder.domain, ir.Distribution):
                args = binder.domain.args
            else:
                args = ()
            for part in (*([] if condition is None else [condition]), *args):
                unvisited.extend(ir.free_binders(part))
    return tuple(b for b in pending if b in reached)


def _free(
    ctx: Context, scope: Scope, node: syntax.Reduce, kind: Reduction, options: dict[str, ir.Expr] | None
) -> ir.Expr | None:
    """``E[body]``: draws every declared ``~`` index that is free in the body."""
    pending: dict[ir.Binder, ir.Expr | None] = {}
    inner = indices_open(ctx, scope, "~", pending=pending)
    body = expressions.evaluate(ctx, inner, node.body)
    if body is None or options is None or not _fits(ctx, node, kind, body):
        return None
    binders = needed(body, pending)
    if not binders:
        declared = [n for n, s in ctx.symbols.items() if isinstance(s, IndexSymbol) and s.binder.kind == "~"]
        ctx.report(errors.reductions.nothing_drawn(ctx.quote(node), node.kind, declared, kind.form))
        return None
    condition = conjunction([pending[b] for b in binders])
    _lint_quotient(ctx, node, inner, binders, body)
    shape = () if kind.condition else body.shape
    return ir.Reduce(
        kind=node.kind,
        binders=binders,
        body=body,
        condition=condition,
        options=options,
        shape=shape,
        span=node.span,
    )


# ------------------------------------------------------------------------------------------ options
def _options(ctx: Context, scope: Scope, node: syntax.Reduce, kind: Reduction) -> dict[str, ir.Expr] | None:
    """The named options, checked; None after an error."""
    options: dict[str, ir.Expr] = {}
    valid, option = True, kind.option
    for keyword in node.keywords:
        if (
            keyword.name == "empty"
            and isinstance(keyword.value, syntax.Name)
            and keyword.value.id in ("drop", "error")
        ):
            options["empty"] = ir.Label(text=keyword.value.id, span=keyword.value.span)
            continue
        if option is None or keyword.name != option.name:
            if option is not None:
                allowed = [option.name, "empty"]
            else:
                allowed = ["empty"]
            ctx.report(
                errors.reductions.no_such_option(node.kind, keyword.name, allowed, kind.form, keyword.span)
            )
            valid = False
            continue
        value = expressions.number(ctx, scope, keyword.value, f"`{keyword.name}` of `{node.kind}`")
        if value is None or not literals.is_fixed(ctx, value):
            valid = False
            continue
        options[keyword.name] = value
        valid = valid and all(
            signs.are_defined(ctx, use) for use in uses.of_options(kind, {option.name: value})
        )
    if valid and option is not None and option.name not in options:
        ctx.report(errors.reductions.needs_option(node.kind, option.name, kind.form, head_span(node)))
        valid = False
    return options if valid else None


# --------------------------------------------------------------------------------------------- body
def _fits(ctx: Context, node: syntax.Reduce, kind: Reduction, body: ir.Expr) -> bool:
    """True, or an error: the body is not what the reduction reduces."""
    if kind.condition:
        return comparisons.is_condition(ctx, body, f"the body of `{node.kind}`")
    if not expressions.is_number(ctx, body, f"the body of `{node.kind}`"):
        return False
    if body.shape and not kind.arrays:
        ctx.report(errors.shapes.body(node.kind, described(ctx, body), kind.scalar))
        return False
    return True


def _lint_quotient(
    ctx: Context, node: syntax.Reduce, scope: Scope, binders: Sequence[ir.Binder], body: ir.Expr
) -> None:
    """A remark on ``E[..] a / b``, which is E(a/b): the ratio of expectations is the common intent."""
    source = node.body
    kind = reductions.all()[node.kind]
    if not kind.average or not isinstance(source, syntax.Binary) or source.op not in "*/":
        return
    if ctx.source.text[: source.span.start].rstrip().endswith(("(", "[")):
        return
    part: ir.Expr = body
    while (
        isinstance(source, syntax.Binary)
        and source.op in "*/"
        and isinstance(part, ir.Apply)
        and part.op in ("mul", "div")
    ):
        if source.op == "/" and any(b in binders for b in ir.free_binders(part.args[1])):
            top, bottom = ctx.text(source.left.span, 30), ctx.text(source.right.span, 30)
            head = ctx.text(Span(start=node.span.start, end=node.body.span.start), 40)
            ctx.report(errors.reductions.mean_of_a_quotient(kind.words["noun"], head, top, bottom, node.span))
            return
        source, part = source.left, part.args[0]


def _lint_constant(ctx: Context, node: syntax.Reduce, binders: Sequence[ir.Binder], body: ir.Expr) -> None:
    """A remark on a body that none of the binders changes."""
    if isinstance(body, ir.Const) or reductions.all()[node.kind].total:
        return
    free = ir.free_binders(body)
    missing = [
        b.name
        for b in binders
        if b not in free
        and not any(b in ir.free_binders(a) for a in itertools.chain(*(_args(x) for x in free)))
    ]
    if missing and not (len(missing) < len(binders)):
        ctx.report(errors.reductions.body_without_draw(node.kind, missing, node.span))


def _args(binder: ir.Binder) -> tuple[ir.Expr, ...]:
    if isinstance(binder.domain, ir.Distribution | ir.VectorSet):
        return binder.domain.args
    return ()
