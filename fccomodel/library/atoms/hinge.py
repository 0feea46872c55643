"""``pos`` (the hinge), its square, and its smoothing."""

from math import inf

from fccomodel.library.atoms.base import Properties
from fccomodel.library.atoms.interval import Interval
from fccomodel.library.atoms.scalar import ScalarAtom


def _positive(u: Interval) -> Interval:
    return Interval(max(u.lo, 0.0), max(u.hi, 0.0))


def _smoothed(x: float, delta: float) -> float:
    if x <= 0 or delta == inf:
        return 0.0
    if x >= delta:
        return x - delta / 2
    return x * x / (2 * delta)


def _pos_curvature(u: Interval) -> str:
    if u.hi <= 0:
        return "constant"
    if u.lo >= 0:
        return "affine"
    return "convex"


pos = ScalarAtom(
    name="pos",
    meaning="max(0, u)",
    tex=r"\left[<0>\right]_{+}",
    arguments=("u",),
    aliases=("hinge", "relu"),
    formula="Max(0, u)",
    torch="{0}.relu()",
    derivative=("step(u)",),
    graph=(((0.0, 0.0), (0.0, 1.0)), 0.0, 0.0),
    conjugate="0",
    squared="sqhinge",
    homogeneous=1,
    properties=Properties(
        curvature=_pos_curvature,
        monotone=lambda u: "constant" if u.hi <= 0 else "increasing",
        lipschitz=lambda u: 0.0 if u.hi <= 0 else 1.0,
        gradient_lipschitz=0.0,
        range=_positive,
    ),
    instead={
        "smooth": "pos(u) has a kink at 0: use smooth_hinge(u, delta), log1pexp(u) or sqhinge(u).",
        "convex": "pos(u) is convex for convex u: of a concave u, bound -u instead.",
    },
)
sqhinge = ScalarAtom(
    name="sqhinge",
    meaning="max(0, u)^2",
    tex=r"3 \left[<0>\right]_{+}^{2}",
    arguments=("u",),
    formula="Max(0, u) ** 2",
    torch="{0}.relu().square()",
    derivative=("2 * pos(u)",),
    graph=(((0.0, 0.0),), 0.0, 2.0),
    conjugate="s^2 / 4",
    homogeneous=2,
    near="sqhinge(u - r)",
    properties=Properties(
        curvature=lambda u: "constant" if u.hi <= 0 else "convex",
        monotone=lambda u: "constant" if u.hi <= 0 else "increasing",
        lipschitz=lambda u: 2 * max(u.hi, 0.0),
        gradient_lipschitz=lambda u: 0.0 if u.hi <= 0 else 2.0,
        range=lambda u: Interval(max(u.lo, 0.0) ** 2, max(u.hi, 0.0) ** 2),
    ),
    instead={"convex": "sqhinge(u) is convex for convex u: of a concave u, bound -u instead."},
)


def _smooth_hinge_curvature(u: Interval, delta: Interval) -> str:
    if u.hi <= 0:
        return "constant"
    if u.lo >= delta.hi:
        return "affine"
    return "convex"


def _smooth_hinge_steepness(u: Interval, delta: Interval) -> float:
    if u.hi <= 0:
        return 0.0
    if delta.lo > 0:
        return min(1.0, u.hi / delta.lo)
    return 1.0


def _smooth_hinge_bend(u: Interval, delta: Interval) -> float:
    if u.hi <= 0 or u.lo >= delta.hi:
        return 0.0
    if delta.lo > 0:
        return 1 / delta.lo
    return inf


smooth_hinge = ScalarAtom(
    name="smooth_hinge",
    meaning="0 for u <= 0, u^2/(2 delta) up to delta, u - delta/2 beyond: the Moreau envelope of pos",
    arguments=("u", "delta"),
    parameters=("delta",),
    formula="Piecewise((0, u <= 0), (u**2 / (2 * delta), u <= delta), (u - delta / 2, True))",
    torch="({0}.relu().clamp(max={1}) * ({0} - {0}.relu().clamp(max={1}) / 2) / {1})",
    derivative=("clip(u / delta, 0, 1)",),
    domain=(None, Interval(0.0, inf, lo_open=True)),
    graph=lambda delta: (((0.0, 0.0), (delta, 1.0)), 0.0, 0.0),
    conjugate="delta * s^2 / 2",
    properties=Properties(
        curvature=_smooth_hinge_curvature,
        monotone=lambda u, delta: "constant" if u.hi <= 0 else "increasing",
        lipschitz=_smooth_hinge_steepness,
        gradient_lipschitz=_smooth_hinge_bend,
        range=lambda u, delta: Interval(_smoothed(u.lo, delta.hi), _smoothed(u.hi, max(delta.lo, 0.0))),
    ),
)
