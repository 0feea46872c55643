"""Conditions on the values of arguments. Atoms, distributions and simple sets declare them
alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

import numpy as np

from fccomodel.library.atoms.interval import REALS, Interval


class OrderCondition(NamedTuple):
    """The condition that one argument is at most another (``strict``: less), by their positions."""

    low: int
    high: int
    strict: bool = False


class Fault(NamedTuple):
    """An argument, by its position, that is not what is asked, and what is asked, in words: ``a value
    in (0, inf)``.

    ordered  in comparison with another argument
    """

    argument: int
    needs: str
    ordered: bool = False


class Broken(NamedTuple):
    """A value outside the domain: the argument, the condition, the case and entry in which it stands, and
    the value.

    of  the number of the argument that the value is, in words, if it is not an entry: ``the smallest
        eigenvalue``
    """

    argument: int
    needs: str
    case: int
    entry: tuple[int, ...]
    value: float
    of: str = ""


@dataclass(frozen=True, kw_only=True)
class MatrixKind:
    """A kind of square matrices that an argument must belong to.

    name       the kind with its article: ``a positive definite``
    number     what ``smallest`` measures, in words: ``the smallest eigenvalue``
    smallest   (matrices) -> that number of each, which is near 0 or below for other matrices
    belongs    (matrices) -> for each, whether it is of this kind, up to rounding
    """

    name: str
    number: str
    smallest: Callable[[np.ndarray], np.ndarray]
    belongs: Callable[[np.ndarray], np.ndarray]

    @property
    def needs(self) -> str:
        """The condition in words: ``a positive definite matrix``."""
        return f"{self.name} matrix"


def nothing(shape: Any, *values: Any) -> str:
    """The empty message: no condition is violated."""
    return ""


@dataclass(frozen=True, kw_only=True, eq=False)
class Domain:
    """Conditions on the arguments, entry by entry.

    domain   per argument an Interval, None for all reals; or a function of the arguments' intervals
    nonzero  positions of arguments that must not be 0; or a function of the intervals
    counts   positions of arguments that are whole numbers
    orders   which arguments are at most others
    regular  positions of the arguments that must be matrices of some kind
    amiss    (shape, *values) -> what else is amiss with arguments of these values, '' for nothing;
             ``shape`` is that of the first
             argument of an atom, of the points of a set
    """

    domain: tuple[Interval | None, ...] | Callable[..., tuple[Interval | None, ...]] = ()
    nonzero: tuple[int, ...] | Callable[..., tuple[int, ...]] = ()
    counts: tuple[int, ...] = ()
    orders: tuple[OrderCondition, ...] = ()
    regular: Mapping[int, MatrixKind] = field(default_factory=dict)
    amiss: Callable[..., str] = nothing

    @property
    def limited(self) -> bool:
        """Whether the domain asks for anything."""
        asks_for_values = self.domain or self.nonzero or self.counts or self.orders or self.regular
        return bool(asks_for_values) or self.amiss is not nothing

    def asked(self, count: int) -> frozenset[int]:
        """The positions of the arguments that are restricted or that restrict others."""
        if callable(self.domain) or callable(self.nonzero):
            return frozenset(range(count))
        ends = (k for order in self.orders for k in order[:2])
        return frozenset(
            [
                *self.nonzero,
                *self.counts,
                *self.regular,
                *ends,
                *(k for k, wanted in enumerate(self.domain) if wanted is not None),
            ]
        )

    def domains(self, *intervals: Interval) -> tuple[Interval | None, ...]:
        """For each argument the interval in which it must lie (None: anywhere)."""
        if callable(self.domain):
            return self.domain(*intervals)
        return self.domain or (None,) * len(intervals)

    def settled(self, *intervals: Interval) -> tuple[Interval | None, ...]:
        """The intervals of ``domains``, None where they depend on an argument that is not yet a
        point.

        A violation that is reported must hold for every value of that argument.
        """
        if not callable(self.domain):
            return self.domains(*intervals)
        others = [all(u.is_point for j, u in enumerate(intervals) if j != k) for k in range(len(intervals))]
        return tuple(d if known else None for d, known in zip(self.domains(*intervals), others, strict=True))

    def poles(self, *intervals: Interval) -> tuple[int, ...]:
        """Positions of the arguments that must not be 0."""
        if callable(self.nonzero):
            return self.nonzero(*intervals)
        return self.nonzero

    # -------------------------------------------------------------------- of arguments in intervals
    def refuted(self, intervals: Sequence[Interval], names: Sequence[str]) -> Fault | None:
        """The first condition that no values in these intervals satisfy; ``names`` are the
        arguments' own."""
        depends = callable(self.domain) or callable(self.nonzero)
        settled = [
            not depends or all(u.is_point for j, u in enumerate(intervals) if j != k)
            for k in range(len(intervals))
        ]
        for k, (lies, wanted) in enumerate(zip(intervals, self.domains(*intervals), strict=True)):
            if wanted is not None and settled[k] and lies.disjoint(wanted):
                return Fault(k, within(wanted))
        for k in self.poles(*intervals):
            if intervals[k] == Interval.point(0.0) and settled[k]:
                return Fault(k, NONZERO)
        for k in self.counts:
            if intervals[k].is_point and not float(intervals[k].lo).is_integer():
                return Fault(k, WHOLE)
        for low, high, strict in self.orders:
            a, b = intervals[low], intervals[high]
            if a.lo > b.hi or strict and a.lo == b.hi:
                return Fault(low, before(names[high], b, strict), True)
        return None

    def doubts(self, intervals: Sequence[Interval], names: Sequence[str]) -> Iterator[Fault]:
        """The first condition that some values in these intervals violate."""
        poles = self.poles(*intervals)
        for k, (lies, wanted) in enumerate(zip(intervals, self.domains(*intervals), strict=True)):
            if wanted is not None and not lies.inside(wanted):
                yield Fault(k, within(wanted))
            elif k in poles and lies.has(0.0):
                yield Fault(k, NONZERO)
            elif k in self.counts and not (lies.is_point and float(lies.lo).is_integer()):
                yield Fault(k, WHOLE)
        for k, kind in self.regular.items():
            yield Fault(k, kind.needs)
        for low, high, strict in self.orders:
            a, b = intervals[low], intervals[high]
            if a.hi > b.lo or strict and a.hi == b.lo:
                yield Fault(low, before(names[high], b, strict), True)

    # ------------------------------------------------------------------------------------ of values
    def broken(self, values: Sequence[np.ndarray | None], names: Sequence[str]) -> Broken | None:
        """The first value that violates a condition.

        values  for each argument an array with one row per case, or None if they are not known
        """
        known = [REALS if v is None else enclosing(v) for v in values]
        for k, value in enumerate(values):
            if value is None:
                continue
            for cases, where in self._alike(k, values, known):
                for wrong, needs in self._wrong(value[cases], k, where):
                    if wrong.any():
                        case, *entry = np.argwhere(wrong)[0].tolist()
                        return Broken(
                            k, needs, int(cases[case]), tuple(entry), float(value[cases][case, *entry])
                        )
        singular = self._singular(values)
        if singular is not None:
            return singular
        for low, high, strict in self.orders:
            below, above = values[low], values[high]
            if below is not None and above is not None:
                a, b = np.broadcast_arrays(*_together(below, above))
                wrong = ~(a < b if strict else a <= b)
                if wrong.any():
                    case, *entry = at = tuple(np.argwhere(wrong)[0].tolist())
                    needs = before(names[high], Interval.point(float(b[at])), strict)
                    return Broken(low, needs, case, tuple(entry), float(a[at]))
        return None

    def _singular(self, values: Sequence[np.ndarray | None]) -> Broken | None:
        """The first matrix that is not of the kind that its argument needs."""
        for k, kind in self.regular.items():
            matrices = values[k]
            if matrices is None:
                continue
            finite = np.flatnonzero(np.isfinite(matrices).all((1, 2)))
            others = finite[~kind.belongs(matrices[finite])]
            if len(others):
                case = int(others[0])
                smallest = float(kind.smallest(matrices[case : case + 1])[0])
                return Broken(k, kind.needs, case, (), smallest, kind.number)
        return None

    def _wrong(
        self, value: np.ndarray, k: int, where: Sequence[Interval]
    ) -> Iterator[tuple[np.ndarray, str]]:
        """The entries of argument k that violate its conditions in these intervals, and the condition in
        words.
        """
        allowed = self.domains(*where)[k]
        if allowed is not None:
            if allowed.lo_open:
                low = value > allowed.lo
            else:
                low = value >= allowed.lo
            if allowed.hi_open:
                high = value < allowed.hi
            else:
                high = value <= allowed.hi
            yield ~(low & high), within(allowed)
        if k in self.poles(*where):
            yield value == 0, NONZERO
        if k in self.counts:
            yield value != np.round(value), WHOLE

    def _alike(
        self, k: int, values: Sequence[np.ndarray | None], known: Sequence[Interval]
    ) -> Iterator[tuple[np.ndarray, Sequence[Interval]]]:
        """Groups of cases in which argument k has the same conditions: their rows, and the
        intervals of the arguments."""
        own = values[k]
        assert own is not None
        asking = callable(self.domain) or callable(self.nonzero)
        apart = [v for j, v in enumerate(values) if asking and j != k and not known[j].is_point]
        others = [v for v in apart if v is not None and v.ndim == 1]
        if not others:
            yield np.arange(len(own)), known
            return
        _, which, sizes = np.unique(np.stack(others, 1), axis=0, return_inverse=True, return_counts=True)
        for cases in np.split(np.argsort(which.ravel(), kind="stable"), np.cumsum(sizes)[:-1]):
            yield cases, [u if v is None else enclosing(v[cases]) for u, v in zip(known, values, strict=True)]


NONZERO = "a value other than 0"
WHOLE = "a whole number"


def within(wanted: Interval) -> str:
    """The words for an interval: ``a value in (0, inf)``."""
    return f"a value in {wanted}"


def before(name: str, lies: Interval, strict: bool) -> str:
    """The words for an upper bound: ``a value less than `high`, which is 3``."""
    if lies.mag == inf:
        known = ""
    elif lies.is_point:
        known = f", which is {lies.lo:g}"
    else:
        known = f", which lies in {lies}"
    return f"a value {'less than' if strict else 'of at most'} `{name}`{known}"


def enclosing(values: np.ndarray) -> Interval:
    """The smallest interval that holds all entries; all reals if there are none or one is NaN."""
    if values.size == 0 or np.isnan(values).any():
        return REALS
    return Interval(float(values.min()), float(values.max()))


def _together(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two arguments of the same cases, each a number or an array per case, reshaped so that they
    broadcast."""
    most = max(a.ndim, b.ndim)
    padded = (x.reshape(len(x), *(1,) * (most - x.ndim), *x.shape[1:]) for x in (a, b))
    return tuple(padded)  # type: ignore[return-value]
