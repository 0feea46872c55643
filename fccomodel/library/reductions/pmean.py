"""The power mean."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

from fccomodel.core import ir
from fccomodel.core.lazy import torch
from fccomodel.core.rewrite import apply as make
from fccomodel.core.rewrite import const
from fccomodel.library.amounts import NONE, ONE, SOME, Amount
from fccomodel.library.atoms import Interval
from fccomodel.library.cones import Affine, Cones
from fccomodel.library.reductions.base import (
    BlockOfElements,
    ByMeans,
    Elements,
    Option,
    Options,
    Reduction,
    Site,
    Slope,
)
from fccomodel.library.reductions.logmeanexp import LOGMEANEXP
from fccomodel.library.reductions.tails import counted


def reduce_pmean(x, dim, p, mask=None):
    """The power mean of exponent ``p`` along ``dim`` of the elements that the mask keeps."""
    power = x.pow(p)
    return (
        power.mean(dim) if mask is None else (power * mask).sum(dim) / counted(x, dim, mask).sum(dim)
    ).pow(1 / p)


def slope_pmean(x, y, dim, p, mask=None):
    """The derivative of a power mean y over x: (x / y)^(p - 1) / n, 0 where y is 0."""
    slope = torch.where(
        y == 0, torch.zeros_like(x), (x / torch.where(y == 0, torch.ones_like(y), y)).pow(p - 1)
    )
    if mask is None:
        return slope / counted(x, dim, mask)
    return slope * mask / counted(x, dim, mask)


def _value(x: Elements, options: Options) -> torch.Tensor:
    p = options["p"]
    return (x.total(lambda e, here: e**p) / x.count) ** (1 / p)


def _slope(x: Elements, y: torch.Tensor, options: Options) -> Slope:
    """The derivative (e / y)^(p - 1) / n."""
    p = options["p"]

    def weight(e: torch.Tensor, here: BlockOfElements) -> torch.Tensor:
        """The derivative of the mean in each element."""
        at = here.at(y)
        return x.share(here) * torch.where(at == 0, torch.zeros_like(at), at ** (1 - p)) * e ** (p - 1)

    return Slope(weight)


def _of_mean(node: ir.Reduce, mean: Callable[[ir.Expr], ir.Expr]) -> ir.Expr:
    p = node.options["p"]
    return make("pow", mean(make("pow", node.body, p)), make("div", const(1), p), span=node.span)


def _stable(node: ir.Reduce, log: Callable[[ir.Expr], ir.Expr | None]) -> ir.Expr | None:
    """exp(logmeanexp(p log e) / p), or None for low powers, where the plain mean does not
    overflow."""
    p = node.options["p"]
    if isinstance(p, ir.Const) and p.value <= 2 or (body := log(node.body)) is None:
        return None
    return make("exp", make("div", LOGMEANEXP.over(node, make("mul", p, body)), p), span=node.span)


def _power(site: Site) -> Interval:
    return site.options.get("p", Interval.point(1.0))


def _cone(k: Cones, e: Affine, cells: Any, n: Any, options: Options) -> Affine | None:
    """The conic program by cell: the least t n^(-1/p) with sum r <= t and r^(1/p) t^(1 - 1/p) >= s
    >= e."""
    p = float(options["p"])
    if p < 1:
        return None
    s, r, t = k.variable(e.shape), k.variable(e.shape), k.variable((len(n),))
    k.nonneg(s)
    k.nonneg(s - e)
    if p == 1:
        k.zero(r - s)
    elif p == 2:
        k.quotient(r, t[cells], s)
    else:
        k.power(r, t[cells], s, 1 / p)
    k.nonneg(t - r.gathered(cells, len(n)))
    return t.upper() * n ** (-1 / p)


def _curvature(site: Site) -> str:
    power = _power(site)
    if power.lo >= 1:
        return "convex"
    if 0 < power.lo and power.hi <= 1:
        return "concave"
    return "none"


def _needs(site: Site) -> tuple[str, str]:
    if site.where.lo < 0:
        return (
            "its members are not known to be nonnegative",
            "make the members nonnegative: pos(..), abs(..).",
        )
    if _curvature(site) == "none":
        return "its p is not known to be at least 1, or in (0, 1]", "give the param p bounds: p >= 1."
    return "", ""


def _bend(site: Site) -> Amount | None:
    """No bound: a norm has a kink at 0."""
    if site.where.positive:
        if site.compact:
            return SOME
        return NONE
    return None


PMEAN = Reduction(
    name="pmean",
    meaning="the power mean, (mean of e^p)^(1/p), of elements that are not negative",
    tex=r"\Bigl(\operatorname*{mean}_{<over>} <body:4>^{<p>}\Bigr)^{1/<p:4>}",
    binders=("in", "~"),
    option=Option(name="p", example="2", domain=(Interval(1.0, inf),)),
    scalar="`pmean` orders or multiplies numbers.",
    value=_value,
    slope=_slope,
    program=reduce_pmean,
    program_slope=slope_pmean,
    cone=_cone,
    curvature=_curvature,
    increasing=True,
    homogeneous=True,
    domain=Interval(0.0, inf),
    range=lambda site: site.where if site.where.lo >= 0 else Interval(),
    lipschitz=lambda site: ONE if _power(site).lo >= 1 else NONE,
    bend=_bend,
    sampled=True,
    by_means=ByMeans(number=1, of=_of_mean, words="(E e^p)^(1/p): the outer function f(u) = u^(1/p)"),
    stable=_stable,
    rule="power mean",
    law="(E g^p)^(1/p) is a norm of g >= 0 for p >= 1: convex and non-decreasing.",
    needs=_needs,
    words={"differentiable": "its members are smooth and positive", "kink": "a norm has a kink at 0"},
)
