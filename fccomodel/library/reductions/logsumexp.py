"""The logarithm of the sum of exponentials, which rewrites make; models write log(sum[i in I] exp(..))."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fccomodel.library.cones import log_sum_exp_by_cell
from fccomodel.library.reductions.base import ONE, Elements, Options, Reduction, Slope, always
from fccomodel.library.reductions.logmeanexp import LOGMEANEXP, LOWEST_EXPONENT

if TYPE_CHECKING:
    import torch


def _value(x: Elements, options: Options) -> torch.Tensor:
    top = x.top().clamp(min=LOWEST_EXPONENT)
    return top + x.total(lambda e, here: (e - here.at(top)).exp()).log()


def _slope(x: Elements, y: torch.Tensor, options: Options) -> Slope:
    """The derivative e^(e - y)."""
    return Slope(lambda e, here: (e - here.at(y)).exp())


LOGSUMEXP = Reduction(
    name="logsumexp",
    meaning="log of the sum of exp(e)",
    tex=r"1 \log \sum_{<over>} e^{<body>}",
    written=False,
    binders=("in", "~"),
    value=_value,
    slope=_slope,
    total=True,
    logarithmic=True,
    cone=lambda k, e, cells, n, options: log_sum_exp_by_cell(k, e, cells, n),
    curvature=always("convex"),
    increasing=True,
    lipschitz=always(ONE),
    bend=always(ONE),
    rule=LOGMEANEXP.rule,
    law=LOGMEANEXP.law,
)
