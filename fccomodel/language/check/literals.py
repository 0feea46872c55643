"""Sets and sizes written out: ``{1, 2}``, ``-3 .. 3 by 1``, ``[d, K]``."""

from __future__ import annotations

from fccomodel.core import ir
from fccomodel.language import syntax
from fccomodel.language.check import (
    expressions,
    names,
)
from fccomodel.language.check.context import (
    BrokenSymbol,
    Context,
    Scope,
    SetSymbol,
    TableSymbol,
    listed,
)


def literal_set(ctx: Context, scope: Scope, node: syntax.SetLiteral) -> ir.Set | None:
    """``{1, 2}`` or ``{"a", "b"}``."""
    items: list[ir.Expr | None] = []
    for item in node.items:
        if isinstance(item, syntax.Name) and item.id not in scope.locals and item.id not in ctx.symbols:
            ctx.error(
                "F0201",
                f"name `{item.id}` is not declared",
                item.span,
                reason="Labels are written in quotes.",
                fix=f'Write `"{item.id}"`.',
            )
            items.append(None)
        else:
            items.append(expressions.evaluate(ctx, scope, item))
    if any(i is None for i in items):
        return None
    values = [i for i in items if i is not None]
    text = ctx.text(node.span, 10_000)
    if all(isinstance(v, ir.Label) for v in values):
        labels = tuple(v.text for v in values if isinstance(v, ir.Label))
        if not _distinct(ctx, labels, values):
            return None
        return ir.LabelSet(name=text, labels=labels)
    for v in values:
        if isinstance(v, ir.Label):
            ctx.error(
                "F0306",
                "a set has numbers and labels",
                v.span,
                reason="The members of one set are all numbers, or all labels in quotes.",
                fix="Put every member in quotes, or none.",
            )
            return None
        if not expressions.is_number(ctx, v, "a member of a set"):
            return None
        if v.shape or not data_free(v):
            ctx.error(
                "F0424",
                f"`{ctx.text(v.span)}` cannot be a member of a set",
                v.span,
                reason="Members are numbers known before any data: constants, params, dims and their arithmetic.",
                fix="Use a constant or a param.",
            )
            return None
    if not _distinct(ctx, tuple(v.value for v in values if isinstance(v, ir.Const)), values):
        return None
    return ir.ValueSet(name=text, items=tuple(values))


def _distinct(ctx: Context, keys: tuple, values: list[ir.Expr]) -> bool:
    for k, key in enumerate(keys):
        if key in keys[:k]:
            ctx.error(
                "F0409",
                f"`{ctx.text(values[k].span)}` is listed twice",
                values[k].span,
                reason="A set has every member once.",
                fix="Leave one out.",
            )
            return False
    return True


def range_set(ctx: Context, scope: Scope, node: syntax.Range) -> ir.ValueSet | None:
    """``low .. high by step``."""
    parts = []
    for part, what in (
        (node.low, "the low end of a range"),
        (node.high, "the high end of a range"),
        (node.step, "the step of a range"),
    ):
        value = None if part is None else expressions.number(ctx, scope, part, what)
        if part is not None and value is not None and not data_free(value):
            ctx.error(
                "F0424",
                f"`{ctx.text(part.span)}` is not known before the data is",
                part.span,
                reason="The ends and the step of a range are made of constants, params and dims.",
                fix="Use a constant or a param.",
            )
            value = None
        if part is not None and value is None:
            return None
        parts.append(value)
    low, high, step = parts
    assert low is not None and high is not None
    if isinstance(step, ir.Const) and step.value <= 0:
        ctx.error(
            "F0409",
            f"the step of a range is {step.value:g}",
            step.span,
            reason="A range goes up from its low end.",
            fix="Use a positive step.",
        )
        return None
    if isinstance(low, ir.Const) and isinstance(high, ir.Const):
        if low.value > high.value:
            ctx.error(
                "F0409",
                f"the range {ctx.text(node.span)} is empty",
                node.span,
                reason=f"It goes up from {low.value:g} to {high.value:g}.",
                fix=f"Write `{ctx.text(node.high.span)} .. {ctx.text(node.low.span)}`.",
            )
            return None
        if (high.value - low.value) / (step.value if isinstance(step, ir.Const) else 1.0) > 1e6:
            ctx.error(
                "F0409",
                f"the range {ctx.text(node.span)} has more than a million members",
                node.span,
                reason="A range is iterated over member by member.",
                fix="Use a larger step, or draw from `uniform(low, high)`.",
            )
            return None
    return ir.ValueSet(name=ctx.text(node.span, 10_000), low=low, high=high, step=step)


