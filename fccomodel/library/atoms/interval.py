"""Intervals of the real line, which contain the values of arguments."""

from __future__ import annotations

from math import inf, isinf
from typing import NamedTuple


class Interval(NamedTuple):
    """The reals from ``lo`` to ``hi``; an end is left out where its ``open`` flag says so (infinite
    ends always are)."""

    lo: float = -inf
    hi: float = inf
    lo_open: bool = False
    hi_open: bool = False

    @classmethod
    def point(cls, x: float) -> Interval:
        """The single number ``x``."""
        return cls(x, x)

    @property
    def is_point(self) -> bool:
        """Whether the interval is a single number."""
        return self.lo == self.hi

    @property
    def mag(self) -> float:
        """The largest ``|x|`` in the interval."""
        return max(abs(self.lo), abs(self.hi))

    @property
    def mig(self) -> float:
        """The smallest ``|x|`` in the closure."""
        if self.lo <= 0 <= self.hi:
            return 0.0
        return min(abs(self.lo), abs(self.hi))

    @property
    def positive(self) -> bool:
        """Whether every member is > 0."""
        return self.lo > 0 or (self.lo == 0 and self.lo_open)

    @property
    def negative(self) -> bool:
        """Whether every member is < 0."""
        return self.hi < 0 or (self.hi == 0 and self.hi_open)

    def has(self, x: float) -> bool:
        """Whether ``x`` is a member."""
        above = self.lo < x or (self.lo == x and not self.lo_open)
        return above and (x < self.hi or (x == self.hi and not self.hi_open))

    def inside(self, other: Interval) -> bool:
        """Whether the interval is a subset of ``other``."""
        low = self.lo > other.lo or (
            self.lo == other.lo and (self.lo_open or not other.lo_open or isinf(self.lo))
        )
        high = self.hi < other.hi or (
            self.hi == other.hi and (self.hi_open or not other.hi_open or isinf(self.hi))
        )
        return low and high

    def disjoint(self, other: Interval) -> bool:
        """Whether the interval and ``other`` have no common member."""
        return (
            self.hi < other.lo
            or other.hi < self.lo
            or (self.hi == other.lo and (self.hi_open or other.lo_open))
            or (other.hi == self.lo and (other.hi_open or self.lo_open))
        )

    def meet(self, other: Interval) -> Interval:
        """The intersection, or ``other`` if it is empty; infinite ends are marked open."""
        if self.disjoint(other):
            return other
        first, last = max(self.lo, other.lo), min(self.hi, other.hi)
        low = isinf(first) or any(u.lo == first and u.lo_open for u in (self, other))
        high = isinf(last) or any(u.hi == last and u.hi_open for u in (self, other))
        return Interval(first, last, low, high)

    def __str__(self) -> str:
        left = "(" if self.lo_open or isinf(self.lo) else "["
        right = ")" if self.hi_open or isinf(self.hi) else "]"
        return f"{left}{self.lo:g}, {self.hi:g}{right}"


REALS = Interval()
NONNEGATIVE = Interval(0.0, inf)
POSITIVE = Interval(0.0, inf, lo_open=True)
UNIT = Interval(0.0, 1.0)


def product(a: float, b: float) -> float:
    """``a * b`` with 0 * inf = 0, as needed for the ends of intervals."""
    if a == 0 or b == 0:
        return 0.0
    return a * b


def apart(u: Interval, holds: bool) -> Interval:
    """The interval with 0 as an open end, if it ``holds`` that no member is 0."""
    if holds:
        return u._replace(lo_open=u.lo_open or u.lo == 0, hi_open=u.hi_open or u.hi == 0)
    return u


def times(u: Interval, v: Interval) -> Interval:
    """The interval of products of the members; ends count as closed, except at 0."""
    ends = [product(a, b) for a in u[:2] for b in v[:2]]
    return apart(Interval(min(ends), max(ends)), not u.has(0) and not v.has(0))


def hull(*intervals: Interval) -> Interval:
    """The smallest interval that covers all of them."""
    return Interval(min(i.lo for i in intervals), max(i.hi for i in intervals))
