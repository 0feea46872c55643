"""Distributions to draw from: ``normal(0, 0.1)[d]``."""

from __future__ import annotations

from fccomodel.core import ir
from fccomodel.core.diagnostics import nearest
from fccomodel.core.source import Span
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import expressions, literals, shapes, signs
from fccomodel.language.formulas.context import (
    BinderRange,
    Context,
    Scope,
)
from fccomodel.language.formulas.shapes import described, show
from fccomodel.library import distributions as registry
from fccomodel.library import domains, sets

#: What draws of distributions that other languages know are made of here; empty where nothing is.
OF_OTHER_LANGUAGES = {
    "beta": "x / (x + y) with x ~ gamma(a, 1), y ~ gamma(b, 1)",
    **dict.fromkeys(("chi2", "chisquare", "chi_squared"), "gamma(n / 2, 1 / 2)"),
    "cauchy": "x / y with x ~ normal(0, 1), y ~ normal(0, 1)",
    **dict.fromkeys(
        ("student_t", "studentt", "t"), "x / sqrt(y / n) with x ~ normal(0, 1), y ~ gamma(n / 2, 1 / 2)"
    ),
    "erlang": "gamma(n, rate)",
    "logistic": "log(x / (1 - x)) with x ~ uniform(0, 1)",
    "pareto": "low * exp(x) with x ~ exponential(a)",
    "rayleigh": "weibull(2, sqrt(2) * scale)",
    "gumbel": "-log(x) with x ~ exponential(1)",
    **dict.fromkeys(("binomial", "geometric", "negative_binomial", "triangular", "dirichlet"), ""),
    **dict.fromkeys(("multivariate_normal", "mvn"), "m + L @ x with x ~ normal(0, 1)[d]"),
}


def distribution(
    ctx: Context, scope: Scope, node: syntax.Call, items: tuple[syntax.Expr, ...], span: Span
) -> BinderRange | None:
    """``normal(0, 0.1)[d]``; a family that the library does not know is a sampler given in Python."""
    known = registry.get(node.func)
    if known is None and nearest(node.func, registry.all()):
        at = Span(start=node.span.start, end=node.span.start + len(node.func))
        ctx.report(errors.calls.unknown_distribution(node.func, registry.all(), at))
        return None
    if node.func in OF_OTHER_LANGUAGES and known is None:
        at = Span(start=node.span.start, end=node.span.start + len(node.func))
        ctx.report(errors.calls.own_sampler(node.func, OF_OTHER_LANGUAGES[node.func], at))
    if known is None and node.func in sets.all():
        ctx.report(errors.sets.vectors_without_distribution(ctx.quote(node)))
        return None
    args = _parameters(ctx, scope, node, None if known is None else known.parameters)
    if args is None:
        return None
    shape = literals.declared_shape(ctx, scope, items)
    if shape is None:
        return None
    for arg in args:
        if arg.shape and not items:
            shape = arg.shape
        if arg.shape and not shapes.same_shape(ctx, arg.shape, shape):
            ctx.report(errors.shapes.parameter_of_draw(described(ctx, arg), show(shape)))
            return None
        if ir.variables_of(arg):
            ctx.report(errors.reductions.distribution_on_variable(ctx.quote(arg)))
            return None
    drawn = ir.Distribution(
        name=ctx.text(span), family=node.func, args=tuple(args), shape=shape, sampler=known is None
    )
    if signs.are_defined(ctx, domains.of_set(drawn)):
        return BinderRange(set=drawn)
    return None


def _parameters(
    ctx: Context, scope: Scope, node: syntax.Call, parameters: tuple[str, ...] | None
) -> list[ir.Expr] | None:
    """The values of a distribution's parameters in order, or None after an error."""
    parts = list(node.args)
    if node.keywords:
        named = {k.name: k.value for k in node.keywords}
        rest = (parameters or ())[len(parts) :]
        if parameters is None or set(named) != set(rest) or len(named) != len(node.keywords):
            ctx.report(errors.calls.parameters_by_name(ctx.quote(node), node.func, parameters or ()))
            return None
        parts += [named[name] for name in rest]
    if parameters is not None and len(parts) != len(parameters):
        ctx.report(errors.calls.parameters_counted(node.func, parameters, len(parts), node.span))
        return None
    what = "a distribution's parameter"
    return expressions.complete([expressions.number(ctx, scope, p, what, scalar=False) for p in parts])
