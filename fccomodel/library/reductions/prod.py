"""The product over all elements of a set."""

from __future__ import annotations

from math import inf

from fccomodel.core.lazy import torch
from fccomodel.library.amounts import NONE, SOME
from fccomodel.library.atoms import Interval
from fccomodel.library.reductions.base import BlockOfElements, Elements, Options, Reduction, Site, Slope
from fccomodel.library.reductions.sum import SUM


def reduce_prod(x, dim, mask=None):
    """The product along ``dim`` of the elements that the mask keeps."""
    if mask is None:
        x = x
    else:
        x = torch.where(mask == 0, torch.ones_like(x), x)
    for d in sorted((dim,) if isinstance(dim, int) else dim, reverse=True):
        x = x.prod(d)
    return x


def slope_prod(x, y, dim, mask=None):
    """The derivative of a product y over x: the product of the other elements."""
    if mask is None:
        x = x
    else:
        x = torch.where(mask == 0, torch.ones_like(x), x)
    zeros = (x == 0).sum(dim, keepdim=True)
    others = torch.where(x == 0, torch.ones_like(x), x)
    rest = others
    for d in (dim,) if isinstance(dim, int) else dim:
        rest = rest.prod(d, keepdim=True)
    slope = torch.where(x == 0, rest * (zeros == 1), rest / others * (zeros == 0))
    if mask is None:
        return slope
    return slope * mask


def _value(x: Elements, options: Options) -> torch.Tensor:
    """The product, from sums of logarithms, so that its derivative is also right at zeros.

    A single factor 0 is kept as a function.
    """
    zeros = x.kept["zeros"] = x.total(lambda e, here: (e == 0).to(e.dtype))
    negative = x.total(lambda e, here: (e < 0).to(e.dtype))
    logs = x.total(lambda e, here: torch.where(e == 0, torch.ones_like(e), e).abs().log())
    sign, nothing = 1 - 2 * (negative % 2), torch.zeros_like(logs)
    rest = x.kept["rest"] = logs.detach().exp() * sign
    whole = torch.where(zeros == 0, torch.where(zeros == 0, logs, nothing).exp() * sign, nothing)
    if not torch.is_grad_enabled() or not bool((zeros == 1).any()):
        return whole
    single = x.total(lambda e, here: torch.where(e == 0, e, torch.zeros_like(e)))
    most = torch.finfo(rest.dtype).max
    return torch.where(zeros == 1, rest.clamp(-most, most) * single, whole)


def _slope(x: Elements, y: torch.Tensor, options: Options) -> Slope:
    """The derivative: the product of the other elements."""
    zeros, rest = x.kept["zeros"], x.kept["rest"]

    def weight(e: torch.Tensor, here: BlockOfElements) -> torch.Tensor:
        """The product of the other elements."""
        zero = e == 0
        others = here.at(rest) / torch.where(zero, torch.ones_like(e), e)
        alone = torch.where(zero, here.at(zeros) == 1, here.at(zeros) == 0)
        return torch.where(alone, others, torch.zeros_like(others))

    return Slope(weight)


def _range(site: Site) -> Interval:
    if site.where.lo < 0:
        return Interval()
    return Interval(0.0, 1.0 if site.where.hi <= 1 else inf, site.where.positive)


def _needs(site: Site) -> tuple[str, str]:
    if site.where.lo >= 0:
        fix = "minimise its logarithm, the sum of the logarithms."
    else:
        fix = ""
    return "a product over a set has a known curvature only where its logarithm has", fix


PROD = Reduction(
    name="prod",
    meaning="the product of all elements",
    tex=r"1 \prod_{<over>} <body:2>",
    scalar="`prod` orders or multiplies numbers.",
    value=_value,
    slope=_slope,
    program=reduce_prod,
    program_slope=slope_prod,
    total=True,
    range=_range,
    rule="product over a set",
    law="A product over a set has a known curvature only where its logarithm, a sum, has.",
    bend=lambda site: SOME if site.compact else NONE,
    through_log=SUM,
    needs=_needs,
)
