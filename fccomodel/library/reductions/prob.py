"""The probability of an event: the share of the draws that satisfy a condition."""

from fccomodel.library.atoms import Interval
from fccomodel.library.reductions import _linear
from fccomodel.library.reductions.base import ONE, ZERO, Reduction, Site, always


def _needs(site: Site) -> tuple[str, str]:
    fix = (
        "replace prob[..] (a > b) by E[..] sigmoid((a - b) / h), a smooth surrogate, or by a convex "
        "one: E[..] hinge(..)."
    )
    return "prob of an event that depends on the variables jumps or is flat", fix


PROB = Reduction(
    name="prob",
    meaning="the share of the elements drawn that satisfy a condition",
    tex=r"\Pr_{<over>}\left[<body>\right]",
    binders=("~",),
    condition=True,
    value=_linear.mean,
    slope=_linear.slope_of_mean,
    linear=True,
    degree=1,
    curvature=always("affine"),
    increasing=True,
    homogeneous=True,
    domain=Interval(0.0, 1.0),
    range=always(Interval(0.0, 1.0)),
    lipschitz=always(ONE),
    bend=always(ZERO),
    sampled=True,
    rule="probability",
    law="A probability of an event that depends on the variables jumps, or has no curvature known here.",
    needs=_needs,
    words={"unknown": "probability"},
)
