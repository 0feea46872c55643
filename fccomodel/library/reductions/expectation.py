"""The expectation: the mean over draws."""

from fccomodel.library.reductions import _linear
from fccomodel.library.reductions.base import ONE, ZERO, Reduction, always, among

E = Reduction(
    name="E",
    meaning="the mean of the elements drawn, sum e / n",
    tex=r"\mathbb{E}_{<over>}\left[<body>\right]",
    binders=("~",),
    twin="mean",
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
    words={"interval": "an average lies where its members do", "noun": "expectation"},
)
