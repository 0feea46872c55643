"""Simple sets of vectors: the domains of variables, and what ``max[q in simplex(K)]`` ranges over."""

from __future__ import annotations

from fccomodel.core import ir
from fccomodel.core.source import Span
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import expressions, literals, shapes, signs
from fccomodel.language.formulas.context import (
    Context,
    Scope,
)
from fccomodel.language.formulas.shapes import describe, described, show
from fccomodel.library import domains, sets


def vector_set(ctx: Context, scope: Scope, node: syntax.Expr, shape: ir.Shape | None) -> ir.VectorSet | None:
    """``simplex(K)``, ``box(l, u)``, ...: as a variable's domain (``shape`` is the variable's) or to
    range over (None)."""
    if isinstance(node, syntax.Call):
        family = node.func
    elif isinstance(node, syntax.Name):
        family = node.id
    else:
        family = ""
    if isinstance(node, syntax.Call):
        args = node.args
    else:
        args = ()
    span = node.span
    simple = sets.get(family)
    if simple is None:
        signatures = {name: s.signature for name, s in sets.all().items()}
        ctx.report(errors.sets.not_a_set_of_vectors(ctx.quote(node), family, signatures))
        return None
    arity = len(simple.arguments) + (simple.cap is not None)
    if isinstance(node, syntax.Call):
        keywords = node.keywords
    else:
        keywords = ()
    if keywords or (
        len(args) != arity and not (simple.cap is not None and not simple.arguments and not args and shape)
    ):
        ctx.report(
            errors.calls.set_arguments(
                ctx.quote(node), family, len(args) + len(keywords), arity, simple.signature
            )
        )
        return None
    if simple.cap is not None:
        return _simplex(ctx, scope, family, args, shape, span)
    if shape is None:
        ctx.report(errors.sets.vectors_without_size(ctx.quote(node)))
        return None
    values = [expressions.number(ctx, scope, a, f"an argument of `{family}`", scalar=False) for a in args]
    if any(v is None for v in values):
        return None
    return _with_values(ctx, family, [v for v in values if v is not None], shape, span)


def _simplex(
    ctx: Context, scope: Scope, family: str, args: tuple[syntax.Expr, ...], shape: ir.Shape | None, span: Span
) -> ir.VectorSet | None:
    if args:
        simplex_shape = literals.declared_shape(ctx, scope, args[:1])
    else:
        simplex_shape = shape
    if simplex_shape is None:
        return None
    if shape is not None and not shapes.same_shape(ctx, simplex_shape, shape[-1:]):
        ctx.report(errors.shapes.simplex(ctx.quote(span), family, simplex_shape[0], shape, show(shape)))
        return None
    rest: tuple[ir.Expr, ...] = ()
    if family == "capped_simplex":
        cap = expressions.number(ctx, scope, args[1], "the second argument of `capped_simplex`")
        if cap is None or not literals.is_fixed(ctx, cap):
            return None
        rest = (cap,)
    return _made(ctx, family, rest, simplex_shape if shape is None else shape, span)


def _made(
    ctx: Context, family: str, args: tuple[ir.Expr, ...], shape: ir.Shape, span: Span
) -> ir.VectorSet | None:
    """The set, or an error where it has no points, whatever its arguments' values are."""
    made = ir.VectorSet(name=ctx.text(span), family=family, args=args, shape=shape)
    return made if signs.are_defined(ctx, domains.of_set(made), span) else None


def _with_values(
    ctx: Context, family: str, values: list[ir.Expr], shape: ir.Shape, span: Span
) -> ir.VectorSet | None:
    for value in values:
        if not literals.is_fixed(ctx, value):
            return None
    if family in ("ball", "ball1"):
        if not shape:
            ctx.report(errors.shapes.ball_of_a_scalar(span))
            return None
        if not _is_scalar(ctx, values[0]):
            return None
    if family == "box":
        for value in values:
            if value.shape and not shapes.same_shape(ctx, value.shape, shape):
                ctx.report(errors.shapes.bound(described(ctx, value), "the variable", show(shape)))
                return None
    if family == "affine":
        matrix, right = values
        fits = len(matrix.shape) == 2 and len(right.shape) == 1 and len(shape) == 1
        if not (
            fits
            and shapes.same_dim(ctx, matrix.shape[1], shape[0])
            and shapes.same_dim(ctx, matrix.shape[0], right.shape[0])
        ):
            ctx.report(
                errors.shapes.affine(
                    ctx.quote(span), describe(ctx, matrix), describe(ctx, right), show(shape)
                )
            )
            return None
    return _made(ctx, family, tuple(values), shape, span)


def _is_scalar(ctx: Context, value: ir.Expr) -> bool:
    if value.shape:
        ctx.report(errors.shapes.radius(described(ctx, value)))
    return not value.shape
