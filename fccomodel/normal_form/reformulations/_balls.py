"""Duals of maxima over balls of distributions, ``max[q in simplex(K) | kl(q, p) <= r] ..``.

With E the mean by the weights p and risks r_k:

    kl(q, p) <= rho     min over mu >= 0 of mu rho + mu log E exp(r / mu)
    chi2(q, p) <= rho   min over s of s + sqrt(1 + rho) sqrt(E (r - s)_+^2)
    norm1(q - p) / 2 <= rho   min over s of rho max r + (1 - rho) s + E (r - s)_+

(A. Ben-Tal et al., Robust solutions of optimization problems affected by uncertain probabilities, 2013;
J. Duchi and H. Namkoong, Learning models with uniform performance via distributionally robust optimization,
2021, for chi2).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from math import inf
from typing import NamedTuple

from fccomodel.core import ir
from fccomodel.core.rewrite import apply as make
from fccomodel.core.rewrite import const
from fccomodel.library import atoms
from fccomodel.library.atoms import Interval
from fccomodel.library.identities.entries import entry
from fccomodel.library.reductions.logmeanexp import LOGMEANEXP
from fccomodel.library.reductions.max import MAX
from fccomodel.library.reductions.mean import MEAN
from fccomodel.library.reductions.sum import SUM
from fccomodel.normal_form.reformulations._threshold import Thresholds
from fccomodel.numerics.ball_maxima import CHI2, KL, TV

#: The least multiplier of a divergence: the value is at most the radius times it above the largest one.
LEAST_MULTIPLIER = 1e-6


class Ball(NamedTuple):
    """The distributions within a radius of ``reference``, for weights whose index ``k`` is bound.

    generator  of the divergence
    reference  the weights p[k]; None if they are uniform
    """

    generator: str
    reference: ir.Expr | None
    radius: ir.Expr


def recognise(
    condition: ir.Expr, q: ir.Binder, k: ir.Binder, range_of: Callable[[ir.Expr], Interval]
) -> Ball | None:
    """The ball that a condition on the weights q is, or None.

    range_of  the interval of an expression without variables, from the declarations
    """
    match condition:
        case ir.Apply(op="le", args=(measure, radius)) | ir.Apply(op="ge", args=(radius, measure)):
            measured = atoms.divergence_of(measure)
        case _:
            return None
    if measured is None or ir.variables_of(condition) or q in ir.free_binders(radius):
        return None
    generator, weights, reference, unit = measured
    if unit != 1:
        radius = make("div", radius, const(unit), span=radius.span)
    where = range_of(radius)
    allowed = Interval(0.0, 1.0 if DUALS[generator] is _of_tv else inf, True, True)
    if radius.shape or not where.inside(allowed):
        return None
    if not isinstance(weights, ir.Element) or weights.binder is not q or q in ir.free_binders(reference):
        return None
    if is_uniform(reference):
        return Ball(generator, None, radius)
    return Ball(generator, entry(reference, k), radius)


def is_uniform(expr: ir.Expr) -> bool:
    """Whether an expression is ``uniform(K)``: 1 over the number of members."""
    match expr:
        case ir.Apply(op="div", args=(ir.Const(value=1), ir.Size())):
            return True
    return False


def dual(ball: Ball, node: ir.Reduce, common: ir.Reduce, thresholds: Thresholds) -> tuple[str, ir.Expr]:
    """The dual of a maximum ``node`` over a ball, and words for it.

    common  the reduction over the weights' index, with the risk as its body
    """
    return DUALS[ball.generator](ball, node, common, thresholds)


def _of_kl(ball: Ball, node: ir.Reduce, common: ir.Reduce, thresholds: Thresholds) -> tuple[str, ir.Expr]:
    mu = thresholds.new(node, least=LEAST_MULTIPLIER)
    span = common.span
    risk = make("div", common.body, mu, span=common.body.span)
    if ball.reference is not None:
        (k,) = common.binders
        share = make("mul", ir.Size(dim=k.domain.name), ball.reference)
        risk = make("add", risk, make("log", share), span=common.body.span)
    tilt = LOGMEANEXP.over(dataclasses.replace(common, body=risk), theta=const(1))
    inside = make("add", ball.radius, tilt, span=span)
    words = (
        f"min over mu >= {LEAST_MULTIPLIER:g} of mu r + mu log E exp(e / mu), the dual of the KL ball of "
        f"radius r; the bound of mu raises the value by at most {LEAST_MULTIPLIER:g} r"
    )
    return words, make("mul", mu, inside, span=span)


def _of_chi2(ball: Ball, node: ir.Reduce, common: ir.Reduce, thresholds: Thresholds) -> tuple[str, ir.Expr]:
    s, span = thresholds.new(node), common.span
    excess = make("sqhinge", make("sub", common.body, s, span=common.body.span), span=common.body.span)
    deviation = make("sqrt", _mean(ball, common, excess), span=span)
    factor = make("sqrt", make("add", const(1), ball.radius, span=ball.radius.span), span=ball.radius.span)
    words = "min over s of s + sqrt(1 + r) sqrt(E [e - s]_+^2), the dual of the chi-squared ball of radius r"
    return words, make("add", s, make("mul", factor, deviation, span=span), span=span)


def _of_tv(ball: Ball, node: ir.Reduce, common: ir.Reduce, thresholds: Thresholds) -> tuple[str, ir.Expr]:
    s, span, radius = thresholds.new(node), common.span, ball.radius
    excess = make("pos", make("sub", common.body, s, span=common.body.span), span=common.body.span)
    left = make("mul", make("sub", const(1), radius, span=radius.span), s, span=span)
    largest = make("mul", radius, MAX.over(common), span=span)
    words = "min over s of r max e + (1 - r) s + E [e - s]_+, the dual of the ball of radius r of tv"
    rest = make("add", left, _mean(ball, common, excess), span=span)
    return words, make("add", largest, rest, span=span)


def _mean(ball: Ball, common: ir.Reduce, body: ir.Expr) -> ir.Expr:
    """The mean of a body by the weights p."""
    if ball.reference is None:
        return MEAN.over(common, body)
    return SUM.over(common, make("mul", ball.reference, body, span=body.span))


Dual = Callable[[Ball, ir.Reduce, ir.Reduce, Thresholds], tuple[str, ir.Expr]]
#: The duals by the generator of the divergence.
DUALS: dict[str, Dual] = {KL: _of_kl, CHI2: _of_chi2, TV: _of_tv}
