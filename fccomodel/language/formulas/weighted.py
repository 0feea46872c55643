"""Draws by weight: ``E[z ~ D by z.p] u`` is ``(E[z ~ D] z.p * u) / (E[z ~ D] z.p)``.

The weights w are data of at least 0, not all 0; they need not sum to 1. With P u for that quotient:

    E          P u
    variance   P (u - P u)^2
    std        its root
    logmeanexp theta logmeanexp[..] (u + theta log w) - theta log E w, where w > 0

The quotient's denominator depends on no variable, so rows may be sampled evenly and the estimate of the
numerator is unbiased.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from fccomodel.core import ir
from fccomodel.core.rewrite import apply as make
from fccomodel.core.rewrite import conjunction, const, substitute
from fccomodel.language import errors, syntax
from fccomodel.language.formulas import expressions, risks, signs
from fccomodel.language.formulas.context import Context, Scope
from fccomodel.library.reductions.expectation import E
from fccomodel.library.reductions.logmeanexp import LOGMEANEXP
from fccomodel.library.reductions.variance import VARIANCE


def has_weights(node: syntax.Reduce) -> bool:
    """Whether a reduction draws by weight."""
    return node.indexing is not None and any(one.weight is not None for one in node.indexing.binders)


def weight_of(ctx: Context, scope: Scope, binders: Sequence[syntax.Binder]) -> ir.Expr | None:
    """The product of the weights of some binders, each at least 0; None after an error.

    The sign of weights that come with the data is checked when these are bound.
    """
    product: ir.Expr | None = None
    for binder in binders:
        if binder.weight is None:
            continue
        value = expressions.number(ctx, scope, binder.weight, "a weight")
        if value is None or not _is_fixed(ctx, value):
            return None
        if signs.interval(ctx, value).hi < 0:
            ctx.report(errors.reductions.negative_weight(ctx.quote(value)))
            return None
        factor = signs.nonnegative(ctx, value)
        product = factor if product is None else make("mul", product, factor, span=product.span | value.span)
    return product


def _is_fixed(ctx: Context, weight: ir.Expr) -> bool:
    """Whether a weight depends on no variable. Reports an error if it does."""
    if ir.variables_of(weight):
        ctx.report(errors.reductions.weight_on_variable(ctx.quote(weight)))
        return False
    return True


def reduced(ctx: Context, node: syntax.Reduce, plain: ir.Reduce, weight: ir.Expr) -> ir.Expr | None:
    """The reduction ``plain`` of elements with a weight; None after an error."""
    form = _FORMS.get(plain.kind)
    if form is None:
        ctx.report(errors.reductions.no_weighted_form(ctx.quote(node), node.kind, _FORMS))
        return None
    return form(ctx, plain, weight)


def _average(ctx: Context, plain: ir.Reduce, weight: ir.Expr) -> ir.Expr:
    """The quotient of two expectations."""
    top = E.over(plain, make("mul", weight, plain.body, span=plain.body.span))
    return make("div", top, _total(plain, weight), span=plain.span)


def _total(plain: ir.Reduce, weight: ir.Expr) -> ir.Expr:
    """The expectation of the weights, which has their place in the text."""
    return dataclasses.replace(E.over(plain, weight), shape=(), span=weight.span)


def _variance(ctx: Context, plain: ir.Reduce, weight: ir.Expr) -> ir.Expr:
    """The weighted mean of the squared distance to the weighted mean, whose binders are other ones."""
    elements: dict[ir.Binder, ir.Expr] = {}
    others: list[ir.Binder] = []
    for binder in plain.binders:
        domain = binder.domain
        if isinstance(domain, ir.Distribution):
            args = tuple(substitute(arg, elements) for arg in domain.args)
            domain = dataclasses.replace(domain, args=args)
        others.append(dataclasses.replace(binder, domain=domain))
        elements[binder] = ir.Element(binder=others[-1])
    inner = dataclasses.replace(
        plain,
        binders=tuple(others),
        body=substitute(plain.body, elements),
        condition=None if plain.condition is None else substitute(plain.condition, elements),
    )
    middle = _average(ctx, inner, substitute(weight, elements))
    distance = make("sub", plain.body, middle, span=plain.body.span)
    square = make("square", distance, span=plain.span)
    return _average(ctx, dataclasses.replace(plain, body=square), weight)


def _entropic(ctx: Context, plain: ir.Reduce, weight: ir.Expr) -> ir.Expr:
    """The logarithm of the weighted mean exponential, by adding the logarithms of the weights.

    Rows of weight 0 are left out, since the logarithm of 0 is none.
    """
    if signs.interval(ctx, weight).lo <= 0:
        is_drawn = make("gt", weight, const(0), span=weight.span)
        plain = dataclasses.replace(plain, condition=conjunction([plain.condition, is_drawn]))
    theta = plain.options["theta"]
    lifted = make("add", plain.body, make("mul", theta, make("log", weight, span=weight.span)))
    log_total = make("log", _total(plain, weight), span=weight.span)
    total = risks.with_theta_outside(ctx, LOGMEANEXP.over(plain, lifted, theta=theta))
    return make("sub", total, make("mul", theta, log_total), span=plain.span)


_FORMS: dict[str, Callable[[Context, ir.Reduce, ir.Expr], ir.Expr]] = {
    E.name: _average,
    VARIANCE.name: _variance,
    LOGMEANEXP.name: _entropic,
}
