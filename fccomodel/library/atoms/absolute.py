"""``abs``, and the sign and step that derivatives are written with."""

from fccomodel.library.atoms.base import Properties
from fccomodel.library.atoms.interval import UNIT, Interval, apart
from fccomodel.library.atoms.scalar import ScalarAtom
from fccomodel.library.atoms.shapes import valley


def _flat_off_zero(u: Interval) -> str:
    if u.lo <= 0 <= u.hi:
        return "none"
    return "constant"


abs_ = ScalarAtom(
    name="abs",
    meaning="|u|",
    tex=r"\left\lvert <0> \right\rvert",
    arguments=("u",),
    formula="Abs(u)",
    torch="{0}.abs()",
    derivative=("sign(u)",),
    graph=(((0.0, -1.0), (0.0, 1.0)), 0.0, 0.0),
    conjugate="0",
    squared="square",
    homogeneous=1,
    even=True,
    properties=Properties(
        curvature=lambda u: "affine" if u.lo >= 0 or u.hi <= 0 else "convex",
        monotone=valley,
        lipschitz=1.0,
        gradient_lipschitz=0.0,
        range=lambda u: apart(Interval(u.mig, u.mag), not u.has(0)),
    ),
    instead={
        "smooth": "abs(u) has a kink at 0: use huber(u, delta), or sqrt(u^2 + delta^2).",
        "unsmooth": "make its argument smooth, which makes abs of it weakly convex; or bound it from "
        "both sides by two "
        "constraints.",
    },
)
sign = ScalarAtom(
    name="sign",
    meaning="-1, 0 or 1, as u < 0, u = 0 or u > 0",
    tex=r"\operatorname{sign}(<0>)",
    arguments=("u",),
    formula="sign(u)",
    torch="{0}.sign()",
    derivative=("0",),
    breaks=("0",),
    properties=Properties(
        curvature=_flat_off_zero,
        monotone="increasing",
        lipschitz=lambda u: float("inf") if u.lo <= 0 <= u.hi else 0.0,
        gradient_lipschitz=lambda u: None if u.has(0) else 0.0,
        range=lambda u: Interval((u.lo > 0) - (u.lo < 0), (u.hi > 0) - (u.hi < 0)),
    ),
)
step = ScalarAtom(
    name="step",
    meaning="1 if u > 0, else 0",
    tex=r"\mathbb{1}\{<0> > 0\}",
    arguments=("u",),
    formula="Piecewise((1, u > 0), (0, True))",
    torch="({0} > 0).to({0}.dtype)",
    derivative=("0",),
    breaks=("0",),
    properties=Properties(
        curvature=lambda u: "constant" if u.positive or u.hi <= 0 else "none",
        monotone="increasing",
        lipschitz=lambda u: 0.0 if u.positive or u.hi <= 0 else float("inf"),
        gradient_lipschitz=lambda u: None if u.has(0) else 0.0,
        range=lambda u: UNIT,
    ),
)
