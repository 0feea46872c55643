"""Simple sets of vectors: the domains of variables, and what ``max[q in simplex(K)]`` ranges over."""

from __future__ import annotations

from math import inf

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


def vector_set(
    ctx: Context, scope: Scope, node: syntax.Expr, shape: ir.Shape | None, *, ranged: bool = False
) -> ir.VectorSet | None:
    """``simplex(K)``, ``box(l, u)``, ...; None after an error.

    shape   the variable's, if the set is the domain of a variable; None if the set says it itself
    ranged  whether a binder ranges over the set; then its arguments may depend on what is bound around it
    """
    args: tuple[syntax.Expr, ...] = ()
    keywords: tuple[syntax.Keyword, ...] = ()
    match node:
        case syntax.Call():
            family, args, keywords = node.func, node.args, node.keywords
        case syntax.Name():
            family = node.id
        case _:
            family = ""
    span = node.span
    simple = sets.get(family)
    if simple is None:
        signatures = {name: s.signature for name, s in sets.all().items()}
        ctx.report(errors.sets.not_a_set_of_vectors(ctx.quote(node), family, signatures))
        return None
    arity = len(simple.arguments) + (simple.cap is not None)
    size_of_variable = simple.cap is not None and not simple.arguments and not args and shape
    if keywords or (len(args) != arity and not size_of_variable):
        count = len(args) + len(keywords)
        ctx.report(errors.calls.set_arguments(ctx.quote(node), family, count, arity, simple.signature))
        return None
    if simple.cap is not None:
        return _simplex(ctx, scope, family, args, shape, span)
    if shape is None:
        ctx.report(errors.sets.vectors_without_size(ctx.quote(node)))
        return None
    values = expressions.complete([_argument(ctx, scope, arg, family) for arg in args])
    if values is None or not _values_fit(ctx, family, values, shape, span, ranged):
        return None
    return _nonempty(ctx, family, tuple(values), shape, span)


def _argument(ctx: Context, scope: Scope, node: syntax.Expr, family: str) -> ir.Expr | None:
    """An argument of a set, or None after an error; the ends of a box may be infinite."""
    what = f"an argument of `{family}`"
    if family == "box":
        return literals.bound(ctx, scope, node, what)
    return expressions.number(ctx, scope, node, what, scalar=False)


def _simplex(
    ctx: Context, scope: Scope, family: str, args: tuple[syntax.Expr, ...], shape: ir.Shape | None, span: Span
) -> ir.VectorSet | None:
    """A simplex, with a size of its own or that of the variable; rows of a matrix lie in it each."""
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
    return _nonempty(ctx, family, rest, simplex_shape if shape is None else shape, span)


def _nonempty(
    ctx: Context, family: str, args: tuple[ir.Expr, ...], shape: ir.Shape, span: Span
) -> ir.VectorSet | None:
    """The set, or None after the error that it is empty whatever the values of its arguments are."""
    vectors = ir.VectorSet(name=ctx.text(span), family=family, args=args, shape=shape)
    if not signs.are_defined(ctx, domains.of_set(vectors), span):
        return None
    if family == "box":
        least, greatest = signs.interval(ctx, args[0]).lo, signs.interval(ctx, args[1]).hi
        if least == inf or greatest == -inf:
            ctx.report(errors.values.no_value_left("value", vectors.name, least, greatest, span))
            return None
    return vectors


def _values_fit(
    ctx: Context, family: str, values: list[ir.Expr], shape: ir.Shape, span: Span, ranged: bool
) -> bool:
    """Whether the arguments of a set are fixed and fit its shape. Reports an error if they do not."""
    for value in values:
        within_binders = ranged and not ir.variables_of(value)
        if not within_binders and not literals.is_fixed(ctx, value):
            return False
    if sets.all()[family].square and not shapes.is_square(ctx, shape):
        ctx.report(errors.shapes.set_of_square_matrices(family, show(shape), span))
        return False
    if family in ("ball", "ball1"):
        return _radius_fits(ctx, values[0], shape, span)
    if family == "box":
        for value in values:
            if value.shape and not shapes.same_shape(ctx, value.shape, shape):
                ctx.report(errors.shapes.bound(described(ctx, value), "the variable", show(shape)))
                return False
    if family == "affine":
        return _system_fits(ctx, values[0], values[1], shape, span)
    return True


def _radius_fits(ctx: Context, radius: ir.Expr, shape: ir.Shape, span: Span) -> bool:
    """Whether a ball has vectors and a scalar radius."""
    if not shape:
        ctx.report(errors.shapes.ball_of_a_scalar(span))
        return False
    if radius.shape:
        ctx.report(errors.shapes.radius(described(ctx, radius)))
        return False
    return True


def _system_fits(ctx: Context, matrix: ir.Expr, right: ir.Expr, shape: ir.Shape, span: Span) -> bool:
    """Whether ``matrix @ x == right`` can be written of vectors of this shape."""
    if (
        len(matrix.shape) == 2
        and len(right.shape) == 1
        and len(shape) == 1
        and shapes.same_dim(ctx, matrix.shape[1], shape[0])
        and shapes.same_dim(ctx, matrix.shape[0], right.shape[0])
    ):
        return True
    sides = describe(ctx, matrix), describe(ctx, right)
    ctx.report(errors.shapes.affine(ctx.quote(span), *sides, show(shape)))
    return False
