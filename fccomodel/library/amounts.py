"""Upper bounds that may be numbers, finite but unknown until data arrive, or absent."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, isinf, prod, sqrt
from typing import NamedTuple


class Amount(NamedTuple):
    """An upper bound of a nonnegative constant: a number, a finite one that is not known (``SOME``),
    or none (``NONE``).

    rounding   what the constant may be larger by, because rounding was forgiven where it was found;
               inf where that is not known.
               Sums, products and maxima carry it: who proves something by the constant adds it.
    """

    value: float
    known: bool = True
    rounding: float = 0.0

    @property
    def finite(self) -> bool:
        """Whether the bound exists, as a number or as an unknown finite number."""
        return not self.known or self.value < inf

    @property
    def zero(self) -> bool:
        """Whether the bound is exactly 0."""
        return self.value == 0

    @property
    def number(self) -> float:
        """The bound; inf where it is not known or there is none."""
        return self.value

    def __str__(self) -> str:
        if not self.known:
            return "finite"
        if self.value < inf:
            return f"{self.value:.4g}"
        return "unbounded"


ZERO = Amount(0.0)
ONE = Amount(1.0)
SOME = Amount(inf, False)
NONE = Amount(inf)


def amount(value: float | None) -> Amount:
    """Turn a number into an amount; None and inf become ``NONE``."""
    if value is None or isinf(value) or value != value:
        return NONE
    return Amount(abs(float(value)))


def plus(*terms: Amount) -> Amount:
    """The sum of two amounts."""
    if any(not t.finite for t in terms):
        return NONE
    if any(not t.known for t in terms):
        total = SOME
    else:
        total = amount(sum(t.value for t in terms))
    return rounded(total, sum(t.rounding for t in terms))


def times(*factors: Amount) -> Amount:
    """The product of amounts, with 0 times anything equal to 0."""
    if any(f.rounding for f in factors):
        exact = times(*(f._replace(rounding=0.0) for f in factors))
        return rounded(
            exact, _product(*(f.value + f.rounding for f in factors)) - exact.value if exact.finite else 0.0
        )
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


def _product(*factors: float) -> float:
    """The product, where 0 times anything is 0."""
    if 0.0 in factors:
        return 0.0
    return prod(factors)


def rounded(a: Amount, rounding: float) -> Amount:
    """The amount with this rounding instead of its own; an unknown amount stays as it is."""
    if rounding and a.finite and a.known:
        return a._replace(rounding=rounding if rounding == rounding else inf)
    return a


def rank(a: Amount) -> tuple[bool, bool, float, float]:
    """The sort key of amounts: numbers, then a finite unknown, then none; ties by the rounding."""
    return (not a.finite, not a.known, a.value, a.rounding)


def least(*amounts: Amount) -> Amount:
    """The tightest of several bounds: a number before a finite unknown before none."""
    return min(amounts, key=rank)


def most(*amounts: Amount) -> Amount:
    """The largest of several amounts, which bounds them all."""
    return rounded(max(amounts, key=rank, default=ZERO), max((a.rounding for a in amounts), default=0.0))


def root(a: Amount) -> Amount:
    """The square root of an amount."""
    if a.known and a.finite:
        return Amount(sqrt(a.value))
    return a


def length(amounts: Iterable[Amount]) -> Amount:
    """The Euclidean norm of a vector of amounts."""
    return root(plus(*(times(a, a) for a in amounts)))
