"""The logarithm of the mean exponential: the entropic risk."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any

from fccomodel.core import ir
from fccomodel.core.rewrite import apply as make
from fccomodel.core.rewrite import const
from fccomodel.library.amounts import NONE, SOME, Amount, amount
from fccomodel.library.atoms import Interval
from fccomodel.library.cones import Affine, Cones, log_sum_exp_by_cell
from fccomodel.library.reductions.base import (
    ONE,
    ByMeans,
    Elements,
    Option,
    Options,
    Reduction,
    Site,
    Slope,
    always,
    among,
)

if TYPE_CHECKING:
    import torch

#: the largest of logarithms that are all -inf, so that differences to it are numbers
LOWEST_EXPONENT = -1e300


def _value(x: Elements, options: Options) -> torch.Tensor:
    theta, top = options["theta"], x.top().clamp(min=LOWEST_EXPONENT)
    total = x.total(lambda e, here: ((e - here.at(top)) / theta).exp())
    return top + theta * (total / x.count).log()


def _slope(x: Elements, y: torch.Tensor, options: Options) -> Slope:
    """The derivative e^((e - y) / theta) / n."""
    return Slope(lambda e, here: x.share(here) * ((e - here.at(y)) / options["theta"]).exp())


def _of_mean(node: ir.Reduce, mean: Callable[[ir.Expr], ir.Expr]) -> ir.Expr:
    theta = node.options.get("theta", const(1))
    log = make("log", mean(make("exp", make("div", node.body, theta))), span=node.span)
    return make("mul", theta, log, span=node.span)


def _stable(node: ir.Reduce, log: Callable[[ir.Expr], ir.Expr | None]) -> ir.Expr | None:
    """theta logmeanexp(e / theta), which the streaming of logarithms can take."""
    if "theta" not in node.options:
        return None
    theta = node.options["theta"]
    return make("mul", theta, LOGMEANEXP.over(node, make("div", node.body, theta)), span=node.span)


def _theta(site: Site) -> Interval:
    return site.options.get("theta", Interval.point(1.0))


def _needs(site: Site) -> tuple[str, str]:
    return "theta is not known to be positive" if _theta(site).lo < 0 else "", ""


def _bend(site: Site) -> Amount | None:
    """The bound 1 / theta: the second derivative is a variance over theta."""
    low = _theta(site).lo
    if low < 0:
        return None
    if site.random:
        return NONE
    if low > 0:
        return amount(1 / low)
    return SOME


def _cone(k: Cones, e: Affine, cells: Any, n: Any, options: Options) -> Affine:
    theta = float(options["theta"])
    return log_sum_exp_by_cell(k, e * (1 / theta), cells, n) * theta - theta * n.log()


LOGMEANEXP = Reduction(
    name="logmeanexp",
    meaning="theta log of the mean of exp(e / theta)",
    tex_of_one=r"1 \log \operatorname*{mean}_{<over>} e^{<body>}",
    tex=r"1 <theta:2> \log \operatorname*{mean}_{<over>} e^{<body:2> / <theta:2>}",
    binders=("in", "~"),
    option=Option(name="theta", example="1", domain=(Interval(0.0, inf, lo_open=True),), default=1.0),
    scalar="`logmeanexp` orders or multiplies numbers.",
    value=_value,
    slope=_slope,
    logarithmic=True,
    cone=_cone,
    curvature=always("convex"),
    increasing=True,
    range=among,
    lipschitz=lambda site: NONE if site.random else ONE,
    bend=_bend,
    sampled=True,
    worst=True,
    by_means=ByMeans(
        number=1, of=_of_mean, words="theta log E exp(e / theta): the outer function f(u) = theta log u"
    ),
    stable=_stable,
    rule="log-mean-exp",
    law="t log E e^(g/t) is convex and non-decreasing in g, and as smooth as g.",
    needs=_needs,
    words={
        "bent": "rho_g + C_g^2 / theta",
        "gradient": "L_g + C_g^2 / theta",
        "differentiable": "as smooth as its members",
    },
)
