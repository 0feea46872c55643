"""Constants of a function that need not be known to be known to exist: numbers, and finite ones that only the data will tell."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, isinf, sqrt
from typing import NamedTuple


class Amount(NamedTuple):
    """An upper bound of a nonnegative constant: a number, a finite one that is not known (``SOME``), or none (``NONE``)."""

    value: float
    known: bool = True

    @property
    def finite(self) -> bool:
        return not self.known or self.value < inf

    @property
    def zero(self) -> bool:
        return self.value == 0

    @property
    def number(self) -> float:
        """The bound; inf where it is not known or there is none."""
        return self.value

    def __str__(self) -> str:
        return "finite" if not self.known else f"{self.value:.4g}" if self.value < inf else "unbounded"


ZERO = Amount(0.0)
ONE = Amount(1.0)
SOME = Amount(inf, False)
NONE = Amount(inf)


def amount(value: float | None) -> Amount:
    """A number as an amount; None and inf are ``NONE``."""
    return NONE if value is None or isinf(value) or value != value else Amount(abs(float(value)))


def plus(*terms: Amount) -> Amount:
    """The sum."""
    if any(not t.finite for t in terms):
        return NONE
    return SOME if any(not t.known for t in terms) else amount(sum(t.value for t in terms))


def times(*factors: Amount) -> Amount:
    """The product, where 0 times anything is 0."""
    if any(f.zero for f in factors):
        return ZERO
    if any(not f.finite for f in factors):
        return NONE
    if any(not f.known for f in factors):
        return SOME
    result = 1.0
    for f in factors:
        result *= f.value
    return amount(result)


def rank(a: Amount) -> tuple[bool, bool, float]:
    """Orders amounts: numbers, then a finite unknown, then none."""
    return (not a.finite, not a.known, a.value)


def least(*amounts: Amount) -> Amount:
    """The most telling of several bounds: a number before a finite unknown before none."""
    return min(amounts, key=rank)


def most(*amounts: Amount) -> Amount:
    """A bound of all: the largest."""
    return max(amounts, key=rank, default=ZERO)


def root(a: Amount) -> Amount:
    """The square root."""
    return Amount(sqrt(a.value)) if a.known and a.finite else a


def length(amounts: Iterable[Amount]) -> Amount:
    """The Euclidean norm of a vector of amounts."""
    return root(plus(*(times(a, a) for a in amounts)))
