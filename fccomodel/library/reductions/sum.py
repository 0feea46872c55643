"""The sum over all elements of a set."""

from math import inf

from fccomodel.library.amounts import SOME, Amount, amount
from fccomodel.library.atoms import Interval
from fccomodel.library.reductions import _linear
from fccomodel.library.reductions.base import ZERO, Reduction, Site, always


def _number(site: Site) -> Amount:
    if site.count < inf:
        return amount(site.count)
    return SOME


def _range(site: Site) -> Interval:
    """The range: n times an element's if all take part; with a condition it also covers smaller
    sums."""
    low, high = site.where.lo, site.where.hi
    if low != 0:
        if site.every or low < 0:
            lo = low * site.count
        else:
            lo = 0.0
    else:
        lo = 0.0
    if high != 0:
        if site.every or high > 0:
            hi = high * site.count
        else:
            hi = 0.0
    else:
        hi = 0.0
    return Interval(lo, hi, site.where.positive and lo == 0, site.where.negative and hi == 0)


SUM = Reduction(
    name="sum",
    meaning="the sum of all elements",
    tex=r"1 \sum_{<over>} <body:2>",
    arrays=True,
    value=_linear.total,
    slope=_linear.slope_of_total,
    linear=True,
    total=True,
    degree=1,
    curvature=always("affine"),
    increasing=True,
    homogeneous=True,
    range=_range,
    lipschitz=_number,
    bend=always(ZERO),
    sampled=True,
    rule="total",
    law="A sum over a set keeps the curvature of its members; constants are those of a member times "
    "their number.",
)
