"""Piecewise linear-quadratic functions of one number, convex or weakly convex.

A function is stored as the graph of its subdifferential.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from math import inf

import numpy as np

from fccomodel.library.piecewise import text


@dataclass(frozen=True, kw_only=True)
class PiecewiseLQ:
    """A closed function f that is quadratic or affine between finitely many points.

    Its slope jumps only upward: f is convex, or f + weak/2 u^2 is.

    points       vertices (x, y) of the graph of f's subdifferential, non-decreasing in x; at a kink
                 two vertices have one x
    left, right  slopes of the graph before the first and after the last vertex; inf if f's domain
                 ends at the vertex
    start        f at the first vertex
    """

    points: tuple[tuple[float, float], ...]
    left: float = 0.0
    right: float = 0.0
    start: float = 0.0

    @property
    def domain(self) -> tuple[float, float]:
        """The interval on which f is finite."""
        low, high = -inf, inf
        if self.left == inf:
            low = self.points[0][0]
        if self.right == inf:
            high = self.points[-1][0]
        return low, high

    @property
    def homogeneous(self) -> bool:
        """Whether f(a u) = a f(u) for a > 0: its only kink is at 0, with linear functions on both sides."""
        at_zero = all(x == 0 for x, _ in self.points)
        return at_zero and self.left == self.right == self.start == 0

    @property
    def slopes(self) -> tuple[float, float]:
        """The interval of all subgradients. For convex f it is the closed domain of the conjugate."""
        ys = [y for _, y in self.points]
        if self.left:
            ys.append(-inf * self.left)
        if self.right:
            ys.append(inf * self.right)
        return min(ys), max(ys)

    @property
    def _rates(self) -> list[float]:
        """The slopes of the graph between vertices of different x."""
        steps = zip(self.points, self.points[1:], strict=False)
        return [(y1 - y0) / (x1 - x0) for (x0, y0), (x1, y1) in steps if x1 > x0]

    @property
    def weak(self) -> float:
        """The least rho >= 0 that makes f + rho/2 u^2 convex."""
        return max(0.0, -self.left, -self.right, *(-rate for rate in self._rates))

    @property
    def kinks(self) -> tuple[float, ...]:
        """Points where the slope of f jumps."""
        steps = zip(self.points, self.points[1:], strict=False)
        return tuple(x0 for (x0, _), (x1, _) in steps if x0 == x1)

    @property
    def lipschitz(self) -> float:
        """The Lipschitz constant of f; inf if there is none."""
        return max(abs(y) for y in self.slopes)

    @property
    def smoothness(self) -> float | None:
        """The Lipschitz constant of the gradient; None if f has a kink or its domain has an end."""
        if inf in (self.left, self.right) or self.kinks:
            return None
        return max(0.0, abs(self.left), abs(self.right), *(abs(rate) for rate in self._rates))

    @property
    def quadratic(self) -> bool:
        """Whether f is a single parabola on all reals."""
        if self.kinks or not 0 < self.left < inf:
            return False
        rates = [self.left, self.right, *self._rates]
        return max(rates) - min(rates) <= 1e-12 * self.left

    def value(self, x: np.ndarray | float) -> np.ndarray:
        """f(x), inf outside the domain; x any shape."""
        x = np.asarray(x, dtype=float)
        xs, ys = np.array(self.points, dtype=float).T
        increases = np.diff(xs) * (ys[1:] + ys[:-1]) / 2
        values = self.start + np.concatenate([[0.0], np.cumsum(increases)])
        at, slope = self._piece(x, xs, ys)
        step = x - xs[at]
        inside = values[at] + step * (ys[at] + slope * step / 2)
        low, high = self.domain
        return np.where((x < low) | (x > high), inf, inside)

    def _piece(self, x: np.ndarray, xs: np.ndarray, ys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The number of the vertex before x (0 if there is none), and the slope of the graph at x."""
        at = np.clip(np.searchsorted(xs, x, side="right") - 1, 0, len(xs) - 1)
        slopes = np.append(_ratios(np.diff(ys), np.diff(xs)), _finite(self.right))
        return at, np.where(x < xs[0], _finite(self.left), slopes[at])

    def subdifferential(self, x: float) -> tuple[float, float]:
        """The least and the largest subgradient at x, a point of the domain."""
        xs = [at for at, _ in self.points]
        if self.left == inf and x <= xs[0]:
            low = -inf
        else:
            low = self._ordinate(x, bisect_left(xs, x))
        if self.right == inf and x >= xs[-1]:
            high = inf
        else:
            high = self._ordinate(x, bisect_right(xs, x))
        return low, high

    def _ordinate(self, x: float, k: int) -> float:
        """The graph's y at x, which lies between vertices k - 1 and k."""
        if k == 0:
            return _on_ray(self.points[0], self.left, x)
        if k == len(self.points):
            return _on_ray(self.points[-1], self.right, x)
        (x0, y0), (x1, y1) = self.points[k - 1], self.points[k]
        if x == x0:
            return y0
        if x == x1:
            return y1
        return y0 + (y1 - y0) * (x - x0) / (x1 - x0)

    def prox(self, x: np.ndarray | float, lam: float) -> np.ndarray:
        """argmin over v of f(v) + (v - x)^2/(2 lam), for lam * weak < 1; x any shape."""
        x = np.asarray(x, dtype=float)
        at, y = np.array(self.points, dtype=float).T
        sheared = at + lam * y
        below = (x - sheared[0]) / (1 + lam * self.left)
        above = (x - sheared[-1]) / (1 + lam * self.right)
        return np.interp(x, sheared, at) + np.minimum(below, 0) + np.maximum(above, 0)

    def gradient(self, x: np.ndarray | float) -> np.ndarray:
        """f'(x), from the right at a kink; x in the domain, any shape."""
        x = np.asarray(x, dtype=float)
        xs, ys = np.array(self.points, dtype=float).T
        at, slope = self._piece(x, xs, ys)
        return ys[at] + slope * (x - xs[at])

    def envelope(self, lam: float) -> PiecewiseLQ:
        """The Moreau envelope, for lam * weak < 1: x -> min over v of f(v) + (v - x)^2/(2 lam)."""
        first_slope = self.points[0][1]
        return PiecewiseLQ(
            points=tuple((x + lam * y, y) for x, y in self.points),
            left=_sheared(self.left, lam),
            right=_sheared(self.right, lam),
            start=self.start + lam / 2 * first_slope**2,
        )

    def conjugate(self) -> PiecewiseLQ:
        """y -> max over x of x y - f(x), for f convex."""
        if self.weak:
            raise ValueError("the conjugate of a function that is not convex is that of its convex hull")
        x, y = self.points[0]
        return PiecewiseLQ(
            points=tuple((y, x) for x, y in self.points),
            left=_reciprocal(self.left),
            right=_reciprocal(self.right),
            start=x * y - self.start,
        )

    def __add__(self, other: PiecewiseLQ) -> PiecewiseLQ:
        low = max(self.domain[0], other.domain[0])
        high = min(self.domain[1], other.domain[1])
        if low > high:
            raise ValueError("the domains of the two functions do not meet")
        ends = {end for end in (low, high) if abs(end) < inf}
        inner = {x for x, _ in (*self.points, *other.points) if low < x < high}
        xs = sorted(inner | ends) or [0.0]
        vertices = []
        for x in xs:
            pairs = zip(self.subdifferential(x), other.subdifferential(x), strict=True)
            sums = {a + b for a, b in pairs}
            ys = sorted({y for y in sums if abs(y) < inf} or {0.0})
            vertices += [(x, y) for y in ys]
        left, right = self.left + other.left, self.right + other.right
        if low == xs[0]:
            left = inf
        if high == xs[-1]:
            right = inf
        start = float(self.value(xs[0]) + other.value(xs[0]))
        return PiecewiseLQ(points=tuple(vertices), left=left, right=right, start=start)

    def scaled(self, factor: float) -> PiecewiseLQ:
        """factor * f, for factor > 0."""
        if not 0 < factor < inf:
            raise ValueError(f"a convex function keeps its convexity under positive factors, not {factor}")
        points = tuple((x, factor * y) for x, y in self.points)
        return PiecewiseLQ(
            points=points, left=factor * self.left, right=factor * self.right, start=factor * self.start
        )

    def shifted(self, *, value: float = 0.0, slope: float = 0.0) -> PiecewiseLQ:
        """x -> f(x) + slope * x + value."""
        points = tuple((x, y + slope) for x, y in self.points)
        start = self.start + slope * self.points[0][0] + value
        return PiecewiseLQ(points=points, left=self.left, right=self.right, start=start)

    def precomposed(self, factor: float, offset: float = 0.0) -> PiecewiseLQ:
        """t -> f(factor * t + offset), for factor != 0."""
        points = tuple(((x - offset) / factor, factor * y) for x, y in self.points)
        left, right = factor**2 * self.left, factor**2 * self.right
        if factor > 0:
            return PiecewiseLQ(points=points, left=left, right=right, start=self.start)
        start = float(self.value(self.points[-1][0]))
        return PiecewiseLQ(points=points[::-1], left=right, right=left, start=start)

    # ----------------------------------------------------------------------------------------- text
    def value_text(self, variable: str = "u") -> str:
        """f at a tensor ``variable``, inf outside the domain."""
        return text.value(self, variable)

    def gradient_text(self, lam: float | str, variable: str = "u") -> str:
        """The gradient of the envelope at a tensor ``variable``, as a sum of clamps.

        ``lam`` is a number or its text.
        """
        return text.gradient(self, lam, variable)

    def envelope_text(self, lam: float | str, variable: str = "u") -> str:
        """The value of the envelope at a tensor ``variable``: the integral of its gradient."""
        return text.envelope(self, lam, variable)

    def prox_text(self, lam: float | str, variable: str = "u") -> str:
        """The prox of lam f at a tensor ``variable``."""
        return f"{variable} - {text.number(lam)} * ({text.gradient(self, lam, variable)})"


def _on_ray(vertex: tuple[float, float], slope: float, x: float) -> float:
    """The ordinate at x of a ray from a vertex; at the vertex the slope may be infinite."""
    at, y = vertex
    if x == at:
        return y
    return y + slope * (x - at)


def _sheared(slope: float, lam: float) -> float:
    """The slope of a segment of the graph after (x, y) becomes (x + lam y, y)."""
    if slope == inf:
        return 1 / lam
    return slope / (1 + lam * slope)


def _finite(slope: float) -> float:
    if slope == inf:
        return 0.0
    return slope


def _reciprocal(slope: float) -> float:
    """1 / slope, with 0 and inf exchanged."""
    if slope == 0:
        return inf
    if slope == inf:
        return 0.0
    return 1 / slope


def _ratios(dy: np.ndarray, dx: np.ndarray) -> np.ndarray:
    return np.divide(dy, dx, out=np.zeros_like(dy), where=dx > 0)
