"""Sets and sizes written out: ``{1, 2}``, ``-3 .. 3 by 1``, ``[d, K]``."""

from __future__ import annotations

from math import inf

from fccomodel.core import ir, progressions
from fccomodel.core.diagnostics import nearest
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import expressions, names, shapes
from fccomodel.language.formulas.context import (
    BrokenSymbol,
    Context,
    Scope,
    SetSymbol,
    TableSymbol,
)

#: Characters of a set's text that become its name.
SET_NAME_LENGTH = 10_000


def literal_set(ctx: Context, scope: Scope, node: syntax.SetLiteral) -> ir.Set | None:
    """``{1, 2}`` or ``{"a", "b"}``."""
    items: list[ir.Expr | None] = []
    for item in node.items:
        if isinstance(item, syntax.Name) and item.id not in scope.locals and item.id not in ctx.symbols:
            ctx.report(errors.names.label_without_quotes(item.id, item.span))
            items.append(None)
        else:
            items.append(expressions.evaluate(ctx, scope, item))
    values = expressions.complete(items)
    if values is None:
        return None
    text = ctx.text(node.span, SET_NAME_LENGTH)
    if all(isinstance(value, ir.Label) for value in values):
        labels = tuple(value.text for value in values if isinstance(value, ir.Label))
        if not _distinct(ctx, labels, values):
            return None
        return ir.LabelSet(name=text, labels=labels)
    for value in values:
        if isinstance(value, ir.Label):
            ctx.report(errors.sorts.numbers_and_labels(value.span))
            return None
        if not expressions.is_number(ctx, value, "a member of a set"):
            return None
        if value.shape or not data_free(ctx, value):
            ctx.report(errors.values.member_not_known(ctx.quote(value)))
            return None
    if not _distinct(ctx, tuple(value.value for value in values if isinstance(value, ir.Const)), values):
        return None
    return ir.ValueSet(name=text, items=tuple(values))


def _distinct(ctx: Context, keys: tuple, values: list[ir.Expr]) -> bool:
    """Whether no member is listed twice. Reports the first that is."""
    for k, key in enumerate(keys):
        if key in keys[:k]:
            ctx.report(errors.sets.listed_twice(ctx.quote(values[k])))
            return False
    return True


def range_set(ctx: Context, scope: Scope, node: syntax.Range) -> ir.ValueSet | None:
    """``low .. high by step``."""
    low = _end_of_range(ctx, scope, node.low, "the low end of a range")
    if low is None:
        return None
    high = _end_of_range(ctx, scope, node.high, "the high end of a range")
    if high is None:
        return None
    step: ir.Expr | None = None
    if node.step is not None:
        step = _end_of_range(ctx, scope, node.step, "the step of a range")
        if step is None:
            return None
    if isinstance(step, ir.Const) and step.value <= 0:
        ctx.report(errors.sets.step_of_range(step.value, step.span))
        return None
    if isinstance(low, ir.Const) and isinstance(high, ir.Const):
        if low.value > high.value:
            reversed_range = ""  # of a set written by its size alone
            if node.low.span != node.high.span:
                reversed_range = f"{ctx.text(node.high.span)} .. {ctx.text(node.low.span)}"
            ctx.report(errors.sets.empty_range(ctx.quote(node), low.value, high.value, reversed_range))
            return None
        increment = step.value if isinstance(step, ir.Const) else 1.0
        if progressions.count(low.value, high.value, increment) > shapes.MAX_RANGE_MEMBERS:
            ctx.report(errors.sets.long_range(ctx.quote(node)))
            return None
    return ir.ValueSet(name=ctx.text(node.span, SET_NAME_LENGTH), low=low, high=high, step=step)


def _end_of_range(ctx: Context, scope: Scope, node: syntax.Expr, what: str) -> ir.Expr | None:
    """An end or the step of a range, which must be known without data; None after an error."""
    value = expressions.number(ctx, scope, node, what)
    if value is not None and not data_free(ctx, value):
        ctx.report(errors.values.end_not_known(ctx.quote(node)))
        return None
    return value


