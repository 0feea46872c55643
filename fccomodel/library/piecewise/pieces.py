"""Continuous piecewise quadratic functions, convex or not, on which compositions are computed.

A piece is (low, high, a, b, c): a x^2 + b x + c between low and high.
"""

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
        at = high if k == 0 else low
        y = f.subdifferential(at)[0 if k == 0 else 1]
        if k == 0:
            slope = f.left
        elif k == len(xs):
            slope = f.right
        else:
            slope = (f.subdifferential(high)[0] - y) / (high - low)
        pieces.append(
            (low, high, slope / 2, y - slope * at, float(f.value(at)) - y * at + slope * at * at / 2)
        )
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
    first, last = pieces[0], pieces[-1]
    if vertices:
        x = vertices[0][0]
    else:
        x = 0.0
    start = (first[2] * x + first[3]) * x + first[4]
    left, right = (0.0 if abs(a) < TOLERANCE else 2 * a for a in (first[2], last[2]))
    return PiecewiseLQ(points=tuple(vertices or [(0.0, first[3])]), left=left, right=right, start=start)


def _roots(a: float, b: float, c: float) -> list[float]:
    """The points where a x^2 + b x + c crosses or touches 0."""
    if a == 0:
        if b == 0:
            return []
        return [-c / b]
    square = b * b - 4 * a * c
    if square < 0:
        return []
    q = -(b + (sqrt(square) if b >= 0 else -sqrt(square))) / 2
    return [q / a] + ([c / q] if q else [])


def _middle(low: float, high: float) -> float:
    if low == -inf:
        if high == inf:
            return 0.0
        return high - 1
    if high == inf:
        return low + 1
    return (low + high) / 2


def _cut(low: float, high: float, at: Sequence[float]) -> list[tuple[float, float]]:
    ends = [low, *sorted({x for x in at if low < x < high}), high]
    return list(zip(ends, ends[1:], strict=False))


def _at(pieces: Pieces, x: float) -> tuple[float, float, float]:
    return next(piece[2:] for piece in pieces if piece[0] <= x <= piece[1])


def _zip(
    f: Pieces, g: Pieces
) -> list[tuple[float, float, tuple[float, float, float], tuple[float, float, float]]]:
    """The coefficients of two functions on their common pieces."""
    spans = _cut(-inf, inf, [piece[0] for piece in (*f, *g)])
    return [(low, high, _at(f, _middle(low, high)), _at(g, _middle(low, high))) for low, high in spans]


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
    """The pointwise maximum or minimum (``better``)."""
    best = functions[0]
    for function in functions[1:]:
        pieces = []
        for low, high, p, q in _zip(best, function):
            for start, stop in _cut(low, high, _roots(*(s - t for s, t in zip(p, q, strict=True)))):
                x = _middle(start, stop)
                pieces.append((start, stop, *better((p, q), key=lambda f: (f[0] * x + f[1]) * x + f[2])))
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
