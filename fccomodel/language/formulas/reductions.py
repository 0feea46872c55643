"""Reductions: ``mean[i in I] e``, ``E[z ~ D | ...] e``, ``mean_i e``, ``E[e]`` and the others."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fccomodel.core import ir
from fccomodel.core.rewrite import apply, conjunction
from fccomodel.core.source import Span
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import (
    arrays,
    comparisons,
    domains,
    expressions,
    inner_extremes,
    names,
    risks,
    shapes,
    signs,
    weighted,
)
from fccomodel.language.formulas.context import BrokenSymbol, Context, FormulaArray, IndexSymbol, Scope
from fccomodel.language.formulas.shapes import described
from fccomodel.library import domains as uses
from fccomodel.library import reductions
from fccomodel.library.reductions import Reduction
from fccomodel.library.reductions.logmeanexp import LOGMEANEXP

#: What `empty` may be: a group without elements is left out, or an error.
EMPTY_GROUPS = ("drop", "error")


@expressions.evaluates(syntax.Reduce)
def reduce(ctx: Context, scope: Scope, node: syntax.Reduce) -> ir.Expr | None:
    """A reduction with its binders, their condition and its options, or None after an error."""
    word = reductions.words()[node.kind]
    if isinstance(word, reductions.Spelled):
        return _spelled(ctx, scope, node, word)
    recourse = inner_extremes.recourse(node)
    if recourse is not None:
        ctx.report(errors.reductions.recourse(ctx.quote(node), recourse.name, ctx.text(recourse.domain.span)))
        return None
    return _of_kind(ctx, scope, node, word)


def _of_kind(ctx: Context, scope: Scope, node: syntax.Reduce, kind: Reduction) -> ir.Expr | None:
    """A reduction of a kind of the library, or None after an error; messages have the word of the text."""
    options = _options(ctx, scope, node, kind)
    if node.indexing is not None:
        head = bind(ctx, scope, inner_extremes.with_sizes(ctx, scope, node), node.indexing.condition)
        _check_kinds(ctx, node, kind, node.indexing.binders)
    elif node.subscript is not None:
        declared = _subscript(ctx, scope, node)
        if declared is None:
            expressions.evaluate(ctx, scope, node.body)
            return None
        head = bind(ctx, scope, declared, None, at=head_span(node))
        _check_kinds(ctx, node, kind, declared)
    else:
        return _over_open_draws(ctx, scope, node, kind, options)
    body = expressions.loose(ctx, head.scope, node.body)
    if isinstance(body, FormulaArray) and kind.arrays and not kind.condition:
        if head.broken or options is None:
            return None
        return _of_array(ctx, node, kind, head, body, options)
    if isinstance(body, FormulaArray):
        body = expressions.written_out(ctx, body)
    if body is not None and not kind.condition:
        body = expressions.as_number(ctx, body, f"the body of `{node.kind}`")
    if body is None or head.broken or options is None or not _body_fits(ctx, node, kind, body):
        return None
    if kind.option is not None and kind.option.counts:
        if not _enough_elements(ctx, node.kind, kind, options[kind.option.name], head):
            return None
    if inner_extremes.is_over_vectors(head.binders):
        return inner_extremes.closed_form(ctx, node, head.binders, head.condition, body)
    _note_quotient(ctx, node, kind, head.binders, body)
    _note_constant(ctx, node, kind, head.binders, body)
    return _completed(ctx, node, kind, head, body, options)


def _completed(
    ctx: Context,
    node: syntax.Reduce,
    kind: Reduction,
    head: Head,
    body: ir.Expr,
    options: dict[str, ir.Expr],
) -> ir.Expr | None:
    """The reduction of a body, with the weights of its head and with options that vary outside of it."""
    plain = _reduction(node, kind, head.binders, head.condition, body, options)
    if not weighted.has_weights(node):
        return risks.with_theta_outside(ctx, plain)
    assert node.indexing is not None
    weight = weighted.weight_of(ctx, head.scope, node.indexing.binders)
    if weight is None:
        return None
    return weighted.reduced(ctx, node, plain, weight)


def _spelled(ctx: Context, scope: Scope, node: syntax.Reduce, word: reductions.Spelled) -> ir.Expr | None:
    """The value of ``std`` and of its like: a function of another reduction, or None after an error."""
    if word.bounded:
        ctx.report(errors.reductions.quantile_outside_constraints(ctx.quote(node)))
        return None
    body = node.body
    if word.negated:
        body = syntax.Unary(op="-", arg=body, span=body.span)
    value = _of_kind(ctx, scope, dataclasses.replace(node, body=body), reductions.all()[word.of])
    if value is None:
        return None
    return apply(word.outer, value, span=node.span)


def _of_array(
    ctx: Context,
    node: syntax.Reduce,
    kind: Reduction,
    head: Head,
    body: FormulaArray,
    options: dict[str, ir.Expr],
) -> FormulaArray | None:
    """A reduction of an array by formula, entry by entry."""
    return arrays.entrywise(
        ctx,
        [body],
        lambda parts: _completed(ctx, node, kind, head, parts[0], options),
        node.kind,
        node.span,
    )


def _reduction(
    node: syntax.Reduce,
    kind: Reduction,
    binders: tuple[ir.Binder, ...],
    condition: ir.Expr | None,
    body: ir.Expr,
    options: dict[str, ir.Expr],
) -> ir.Reduce:
    return ir.Reduce(
        kind=kind.name,
        binders=binders,
        body=body,
        condition=condition,
        options=options,
        shape=() if kind.condition else body.shape,
        span=node.span,
    )


# ------------------------------------------------------------------------------------------ binders
@dataclass(frozen=True, kw_only=True)
class Head:
    """The head of a reduction or of a family.

    scope      the scope in which its binders are visible
    binders    the binders, in order
    condition  the condition on their elements
    broken     whether there was an error in it
    """

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
    """Make binders in order, each visible to the next and to the condition.

    at  where declared indices are used; None if the binders are written here
    """
    bound: list[ir.Binder] = []
    conditions: list[ir.Expr | None] = []
    broken = False
    for binder in binders:
        symbol = ctx.symbols.get(binder.name)
        is_index = isinstance(symbol, IndexSymbol) and names.find(ctx, binder.name) is symbol
        if at is None:
            outside = scope
            allowed = domains.check_new(ctx, scope, binder)
            if allowed and is_index:
                allowed = _restates(ctx, binder, symbol)
        else:
            outside = Scope(indices=scope.indices, opened=scope.opened)
            allowed = True
        errors_before = len(ctx.errors)
        domain = domains.domain_of(ctx, outside, binder.domain, binder.kind)
        new: ir.Binder | None = None
        if domain is not None:
            new = ir.Binder(name=binder.name, kind=binder.kind, domain=domain.set, span=at or binder.span)
            bound.append(new)
            conditions.append(domains.condition_of(ctx, domain, new))
        if binder.weight is not None and binder.kind == "in":
            ctx.report(errors.reductions.weight_without_reduction(ctx.quote(binder)))
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
    """Whether a binder with the name of a declared index means that index. Reports an error if not."""
    assert isinstance(symbol, IndexSymbol)
    if symbol.binder == binder:
        return True
    ctx.report(errors.names.another_index(binder.name, ctx.quote(symbol.binder), binder.span))
    return False


def _subscript(ctx: Context, scope: Scope, node: syntax.Reduce) -> tuple[syntax.Binder, ...] | None:
    """The declared index that ``mean_i`` names, or None after an error."""
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
    length = len(node.kind)
    if node.subscript is not None:
        length += len("_") + len(node.subscript)
    return Span(start=node.span.start, end=node.span.start + length)


def _check_kinds(
    ctx: Context, node: syntax.Reduce, kind: Reduction, binders: Iterable[syntax.Binder]
) -> None:
    """Report ``in`` or ``~`` where the reduction takes the other, and a mixture of both."""
    binders = tuple(binders)
    for binder in binders:
        if binder.kind not in kind.binders:
            subscript = node.subscript is not None
            if subscript:
                span = head_span(node)
            else:
                span = binder.span
            twin = kind.twin if node.kind == kind.name else ""
            written = node.kind, binder.name, binder.kind, ctx.text(binder.domain.span), span
            ctx.report(errors.reductions.iterates_or_draws(*written, instead=twin, subscript=subscript))
            return
    if len({b.kind for b in binders}) > 1:
        ctx.report(errors.reductions.iterates_and_draws(node.span))


def _enough_elements(ctx: Context, word: str, kind: Reduction, k: ir.Expr, head: Head) -> bool:
    """Whether there may be k elements. Reports the largest k of fewer than k."""
    assert kind.option is not None
    sizes = [shapes.count(b.domain) for b in head.binders]
    elements = math.prod(n for n in sizes if n is not None)
    if isinstance(k, ir.Const) and None not in sizes and k.value > elements:
        ctx.report(errors.values.more_than_all(word, kind.option.name, k.value, elements, k.span))
        return False
    return True


# --------------------------------------------------------------------------------------- free draws
def indices_open(
    ctx: Context, scope: Scope, kinds: str = "in ~", *, pending: dict[ir.Binder, ir.Expr | None] | None = None
) -> Scope:
    """The scope with a new binder for each declared index that nothing around this place binds.

    kinds    the indices' kinds: ``in``, ``~``, or both
    pending  takes the conditions on the new binders; ``ctx.pending`` by default
    """
    conditions = ctx.pending if pending is None else pending
    for name, symbol in ctx.symbols.items():
        if not isinstance(symbol, IndexSymbol) or name in scope.opened:
            continue
        written = symbol.binder
        if written.kind not in kinds.split() or names.find(ctx, name) is None:
            continue
        outside = Scope(indices=scope.indices, opened=scope.opened)
        domain = domains.domain_of(ctx, outside, written.domain, written.kind)
        binder = None
        if domain is not None:
            binder = ir.Binder(name=name, kind=written.kind, domain=domain.set, span=written.span)
            conditions[binder] = domains.condition_of(ctx, domain, binder)
        scope = scope.with_index(name, binder)
    return scope


def needed(expr: ir.Expr, pending: Mapping[ir.Binder, ir.Expr | None]) -> tuple[ir.Binder, ...]:
    """The open binders that an expression depends on, in the order of declaration.

    It depends on a binder too if the condition or the distribution of another one does.
    """
    reached: set[ir.Binder] = set()
    unvisited = list(ir.free_binders(expr))
    while unvisited:
        binder = unvisited.pop()
        if binder not in pending or binder in reached:
            continue
        reached.add(binder)
        condition = pending[binder]
        if condition is not None:
            unvisited.extend(ir.free_binders(condition))
        if isinstance(binder.domain, ir.Distribution):
            for arg in binder.domain.args:
                unvisited.extend(ir.free_binders(arg))
    return tuple(b for b in pending if b in reached)


def _over_open_draws(
    ctx: Context, scope: Scope, node: syntax.Reduce, kind: Reduction, options: dict[str, ir.Expr] | None
) -> ir.Expr | None:
    """``E[body]`` draws every declared ``~`` index that is free in the body."""
    pending: dict[ir.Binder, ir.Expr | None] = {}
    inner = indices_open(ctx, scope, "~", pending=pending)
    body = expressions.evaluate(ctx, inner, node.body)
    if body is None or options is None or not _body_fits(ctx, node, kind, body):
        return None
    binders = needed(body, pending)
    if not binders:
        declared = [n for n, s in ctx.symbols.items() if isinstance(s, IndexSymbol) and s.binder.kind == "~"]
        ctx.report(errors.reductions.nothing_drawn(ctx.quote(node), node.kind, declared, _form(node)))
        return None
    condition = conjunction([pending[b] for b in binders])
    _note_quotient(ctx, node, kind, binders, body)
    return _reduction(node, kind, binders, condition, body, options)


# ------------------------------------------------------------------------------------------ options
def _form(node: syntax.Reduce) -> str:
    """An example of the word that a reduction is written by."""
    return reductions.words()[node.kind].form


def _options(ctx: Context, scope: Scope, node: syntax.Reduce, kind: Reduction) -> dict[str, ir.Expr] | None:
    """The named options, or None after an error."""
    options: dict[str, ir.Expr] = {}
    valid, option = True, kind.option
    for keyword in node.keywords:
        word = keyword.value.id if isinstance(keyword.value, syntax.Name) else ""
        if keyword.name == "empty" and word in EMPTY_GROUPS:
            options["empty"] = ir.Label(text=word, span=keyword.value.span)
            continue
        if keyword.name == "empty":
            ctx.report(errors.reductions.value_of_empty(node.kind, ctx.quote(keyword.value), EMPTY_GROUPS))
            valid = False
            continue
        if option is None or keyword.name != option.name:
            if option is None:
                allowed = ["empty"]
            else:
                allowed = [option.name, "empty"]
            ctx.report(
                errors.reductions.no_such_option(node.kind, keyword.name, allowed, _form(node), keyword.span)
            )
            valid = False
            continue
        value = expressions.number(ctx, scope, keyword.value, f"`{keyword.name}` of `{node.kind}`")
        if value is None or not _option_may_vary(ctx, node, kind, value):
            valid = False
            continue
        options[keyword.name] = value
        demands = uses.of_options(kind, {option.name: value})
        valid = valid and all(signs.are_defined(ctx, demand) for demand in demands)
    if valid and option is not None and option.name not in options:
        ctx.report(errors.reductions.needs_option(node.kind, option.name, _form(node), head_span(node)))
        valid = False
    if not valid:
        return None
    return options


def _option_may_vary(ctx: Context, node: syntax.Reduce, kind: Reduction, value: ir.Expr) -> bool:
    """Whether an option is fixed, or one that moves out of the reduction. Reports an error if not."""
    by_index = kind.tail and not ir.variables_of(value)
    if kind.name == LOGMEANEXP.name or by_index or not risks.varies(value):
        return True
    example = "theta" if kind.option is None else kind.option.name
    refusal = errors.reductions.option_on_variable if kind.tail else errors.reductions.option_not_fixed
    ctx.report(refusal(ctx.quote(value), node.kind, example))
    return False


# --------------------------------------------------------------------------------------------- body
def _body_fits(ctx: Context, node: syntax.Reduce, kind: Reduction, body: ir.Expr) -> bool:
    """Whether the reduction takes such a body. Reports an error if not."""
    if kind.condition:
        return comparisons.is_condition(ctx, body, f"the body of `{node.kind}`")
    if not expressions.is_number(ctx, body, f"the body of `{node.kind}`"):
        return False
    if body.shape and not kind.arrays:
        ctx.report(errors.shapes.body(node.kind, described(ctx, body), kind.scalar))
        return False
    return True


def _note_quotient(
    ctx: Context, node: syntax.Reduce, kind: Reduction, binders: Sequence[ir.Binder], body: ir.Expr
) -> None:
    """A remark on ``E[..] a / b``, the mean of a quotient, where most mean the quotient of means."""
    source = node.body
    if not kind.average or not isinstance(source, syntax.Binary) or source.op not in "*/":
        return
    if ctx.source.text[: source.span.start].rstrip().endswith(("(", "[")):
        return
    part: ir.Expr = body
    while isinstance(source, syntax.Binary) and source.op in "*/":
        if not isinstance(part, ir.Apply) or part.op not in ("mul", "div"):
            return
        if source.op == "/" and any(b in binders for b in ir.free_binders(part.args[1])):
            top, bottom = ctx.text(source.left.span, 30), ctx.text(source.right.span, 30)
            head = ctx.text(Span(start=node.span.start, end=node.body.span.start), 40)
            ctx.report(errors.reductions.mean_of_a_quotient(kind.words["noun"], head, top, bottom, node.span))
            return
        source, part = source.left, part.args[0]


def _note_constant(
    ctx: Context, node: syntax.Reduce, kind: Reduction, binders: Sequence[ir.Binder], body: ir.Expr
) -> None:
    """A remark on a body that depends on none of the binders."""
    if isinstance(body, ir.Const) or kind.total:
        return
    used = set(ir.free_binders(body))
    for binder in ir.free_binders(body):
        if isinstance(binder.domain, ir.Distribution | ir.VectorSet):
            used.update(free for arg in binder.domain.args for free in ir.free_binders(arg))
    if binders and not used.intersection(binders):
        draws = [binder.name for binder in binders]
        ctx.report(errors.reductions.body_without_draw(node.kind, draws, node.span))
