"""The variance over draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fccomodel.core import ir
from fccomodel.core.rewrite import apply as make
from fccomodel.library.amounts import Amount, times
from fccomodel.library.atoms import Interval
from fccomodel.library.cones import Affine, Cones
from fccomodel.library.reductions.base import ByMeans, Elements, Options, Reduction, Site, Slope, always

if TYPE_CHECKING:
    import torch


def _value(x: Elements, options: Options) -> torch.Tensor:
    mean = x.kept["mean"] = x.total() / x.count
    return x.total(lambda e, here: (e - here.at(mean)).square()) / x.count


def _slope(x: Elements, y: torch.Tensor, options: Options) -> Slope:
    """The derivative 2 (e - mean) / n."""
    return Slope(lambda e, here: 2 * x.share(here) * (e - here.at(x.kept["mean"])))


def _cone(k: Cones, e: Affine, cells: Any, n: Any, options: Options) -> Affine:
    mean = e.gathered(cells, len(n)) * (1 / n)
    return k.squares((e - mean[cells]).unsqueeze(-1)).gathered(cells, len(n)) * (1 / n)


def _lowered(graph: Any, mean: Callable[[Any], Any], at: Callable[[Any], Any], body: Any) -> Any:
    return mean(graph.apply("square", graph.apply("sub", body, at(mean(body)))))


def _of_means(node: ir.Reduce, mean: Callable[[ir.Expr], ir.Expr]) -> ir.Expr:
    second = mean(make("square", node.body, span=node.body.span))
    return make("sub", second, make("square", mean(node.body)), span=node.span)


def _range(site: Site) -> Interval:
    """The range: the variance is largest with half of the elements at either end."""
    width = site.where.hi - site.where.lo
    return Interval(0.0, width * width / 4)


VARIANCE = Reduction(
    name="variance",
    meaning="the mean of (e - mean)^2 over the elements drawn",
    tex=r"\operatorname{Var}_{<over>}\left[<body>\right]",
    binders=("~",),
    scalar="A vector has a covariance matrix, not one variance.",
    value=_value,
    slope=_slope,
    lowered=_lowered,
    cone=_cone,
    degree=2,
    curvature=always("convex"),
    range=_range,
    lipschitz=lambda site: times(Amount(2.0), site.spread),
    bend=always(Amount(2.0)),
    settles=True,
    sampled=True,
    by_means=ByMeans(
        number=2,
        of=_of_means,
        words="E e^2 - (E e)^2: an outer function f(u) = -u^2 of the tracked mean, and a sampled mean",
    ),
    rule="variance",
    law="The variance of an affine function of the variables is a positive semidefinite quadratic form.",
    words={
        "gradient": "2 C_g^2, and where g is not affine its range times 2 L_g",
        "differentiable": "as its members are",
        "affine": "its body is affine in the variables",
        "lacks": "the variance of a function that is {curvature}, not affine, need not be convex",
        "fix": "take the variance of an affine function, or bound a convex one by E square(..).",
    },
)