def data_free(expr: ir.Expr) -> bool:
    """Made of constants, params and dims alone."""
    return all(isinstance(n, ir.Const | ir.Param | ir.Size | ir.Apply) for n in ir.walk(expr))


def is_fixed(ctx: Context, value: ir.Expr) -> bool:
    """True, or an error: the argument of a variable's set depends on a variable or on a draw."""
    if ir.variables_of(value) or ir.free_binders(value):
        ctx.error(
            "F0424",
            f"`{ctx.text(value.span)}` is not fixed",
            value.span,
            reason="A variable's set, and an option of a reduction, is made of constants, params and arrays.",
            fix="Write the condition as a labelled constraint after `subject to`.",
        )
        return False
    return True


def declared_shape(ctx: Context, scope: Scope, items: tuple[syntax.Expr, ...]) -> ir.Shape | None:
    """The sizes in ``real[d, 3]`` or ``var x[A]``: dims, sets, whole numbers."""
    dims: list[ir.Dim] = []
    for item in items:
        dim = declared_dim(ctx, scope, item)
        if dim is None:
            return None
        dims.append(dim)
    return tuple(dims)


def declared_dim(ctx: Context, scope: Scope, node: syntax.Expr) -> ir.Dim | None:
    """A size: a dim, a set, a table, or a whole number."""
    text = ctx.text(node.span)
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
            ctx.error(
                "F0416",
                f"`{node.id}` is {symbol.what}, not a size",
                node.span,
                reason="A size is a dim, a set, or a whole number.",
                fix=f"Declare it as `dim {node.id};` or `const {node.id} = 3;`.",
            )
            return None
    if isinstance(node, syntax.SetLiteral | syntax.Range):
        ctx.error(
            "F0416",
            f"`{text}` has no name",
            node.span,
            reason="An axis is named after its set, so that indices can be checked.",
            fix=f"Declare `set K = {text};` and write `K` here.",
        )
        return None
    value = expressions.number(ctx, scope, node, "a size")
    if value is None:
        return None
    if not isinstance(value, ir.Const) or value.value != int(value.value) or value.value < 1:
        ctx.error(
            "F0416",
            f"`{text}` is not a size",
            node.span,
            reason="A size is a dim, a set, or a whole number of 1 or more.",
            fix="Declare a dim for it: it is solved from the data.",
        )
        return None
    return int(value.value)


def _unknown_size(ctx: Context, scope: Scope, node: syntax.Name) -> None:
    """The error for a size that is not declared, or not yet."""
    if node.id in ctx.later or any(c[0] == node.id for c in ctx.calls):
        names.unknown(ctx, scope, node.id, node.span)
        return
    candidates = [n for n, s in ctx.symbols.items() if isinstance(s, SetSymbol | TableSymbol) or s.what == "a dim"]
    hint = ctx.suggest(node.id, candidates)
    if not hint and node.id in ctx.missing:
        return
    ctx.missing.add(node.id)
    said = f"The dims and sets declared so far are {listed(candidates)}." if candidates else "No dim or set is declared so far."
    fix = hint or f"Declare `dim {node.id};` before this statement."
    ctx.error("F0201", f"size `{node.id}` is not declared", node.span, reason=said, fix=fix)
