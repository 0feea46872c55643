"""Weakly convex sparsity penalties: ``scad`` and ``mcp``."""

from collections.abc import Callable
from math import inf

from fccomodel.library.atoms.base import Properties
from fccomodel.library.atoms.interval import NONNEGATIVE, Interval, product
from fccomodel.library.atoms.scalar import ScalarAtom
from fccomodel.library.atoms.shapes import valley


def _curvature(u: Interval, a: Interval, level: Interval) -> str:
    """The curvature: concave on either side of 0, constant beyond a l."""
    if u.mig >= a.hi * level.hi and level.hi < inf and a.hi < inf:
        return "constant"
    if u.lo >= 0 or u.hi <= 0:
        return "concave"
    return "none"


def _range(top: Callable[[float, float], float]) -> Callable[[Interval, Interval, Interval], Interval]:
    """The range, from 0 to the height of the plateau or to the value that slope l reaches before
    it."""
    return lambda u, a, level: Interval(0.0, min(top(a.hi, level.hi), product(level.hi, u.mag)))


_BEND = "{0}.abs().clamp(min={2}).clamp(max={1} * {2})"

scad = ScalarAtom(
    name="scad",
    meaning="l |u| up to l, then bending (slope (a l - |u|)/(a - 1)), constant l^2 (a + 1)/2 from a l "
    "on; a > 2",
    arguments=("u", "a", "l"),
    parameters=("a", "l"),
    formula="Piecewise((l * Abs(u), Abs(u) <= l), ((2 * a * l * Abs(u) - u**2 - l**2) / (2 * (a - 1)), "
    "Abs(u) <= a * l), "
    "(l**2 * (a + 1) / 2, True))",
    torch=f"({{2}} * {{0}}.abs().clamp(max={{2}})"
    f" + ({_BEND} - {{2}}) * (2 * {{1}} * {{2}} - {_BEND} - {{2}}) / (2 * ({{1}} - 1)))",
    derivative=("sign(u) * min(l, pos(a * l - abs(u)) / (a - 1))",),
    domain=(None, Interval(2.0, inf, lo_open=True), NONNEGATIVE),
    graph=lambda a, b: (((-a * b, 0.0), (-b, -b), (0.0, -b), (0.0, b), (b, b), (a * b, 0.0)), 0.0, 0.0),
    even=True,
    properties=Properties(
        curvature=_curvature,
        monotone=valley,
        lipschitz=lambda u, a, level: level.hi,
        gradient_lipschitz=lambda u, a, level: 1 / (a.lo - 1) if a.lo > 1 else inf,
        weak_convexity=lambda u, a, level: 1 / (a.lo - 1) if a.lo > 1 else inf,
        range=_range(lambda a, level: level**2 * (a + 1) / 2 if level else 0.0),
    ),
    cite="J. Fan, R. Li, Variable selection via nonconcave penalized likelihood, JASA 96 (2001)",
)
mcp = ScalarAtom(
    name="mcp",
    meaning="l |u| - u^2/(2 a) for |u| <= a l, constant a l^2/2 beyond; a > 0",
    arguments=("u", "a", "l"),
    parameters=("a", "l"),
    formula="Piecewise((l * Abs(u) - u**2 / (2 * a), Abs(u) <= a * l), (a * l**2 / 2, True))",
    torch="({0}.abs().clamp(max={1} * {2}) * ({2} - {0}.abs().clamp(max={1} * {2}) / (2 * {1})))",
    derivative=("sign(u) * pos(l - abs(u) / a)",),
    domain=(None, Interval(0.0, inf, lo_open=True), NONNEGATIVE),
    graph=lambda a, l: (((-a * l, 0.0), (0.0, -l), (0.0, l), (a * l, 0.0)), 0.0, 0.0),  # noqa: E741
    even=True,
    properties=Properties(
        curvature=_curvature,
        monotone=valley,
        lipschitz=lambda u, a, level: level.hi,
        gradient_lipschitz=lambda u, a, level: 1 / a.lo if a.lo > 0 else inf,
        weak_convexity=lambda u, a, level: 1 / a.lo if a.lo > 0 else inf,
        range=_range(lambda a, level: a * level**2 / 2 if level else 0.0),
    ),
    cite="C.-H. Zhang, Nearly unbiased variable selection under minimax concave penalty, Annals of "
    "Statistics 38 (2010)",
)
