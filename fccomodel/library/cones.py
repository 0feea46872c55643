"""Conic programs of functions, which atoms, reductions and sets state for the interior-point method.

The value of a convex function is replaced by a variable t and conditions that keep t above it; the
conditions state that affine functions lie in cones. For a concave function t is below the value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any, Protocol

from fccomodel.core.lazy import torch

#: An array of affine functions of the program's variables; it has the linear operations of a tensor.
#: ``upper()`` marks it as an upper bound of a convex function, ``lower()`` as a lower bound of a
#: concave one.
Affine = Any


class Cones(Protocol):
    """A conic program under construction; arrays broadcast, and every condition holds entry by entry."""

    def variable(self, shape: Any) -> Affine:
        """New variables of this shape."""

    def nonneg(self, u: Affine) -> Any:
        """State u >= 0."""

    def zero(self, u: Affine) -> Any:
        """State u == 0."""

    def second_order(self, t: Affine, u: Affine) -> Any:
        """State t >= |u|_2 along the last dimension of u."""

    def exponential(self, x: Affine, y: Affine, z: Affine) -> Any:
        """State y exp(x / y) <= z, y > 0."""

    def power(self, x: Affine, y: Affine, z: Affine, exponent: float) -> Any:
        """State x^a y^(1-a) >= |z|, 0 < a < 1."""

    def quotient(self, t: Affine, y: Affine, u: Affine) -> Any:
        """State t y >= u^2, y >= 0."""

    def semidefinite(self, u: Affine) -> Any:
        """State that symmetric matrices (last two dimensions of u) have no negative eigenvalue."""

    def squares(self, u: Affine) -> Affine:
        """Upper bounds of |u|^2 along the last dimension of u."""

    def powers(self, u: Affine, p: float) -> Affine:
        """Upper bounds of |u|^p, p > 1."""


#: (cones, arguments) -> a bound of the value that is exact at an optimum; None if there is none for
#: these arguments
Cone = Callable[..., Affine | None]


def exponentials(k: Cones, u: Affine) -> Affine:
    """Upper bounds of exp(u)."""
    t = k.variable(u.shape)
    k.exponential(u, 1.0, t)
    return t.upper()


def logarithms(k: Cones, u: Affine) -> Affine:
    """Lower bounds of log(u)."""
    t = k.variable(u.shape)
    k.exponential(t, 1.0, u)
    return t.lower()


def log_sum_exp(k: Cones, u: Affine) -> Affine:
    """Upper bounds of log sum exp(u) along the last dimension."""
    t = k.variable(u.shape[:-1])
    k.nonneg(1.0 - exponentials(k, u - t.unsqueeze(-1)).sum(-1))
    return t.upper()


def log_sum_exp_by_cell(k: Cones, e: Affine, cells: Any, n: Any) -> Affine:
    """Upper bounds of log sum exp(e) over the elements of every cell; ``n`` has one entry per cell."""
    t = k.variable((len(n),))
    k.nonneg(1.0 - exponentials(k, e - t[cells]).gathered(cells, len(n)))
    return t.upper()


def largest(k: Cones, *u: Affine) -> Affine:
    """Upper bounds of the largest of some arrays, entry by entry.

    Of two arrays, an exact one becomes a summand, which saves a condition.
    """
    first, *others = sorted(u, key=lambda part: not getattr(part, "exact", True))
    if len(others) == 1 and getattr(first, "exact", True):
        more = others[0] - first
        s = k.variable(more.shape)
        k.nonneg(s)
        k.nonneg(s - more)
        return (s + first).upper()
    total = u[0]
    for part in u[1:]:
        total = total + part
    t = k.variable(total.shape)
    for part in u:
        k.nonneg(t - part)
    return t.upper()


def norm(k: Cones, kind: str, u: Affine) -> Affine | None:
    """Upper bounds of the norm whose dual norm has a unit ball of this kind; None if it is not known.

    Kinds are box, ball and cross along the last dim; spectral, nuclear and spectraplex of the last two.
    """
    if kind == "ball":
        t = k.variable(u.shape[:-1])
        k.second_order(t, u)
        return t.upper()
    if kind == "box":
        return largest(k, u, -u).sum(-1)
    if kind == "cross":
        t = k.variable(u.shape[:-1])
        for part in (u, -u):
            k.nonneg(t.unsqueeze(-1) - part)
        return t.upper()
    if kind == "spectral":
        return nuclear(k, u)
    if kind == "nuclear":
        return spectral(k, u)
    if kind == "spectraplex":
        return largest_eigenvalue(k, u)
    return None


def spectral(k: Cones, u: Affine) -> Affine:
    """Upper bounds t of the largest singular value: [[t I, u], [u', t I]] has no negative eigenvalue."""
    *outer, n, m = u.shape
    t = k.variable(outer)
    scale = t.unsqueeze(-1).unsqueeze(-1)
    k.semidefinite(blocks((scale * identity(n), u), (u.mT, scale * identity(m))))
    return t.upper()


def largest_eigenvalue(k: Cones, u: Affine) -> Affine:
    """Upper bounds t of the largest eigenvalue of the symmetric part: t I - u has no negative eigenvalue."""
    t = k.variable(u.shape[:-2])
    k.semidefinite(t.unsqueeze(-1).unsqueeze(-1) * identity(u.shape[-1]) - symmetric_part(u))
    return t.upper()


def identity(n: int) -> Any:
    """The identity matrix."""
    return torch.eye(n, dtype=torch.float64)


def symmetric_part(u: Affine) -> Affine:
    """The matrices (u + u') / 2."""
    return (u + u.mT) * 0.5


def blocks(*rows: Sequence[Affine]) -> Affine:
    """A matrix by its blocks."""
    return torch.cat([torch.cat(list(row), -1) for row in rows], -2)


def nuclear(k: Cones, u: Affine) -> Affine:
    """Upper bounds of the sum of singular values.

    It is the least half trace of a symmetric [[A, u], [u', B]] without a negative eigenvalue.
    """
    *outer, n, m = u.shape
    left, right = symmetric(k, outer, n), symmetric(k, outer, m)
    k.semidefinite(blocks((left, u), (u.mT, right)))
    trace = (left * torch.eye(n)).sum((-2, -1)) + (right * torch.eye(m)).sum((-2, -1))
    return (trace * 0.5).upper()


def symmetric(k: Cones, outer: Sequence[int], n: int) -> Affine:
    """New symmetric matrices of variables."""
    i, j = torch.arange(n).unsqueeze(-1), torch.arange(n)
    high, low = torch.maximum(i, j), torch.minimum(i, j)
    return k.variable((*outer, n * (n + 1) // 2))[..., high * (high + 1) // 2 + low]


def triangular(k: Cones, outer: Sequence[int], n: int) -> Affine:
    """New lower triangular matrices of variables."""
    i, j = torch.arange(n).unsqueeze(-1), torch.arange(n)
    places = torch.where(i >= j, i * (i + 1) // 2 + j, 0)
    return k.variable((*outer, n * (n + 1) // 2))[..., places] * (i >= j).to(torch.float64)


def piecewise(k: Cones, graph: tuple, value: Callable[[float], float], u: Affine) -> Affine | None:
    """Upper bounds of a piecewise linear-quadratic function; None if it is not convex.

    ``graph`` is the graph of its subdifferential (see ``ScalarAtom``). u is a point of the graph plus
    steps through the pieces to its right and left. Since f is convex, the optimum takes them in order.
    """
    points, first, last = graph
    slopes = [y for _, y in points]
    if min(first, last) < 0 or any(a > b for a, b in zip(slopes, slopes[1:], strict=False)):
        return None
    start = float(points[0][0])
    base = float(value(points[0][0]))
    # Pieces as (direction, length, slope at the start, rate at which the slope grows).
    pieces = [(-1.0, inf, slopes[0], first)]
    for (x0, y0), (x1, y1) in zip(points, points[1:], strict=False):
        if x1 > x0:
            pieces.append((1.0, x1 - x0, y0, (y1 - y0) / (x1 - x0)))
    pieces.append((1.0, inf, slopes[-1], last))
    pieces = [piece for piece in pieces if piece[3] < inf]
    if len(pieces) == 2 and all(bend == 0 for *_, bend in pieces):
        return largest(k, *((u - start) * slope + base for _, _, slope, _ in pieces))
    rest: Affine = u - start
    total: Affine = base
    for sign, length, slope, bend in pieces:
        v = k.variable(u.shape)
        k.nonneg(v)
        if length < inf:
            k.nonneg(length - v)
        rest = rest - v * sign
        total = v * (sign * slope) + total
        if bend:
            total = k.squares(v.unsqueeze(-1)) * (bend / 2) + total
    k.zero(rest)
    return total.upper()


def heaviest(k: Cones, e: Affine, cells: Any, cap: Any) -> Affine:
    """For every cell the maximum of q.e over {0 <= q <= cap, sum q = 1}.

    It is the least a + sum of cap (e - a)+ over a.
    """
    a = k.variable((len(cap),))
    at = a[cells]
    if bool((cap >= 1).all()):
        k.nonneg(at - e)
        return a.upper()
    s = k.variable(e.shape)
    k.nonneg(s)
    k.nonneg(s - e + at)
    return s.upper().gathered(cells, len(cap)) * cap + a
