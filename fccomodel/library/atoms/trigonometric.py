"""``sin``, ``cos`` and ``atan``."""

from collections.abc import Callable
from math import atan, ceil, cos, floor, isfinite, pi, sin, sqrt

from fccomodel.library.atoms.base import Properties
from fccomodel.library.atoms.interval import Interval
from fccomodel.library.atoms.scalar import ScalarAtom
from fccomodel.library.atoms.shapes import bent, s_curve, through

#: The largest number whose place in the wave is found; beyond it rounding loses the place.
LARGEST_ANGLE = 1e6


def _half_turn(u: Interval, start: float) -> int | None:
    """The k for which an interval lies between ``start + k pi`` and ``start + (k + 1) pi``, or None."""
    if not isfinite(u.lo) or not isfinite(u.hi) or max(-u.lo, u.hi) > LARGEST_ANGLE:
        return None
    k = floor((u.lo - start) / pi)
    if u.hi <= start + (k + 1) * pi:
        return k
    return None


def _alternating(start: float, even: str, odd: str) -> Callable[[Interval], str]:
    """A property that alternates from one half turn to the next, the first of which begins at ``start``."""

    def rule(u: Interval) -> str:
        """The property on an interval, or none."""
        k = _half_turn(u, start)
        if k is None:
            return "none"
        return odd if k % 2 else even

    return rule


def _values(wave: Callable[[float], float], peak: float) -> Callable[[Interval], Interval]:
    """The range of a wave with its largest value at ``peak``."""

    def has(u: Interval, at: float) -> bool:
        """Whether an interval has ``at`` or a number some full turns away."""
        return at + 2 * pi * ceil((u.lo - at) / (2 * pi)) <= u.hi

    def rule(u: Interval) -> Interval:
        """The range on an interval."""
        if not isfinite(u.lo) or not isfinite(u.hi) or max(-u.lo, u.hi) > LARGEST_ANGLE:
            return Interval(-1.0, 1.0)
        ends = wave(u.lo), wave(u.hi)
        return Interval(-1.0 if has(u, peak + pi) else min(ends), 1.0 if has(u, peak) else max(ends))

    return rule


sin_ = ScalarAtom(
    name="sin",
    meaning="the sine of an angle in radians",
    tex=r"\sin\left(<0>\right)",
    arguments=("u",),
    formula="sin(u)",
    torch="{0}.sin()",
    derivative=("cos(u)",),
    properties=Properties(
        curvature=_alternating(0.0, "concave", "convex"),
        monotone=_alternating(-pi / 2, "increasing", "decreasing"),
        lipschitz=1.0,
        gradient_lipschitz=1.0,
        range=_values(sin, pi / 2),
    ),
)
cos_ = ScalarAtom(
    name="cos",
    meaning="the cosine of an angle in radians",
    tex=r"\cos\left(<0>\right)",
    arguments=("u",),
    formula="cos(u)",
    torch="{0}.cos()",
    derivative=("-sin(u)",),
    even=True,
    properties=Properties(
        curvature=_alternating(-pi / 2, "concave", "convex"),
        monotone=_alternating(0.0, "decreasing", "increasing"),
        lipschitz=1.0,
        gradient_lipschitz=1.0,
        range=_values(cos, 0.0),
    ),
)
atan_ = ScalarAtom(
    name="atan",
    meaning="the angle in radians, between -pi/2 and pi/2, whose tangent is u",
    tex=r"\arctan\left(<0>\right)",
    arguments=("u",),
    formula="atan(u)",
    torch="{0}.atan()",
    derivative=("1 / (1 + u^2)",),
    properties=Properties(
        curvature=s_curve,
        monotone="increasing",
        lipschitz=lambda u: 1 / (1 + min(u.mig, 1e100) ** 2),
        gradient_lipschitz=bent(sqrt(1 / 3), lambda x: 2 * x / (1 + x**2) ** 2),
        range=through(atan),
    ),
)
