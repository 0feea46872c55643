"""Simple sets of vectors: the domains of variables, and what ``max[q in simplex(K)]`` ranges over."""

from __future__ import annotations

from collections.abc import Mapping

from fccomodel.core import ir
from fccomodel.core.source import Span
from fccomodel.language import syntax
from fccomodel.language.check import (
    expressions,
    literals,
    shapes,
    signs,
)
from fccomodel.language.check.context import (
    Context,
    Scope,
    listed,
)
from fccomodel.language.check.shapes import describe, show

#: vector set -> how it is written
VECTOR_SETS: Mapping[str, str] = {
    "box": "box(low, high)",
    "simplex": "simplex(K)",
    "capped_simplex": "capped_simplex(K, alpha)",
    "ball": "ball(radius)",
    "ball1": "ball1(radius)",
    "nonneg": "nonneg",
    "affine": "affine(A, b)",
}


def vector_set(ctx: Context, scope: Scope, node: syntax.Expr, shape: ir.Shape | None) -> ir.VectorSet | None:
    """``simplex(K)``, ``box(l, u)``, ...: as a variable's domain (``shape`` is the variable's) or to range over (None)."""
    family = node.func if isinstance(node, syntax.Call) else node.id if isinstance(node, syntax.Name) else ""
    args = node.args if isinstance(node, syntax.Call) else ()
    span, text = node.span, ctx.text(node.span)
    if family not in VECTOR_SETS:
        hint = ctx.suggest(family, VECTOR_SETS) if family else ""
        ctx.error(
            "F0412",
            f"`{text}` is not a set of vectors",
            span,
            reason=f"Those known are {listed(VECTOR_SETS.values())}.",
            fix=hint or "Write a condition on the variable as a labelled constraint.",
        )
        return None
    wanted = {"box": 2, "simplex": 1, "capped_simplex": 2, "ball": 1, "ball1": 1, "nonneg": 0, "affine": 2}[family]
    keywords = node.keywords if isinstance(node, syntax.Call) else ()
    if keywords or (len(args) != wanted and not (family == "simplex" and not args and shape)):
        ctx.error(
            "F0302",
            f"`{text}` has {len(args) + len(keywords)} arguments; `{family}` takes {wanted}",
            span,
            fix=f"Write `{VECTOR_SETS[family]}`.",
        )
        return None
    if family in ("simplex", "capped_simplex"):
        return _simplex(ctx, scope, family, args, shape, span)
    if shape is None:
        ctx.error(
            "F0407",
            f"`{text}` has no size here",
            span,
            reason="`max[q in ..]` ranges over vectors of known size.",
            fix="Use `simplex(K)` or `capped_simplex(K, alpha)`.",
        )
        return None
    values = [expressions.number(ctx, scope, a, f"an argument of `{family}`", scalar=False) for a in args]
    if any(v is None for v in values):
        return None
    return _with_values(ctx, family, [v for v in values if v is not None], shape, span)


def _simplex(
    ctx: Context, scope: Scope, family: str, args: tuple[syntax.Expr, ...], shape: ir.Shape | None, span: Span
) -> ir.VectorSet | None:
    own = literals.declared_shape(ctx, scope, args[:1]) if args else shape
    if own is None:
        return None
    if shape is not None and not shapes.same_shape(ctx, own, shape[-1:]):
        ctx.error(
            "F0301",
            f"`{ctx.text(span)}` has vectors [{own[0]}], and the variable is a {show(shape)}",
            span,
            reason="The rows of a matrix lie in a simplex each, so it has the size of its last axis."
            if len(shape) > 1
            else "A variable's set has the variable's shape.",
            fix=f"Write `{family}({shape[-1]}{', ...' if family != 'simplex' else ''})`."
            if shape
            else "Give the variable a shape.",
        )
        return None
    rest: tuple[ir.Expr, ...] = ()
    if family == "capped_simplex":
        cap = expressions.number(ctx, scope, args[1], "the second argument of `capped_simplex`")
        if (
            cap is None
            or not literals.is_fixed(ctx, cap)
            or not signs.within(ctx, cap, 0, 1, "the tail of `capped_simplex`", low_open=True)
        ):
            return None
        rest = (cap,)
    return ir.VectorSet(name=ctx.text(span), family=family, args=rest, shape=own if shape is None else shape)


def _with_values(ctx: Context, family: str, values: list[ir.Expr], shape: ir.Shape, span: Span) -> ir.VectorSet | None:
    text = ctx.text(span)
    for value in values:
        if not literals.is_fixed(ctx, value):
            return None
    if family in ("ball", "ball1"):
        if not shape:
            ctx.error("F0301", "a scalar variable has no ball", span, fix="Write bounds: `>= -1, <= 1`.")
            return None
        if not _is_scalar(ctx, values[0]) or not signs.within(
            ctx, values[0], 0, float("inf"), "the radius of a ball", low_open=True
        ):
            return None
    if family == "box":
        for value in values:
            if value.shape and not shapes.same_shape(ctx, value.shape, shape):
                ctx.error(
                    "F0301",
                    f"`{ctx.text(value.span)}` is {describe(ctx, value)}, and the variable is a {show(shape)}",
                    value.span,
                    fix="Give a scalar, or a bound for every entry.",
                )
                return None
        low, high = values
        if isinstance(low, ir.Const) and isinstance(high, ir.Const) and low.value > high.value:
            ctx.error(
                "F0410",
                f"`{text}` is empty",
                span,
                reason=f"The low end {low.value:g} is above the high end {high.value:g}.",
                fix=f"Write `box({high.value:g}, {low.value:g})`.",
            )
            return None
    if family == "affine":
        matrix, right = values
        fits = len(matrix.shape) == 2 and len(right.shape) == 1 and len(shape) == 1
        if not (
            fits and shapes.same_dim(ctx, matrix.shape[1], shape[0]) and shapes.same_dim(ctx, matrix.shape[0], right.shape[0])
        ):
            ctx.error(
                "F0301",
                f"`{text}` does not fit a {show(shape)}",
                span,
                reason="`A x = b` needs a matrix [m, n], a vector [m] and a variable [n];"
                f" these are {describe(ctx, matrix)}, {describe(ctx, right)} and a {show(shape)}.",
                fix="Correct the declared shapes.",
            )
            return None
    return ir.VectorSet(name=text, family=family, args=tuple(values), shape=shape)


def _is_scalar(ctx: Context, value: ir.Expr) -> bool:
    if value.shape:
        ctx.error(
            "F0303",
            f"`{ctx.text(value.span)}` is {describe(ctx, value)}, and a scalar is needed",
            value.span,
            fix="Give one number.",
        )
    return not value.shape
