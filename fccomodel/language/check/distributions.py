"""Distributions to draw from: ``normal(0, 0.1)[d]``."""

from __future__ import annotations

from fccomodel.core import ir
from fccomodel.core.diagnostics import did_you_mean
from fccomodel.core.source import Span
from fccomodel.language import syntax
from fccomodel.language.check import (
    expressions,
    literals,
    shapes,
    signs,
    vector_sets,
)
from fccomodel.language.check.context import (
    Context,
    Domain,
    Scope,
    listed,
)
from fccomodel.language.check.shapes import describe, show


def distribution(ctx: Context, scope: Scope, node: syntax.Call, items: tuple[syntax.Expr, ...], span: Span) -> Domain | None:
    """``normal(0, 0.1)[d]``; an unknown family is a sampler to be given from Python."""
    wanted = ir.DISTRIBUTIONS.get(node.func)
    if wanted is None and (hint := did_you_mean(node.func, ir.DISTRIBUTIONS)):
        ctx.error(
            "F0206",
            f"there is no distribution `{node.func}`",
            Span(start=node.span.start, end=node.span.start + len(node.func)),
            reason=f"The distributions are {listed(ir.DISTRIBUTIONS)}.",
            fix=hint,
        )
        return None
    if wanted is None and node.func in vector_sets.VECTOR_SETS:
        ctx.error(
            "F0407",
            f"nothing can be drawn from `{ctx.text(node.span)}`",
            node.span,
            reason="It is a set of vectors without a distribution.",
            fix=f"Maximise over it, `max[q in {ctx.text(node.span)}] ...`, or draw from `uniform(low, high)[n]`.",
        )
        return None
    args = _ordered(ctx, scope, node, wanted)
    if args is None:
        return None
    shape = literals.declared_shape(ctx, scope, items)
    if shape is None:
        return None
    for arg in args:
        if arg.shape and not items:
            shape = arg.shape
        if arg.shape and not shapes.same_shape(ctx, arg.shape, shape):
            ctx.error(
                "F0301",
                f"`{ctx.text(arg.span)}` is {describe(ctx, arg)}, and the draw is a {show(shape)}",
                arg.span,
                fix="Give scalars, or arrays of the draw's shape.",
            )
            return None
        if ir.variables_of(arg):
            ctx.error(
                "F0414",
                f"the distribution depends on the decision variable in `{ctx.text(arg.span)}`",
                arg.span,
                reason="A draw is taken before the decision, so its derivative would be missed.",
                fix="Draw from a fixed distribution and transform: `E[e ~ normal(0, 1)] f(m + s * e)`.",
            )
            return None
    if wanted is not None and not signs.distribution_is_defined(ctx, node.func, args):
        return None
    return Domain(set=ir.Distribution(name=ctx.text(span), family=node.func, args=tuple(args), shape=shape))


def _ordered(ctx: Context, scope: Scope, node: syntax.Call, wanted: tuple[str, ...] | None) -> list[ir.Expr] | None:
    """A distribution's parameters in order."""
    parts = list(node.args)
    if node.keywords:
        named = {k.name: k.value for k in node.keywords}
        rest = (wanted or ())[len(parts) :]
        if wanted is None or set(named) != set(rest) or len(named) != len(node.keywords):
            ctx.error(
                "F0302",
                f"`{ctx.text(node.span)}` does not fit",
                node.span,
                fix=f"Write `{node.func}({', '.join(wanted or ('...',))})`.",
            )
            return None
        parts += [named[name] for name in rest]
    if wanted is not None and len(parts) != len(wanted):
        ctx.error(
            "F0302",
            f"`{node.func}` has {len(wanted)} parameter{'' if len(wanted) == 1 else 's'},"
            f" and {len(parts)} {'is' if len(parts) == 1 else 'are'} given",
            node.span,
            fix=f"Write `{node.func}({', '.join(wanted)})`.",
        )
        return None
    values = [expressions.number(ctx, scope, p, "a distribution's parameter", scalar=False) for p in parts]
    return None if any(v is None for v in values) else [v for v in values if v is not None]