def data_free(ctx: Context, expr: ir.Expr) -> bool:
    """Whether an expression is made of constants, params and dims alone."""
    nodes = list(ir.walk(expr))
    data = any(isinstance(n, ir.Param) and n.name in ctx.arrays for n in nodes)
    return not data and all(isinstance(n, ir.Const | ir.Param | ir.Size | ir.Apply) for n in nodes)


def is_fixed(ctx: Context, value: ir.Expr) -> bool:
    """Whether a value depends on no variable and no draw. Reports an error if it does."""
    if ir.variables_of(value) or ir.free_binders(value):
        ctx.report(errors.values.not_fixed(ctx.quote(value)))
        return False
    return True


def declared_shape(ctx: Context, scope: Scope, items: tuple[syntax.Expr, ...]) -> ir.Shape | None:
    """The sizes in ``real[d, 3]`` or ``var x[A]``: dims, sets, whole numbers; None after an error."""
    dims: list[ir.Dim] = []
    for item in items:
        dim = declared_dim(ctx, scope, item)
        if dim is None:
            return None
        dims.append(dim)
    return tuple(dims)


def declared_dim(ctx: Context, scope: Scope, node: syntax.Expr) -> ir.Dim | None:
    """A size: a dim, a set, a table, or a whole number; None after an error."""
    if isinstance(node, syntax.Name) and node.id not in scope.locals:
        symbol = names.find(ctx, node.id)
        if symbol is None:
            _unknown_size(ctx, scope, node)
            return None
        ctx.used.add(node.id)
        match symbol:
            case BrokenSymbol():
                return None
            case SetSymbol(set=ir.Set()):
                return node.id
            case TableSymbol() if ctx.tables[node.id].family is None:
                return node.id
        if symbol.what == "a dim":
            return node.id
        if symbol.what != "a constant":
            ctx.report(errors.declarations.not_a_size(node.id, symbol.what, node.span))
            return None
    if isinstance(node, syntax.Range) and _counts_from_one(node):
        return declared_dim(ctx, scope, node.high)
    if isinstance(node, syntax.SetLiteral | syntax.Range):
        ctx.report(errors.declarations.axis_without_name(ctx.quote(node)))
        return None
    value = expressions.number(ctx, scope, node, "a size")
    if value is None:
        return None
    if not isinstance(value, ir.Const) or value.value != int(value.value) or value.value < 1:
        ctx.report(errors.declarations.size_not_whole(ctx.quote(node)))
        return None
    return int(value.value)


def _counts_from_one(node: syntax.Range) -> bool:
    """Whether a range is ``1 .. n``."""
    return isinstance(node.low, syntax.Number) and node.low.value == 1 and node.step is None


def bound(
    ctx: Context, scope: Scope, node: syntax.Expr, what: str, *, scalar: bool = False
) -> ir.Expr | None:
    """The value of a bound, which may be ``inf``; None after an error."""
    endless = _infinite(ctx, node)
    if endless is not None:
        return ir.Const(value=endless, span=node.span)
    return expressions.number(ctx, scope, node, what, scalar=scalar)


def _infinite(ctx: Context, node: syntax.Expr) -> float | None:
    """The value of ``inf`` or ``-inf`` where the model has no such name, or None."""
    match node:
        case syntax.Name(id="inf") if "inf" not in ctx.symbols:
            return inf
        case syntax.Unary(op="-", arg=syntax.Name(id="inf")) if "inf" not in ctx.symbols:
            return -inf
    return None


def _unknown_size(ctx: Context, scope: Scope, node: syntax.Name) -> None:
    """The error for a size that is not declared, or not yet."""
    if node.id in ctx.later or any(function == node.id for function, _ in ctx.calls):
        names.unknown(ctx, scope, node.id, node.span)
        return
    candidates = [
        n for n, s in ctx.symbols.items() if isinstance(s, SetSymbol | TableSymbol) or s.what == "a dim"
    ]
    if node.id in ctx.missing and not nearest(node.id, candidates):
        return
    ctx.missing.add(node.id)
    ctx.report(errors.names.unknown_size(node.id, node.span, candidates))
