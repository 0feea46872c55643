"""Continuous piecewise quadratic functions, convex or not, and their sums, products and compositions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, isclose, sqrt

from fccomodel.library.piecewise.function import PiecewiseLQ

TOLERANCE = 1e-9

#: A continuous function as pieces (low, high, a, b, c): a x^2 + b x + c for x from low to high;
#: together they cover the reals.
Pieces = list[tuple[float, float, float, float, float]]


def pieces_of(f: PiecewiseLQ) -> Pieces:
    """The pieces of f, which must be finite everywhere."""
    xs = sorted({x for x, _ in f.points})
    ends = [-inf, *xs, inf]
    pieces = []
    for k, (low, high) in enumerate(zip(ends, ends[1:], strict=False)):
        # y is f's derivative at the point ``at`` of the piece.
        if k == 0:
            at, slope = high, f.left
            y, _ = f.subdifferential(at)
        elif k == len(xs):
            at, slope = low, f.right
            _, y = f.subdifferential(at)
        else:
            at = low
            _, y = f.subdifferential(at)
            slope = (f.subdifferential(high)[0] - y) / (high - low)
        constant = float(f.value(at)) - y * at + slope * at * at / 2
        pieces.append((low, high, slope / 2, y - slope * at, constant))
    return pieces


def weakly_convex(pieces: Pieces) -> PiecewiseLQ | None:
    """The function as a PiecewiseLQ, or None if a kink points downward."""
    scale = max([1.0, *(abs(b) for *_, b, _ in pieces)])
    vertices: list[tuple[float, float]] = []
    for (_, x, a0, b0, _), (_, _, a1, b1, _) in zip(pieces, pieces[1:], strict=False):
        y0, y1 = 2 * a0 * x + b0, 2 * a1 * x + b1
        if y1 < y0 - TOLERANCE * scale * max(1.0, abs(x)):
            return None
        if isclose(y0, y1, rel_tol=TOLERANCE, abs_tol=TOLERANCE * scale):
            if not isclose(a0, a1, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
                vertices.append((x, y0))
        else:
            vertices += [(x, y0), (x, y1)]
    _, _, a, b, c = pieces[0]
    if not vertices:
        vertices = [(0.0, b)]
    x, _ = vertices[0]
    return PiecewiseLQ(
        points=tuple(vertices),
        left=_rate(a),
        right=_rate(pieces[-1][2]),
        start=(a * x + b) * x + c,
    )


def _rate(a: float) -> float:
    """The slope of the derivative of a x^2, and 0 for a within the tolerance."""
    if abs(a) < TOLERANCE:
        return 0.0
    return 2 * a


def _roots(a: float, b: float, c: float) -> list[float]:
    """The points where a x^2 + b x + c crosses or touches 0."""
    if a == 0:
        if b == 0:
            return []
        return [-c / b]
    square = b * b - 4 * a * c
    if square < 0:
        return []
    if b >= 0:
        q = -(b + sqrt(square)) / 2
    else:
        q = -(b - sqrt(square)) / 2
    if q:
        return [q / a, c / q]
    return [q / a]


def _middle(low: float, high: float) -> float:
    """A point between low and high, which may be infinite."""
    if low == -inf:
        if high == inf:
            return 0.0
        return high - 1
    if high == inf:
        return low + 1
    return (low + high) / 2


def _cut(low: float, high: float, at: Sequence[float]) -> list[tuple[float, float]]:
    """The intervals into which some points cut an interval."""
    ends = [low, *sorted({x for x in at if low < x < high}), high]
    return list(zip(ends, ends[1:], strict=False))


def _at(pieces: Pieces, x: float) -> tuple[float, float, float]:
    """The coefficients of the piece that contains x."""
    return next(piece[2:] for piece in pieces if piece[0] <= x <= piece[1])


def _zip(
    f: Pieces, g: Pieces
) -> list[tuple[float, float, tuple[float, float, float], tuple[float, float, float]]]:
    """The coefficients of two functions on their common pieces."""
    common = []
    for low, high in _cut(-inf, inf, [piece[0] for piece in (*f, *g)]):
        x = _middle(low, high)
        common.append((low, high, _at(f, x), _at(g, x)))
    return common


def add(f: Pieces, g: Pieces) -> Pieces:
    """The sum of two functions."""
    return [(low, high, p[0] + q[0], p[1] + q[1], p[2] + q[2]) for low, high, p, q in _zip(f, g)]


def product(f: Pieces, g: Pieces) -> Pieces | None:
    """The product of two functions, or None if a piece is no longer quadratic."""
    pieces = []
    for low, high, (a, b, c), (p, q, r) in _zip(f, g):
        if a * p or a * q + b * p:
            return None
        pieces.append((low, high, a * r + b * q + c * p, b * r + c * q, c * r))
    return pieces


def extreme(better: Callable, functions: Sequence[Pieces]) -> Pieces:
    """The pointwise maximum or minimum of functions; ``better`` is ``max`` or ``min``."""
    best = functions[0]
    for function in functions[1:]:
        pieces = []
        for low, high, p, q in _zip(best, function):
            crossings = _roots(p[0] - q[0], p[1] - q[1], p[2] - q[2])
            for start, stop in _cut(low, high, crossings):
                x = _middle(start, stop)
                chosen = better((p, q), key=lambda f: (f[0] * x + f[1]) * x + f[2])
                pieces.append((start, stop, *chosen))
        best = pieces
    return best


def compose(outer: Pieces, inner: Pieces) -> Pieces | None:
    """The composition outer(inner(x)), or None if a piece is no longer quadratic."""
    pieces = []
    for low, high, a, b, c in inner:
        breaks = [x for piece in outer[1:] for x in _roots(a, b, c - piece[0])]
        for start, stop in _cut(low, high, breaks):
            x = _middle(start, stop)
            p, q, r = _at(outer, (a * x + b) * x + c)
            if p and a:
                return None
            pieces.append((start, stop, p * b * b + q * a, 2 * p * b * c + q * b, (p * c + q) * c + r))
    return pieces
