"""Rules that many atoms share: monotonicity, curvature, ranges, shapes."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, isinf

from fccomodel.library.atoms.base import Shape, ShapeError, show
from fccomodel.library.atoms.interval import Interval


# --------------------------------------------------------------------------------------- properties
def valley(u: Interval, *_: Interval) -> str:
    """The monotonicity of a function with its minimum at 0, such as ``abs`` and ``square``."""
    if u.lo >= 0:
        return "increasing"
    if u.hi <= 0:
        return "decreasing"
    return "none"


def s_curve(u: Interval) -> str:
    """The curvature of an increasing function that is convex below 0 and concave above: ``tanh``,
    ``erf``."""
    if u.hi <= 0:
        return "convex"
    if u.lo >= 0:
        return "concave"
    return "none"


def through(f: Callable[[float], float]) -> Callable[..., Interval]:
    """The range of a strictly increasing function of one argument, from its ends; limits at infinity
    are not attained."""
    return lambda u, *_: Interval(f(u.lo), f(u.hi), u.lo_open or isinf(u.lo), u.hi_open or isinf(u.hi))


def steepest(slope: Callable[[float], float]) -> Callable[..., float]:
    """The largest ``|slope|`` over an interval, for a monotone slope."""
    return lambda u, *_: max(abs(slope(u.lo)), abs(slope(u.hi)))


def safe_exp(x: float) -> float:
    """The exponential; inf beyond the largest float."""
    if x < 700:
        return exp(x)
    return inf


def logistic(x: float) -> float:
    """1/(1 + exp(-x)) for every float, infinite ones too."""
    if x >= 0:
        return 1 / (1 + safe_exp(-x))
    return safe_exp(x) / (1 + safe_exp(x))


# ------------------------------------------------------------------------------------------- shapes
def size(shape: Shape) -> str:
    """The number of entries, as an expression of the modelling language."""
    text = " * ".join(str(n) for n in shape) or "1"
    if len(shape) > 1:
        return f"({text})"
    return text


def array(name: str, scalar: str) -> Callable[[Shape], Shape]:
    """The shape rule for a scalar of one array; ``scalar`` is what to write for a scalar
    argument."""

    def rule(u: Shape) -> Shape:
        """The shape of the value: a number. Raises ``ShapeError`` for a scalar."""
        if not u:
            raise ShapeError(f"{name} takes a vector or a matrix; of a scalar, write {scalar}")
        return ()

    return rule


def vector(name: str, advice: str = "") -> Callable[[Shape], Shape]:
    """The shape rule for a scalar of one vector."""

    def rule(u: Shape, *_: Shape) -> Shape:
        """The shape of the value: a number. Raises ``ShapeError`` unless u is a vector."""
        if len(u) != 1:
            raise ShapeError(f"{name} takes a vector, not {show(u)}" + (f"; {advice}" if advice else ""))
        return ()

    return rule


def matrix(name: str) -> Callable[[Shape], Shape]:
    """The shape rule for a scalar of one matrix."""

    def rule(u: Shape) -> Shape:
        """The shape of the value: a number. Raises ``ShapeError`` unless u is a matrix."""
        if len(u) != 2:
            raise ShapeError(f"{name} takes a matrix, not {show(u)}")
        return ()

    return rule


def vectors(name: str) -> Callable[[Shape, Shape], Shape]:
    """The shape rule for a scalar of two vectors of one length."""

    def rule(u: Shape, v: Shape) -> Shape:
        """The shape of the value: a number. Raises ``ShapeError`` unless both are equal vectors."""
        if len(u) != 1 or len(v) != 1:
            raise ShapeError(f"{name} takes two vectors, not {show(u)} and {show(v)}")
        if u != v:
            raise ShapeError(f"{name} takes vectors of one length, not {show(u)} and {show(v)}")
        return ()

    return rule


def bent(peak: float, second: Callable[[float], float]) -> Callable[[Interval], float]:
    """The largest |f''| over an interval, for an odd f'' whose size rises up to ``peak`` and then
    falls to 0."""

    def rule(u: Interval) -> float:
        """The largest second derivative on an interval."""
        if any(u.lo <= x <= u.hi for x in (-peak, peak)):
            return abs(second(peak))
        return max(abs(second(x)) if abs(x) < 1e3 else 0.0 for x in (u.lo, u.hi))

    return rule
