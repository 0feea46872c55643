"""The mean over all elements of a set."""

from fccomodel.library.reductions import _linear
from fccomodel.library.reductions.base import ONE, ZERO, Reduction, always, among

MEAN = Reduction(
    name="mean",
    meaning="the mean of all elements, sum e / n",
    tex=r"1 \operatorname*{mean}_{<over>} <body:2>",
    twin="E",
    arrays=True,
    value=_linear.mean,
    slope=_linear.slope_of_mean,
    linear=True,
    degree=1,
    curvature=always("affine"),
    increasing=True,
    homogeneous=True,
    range=among,
    lipschitz=always(ONE),
    bend=always(ZERO),
    settles=True,
    sampled=True,
    rule="expectation",
    law=_linear.AVERAGE,
    words={"interval": "an average lies where its members do", "noun": "mean"},
)
