"""Whether two objectives have the same minimisers, judged by their values at points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fccomodel.app.grading.points import between, crossing
from fccomodel.app.grading.values import Point

#: Relative difference up to which two values computed in different orders are equal.
EQUAL = 1e-8
#: The same, for values that a search for a level has found.
LEVEL_EQUAL = 1e-6
#: Size of numbers, relative to a point's, whose rounding counts as that of values there.
CANCELLED = 1e-6
#: Points with finite values that a judgement needs.
NEEDED = 6
#: Levels at which a nonlinear relation of two objectives is tested.
LEVELS = 8


@dataclass(frozen=True, kw_only=True)
class Relation:
    """How the answer's objective depends on the key's.

    kind    ``equal``, ``affine`` (a positive multiple, plus a number), ``increasing``, ``reversed``,
            ``different``, or ``unknown``
    factor  for ``affine`` and ``reversed``: the factor
    shift   for these: the number added
    place   for ``different``: the number of a point at which the relation fails
    """

    kind: str
    factor: float = 1.0
    shift: float = 0.0
    place: int = 0

    @property
    def same(self) -> bool:
        """Whether both have the same minimisers."""
        return self.kind in ("equal", "affine", "increasing")


def close(a: np.ndarray, b: np.ndarray, size: np.ndarray | float = 0.0) -> np.ndarray:
    """Where two arrays of values are equal up to rounding; ``size`` is that of numbers that cancelled."""
    scale = np.maximum(np.maximum(np.abs(a), np.abs(b)), size)
    return np.abs(a - b) <= EQUAL * scale + 1e-12


def relation(
    key: np.ndarray,
    answer: np.ndarray,
    points: Sequence[Point],
    of_key: Callable[[Point], float],
    of_answer: Callable[[Point], float],
) -> Relation:
    """The relation of two objectives to be minimised, from their values at the points and at others."""
    finite = np.isfinite(key) & np.isfinite(answer)
    sizes = sizes_of(points)
    lost = np.flatnonzero(np.isfinite(key) & np.isnan(answer) & (sizes <= NEAR_ZERO))
    if lost.size:
        return Relation(kind="different", place=int(lost[0]))
    if finite.sum() < NEEDED:
        return Relation(kind="unknown")
    numbers = np.flatnonzero(finite)
    k, a = key[finite], answer[finite]
    cancelled = CANCELLED * sizes[finite]
    equal = close(k, a, cancelled)
    if equal.all():
        return Relation(kind="equal")
    first_wrong = int(numbers[np.flatnonzero(~equal)[0]])
    if _constant(k):
        if _constant(a):
            return Relation(kind="affine", shift=float(a[0] - k[0]))
        return Relation(kind="different", place=first_wrong)
    linear = _affine(k, a, cancelled)
    if linear is not None:
        factor, shift = linear
        kind = "affine" if factor > 0 else "reversed"
        return Relation(kind=kind, factor=factor, shift=shift, place=first_wrong)
    if _increasing(k, a):
        distinct = _distinct(k)
        chosen = [points[numbers[place]] for place in distinct]
        if _levels_agree(k[distinct], a[distinct], chosen, of_key, of_answer):
            return Relation(kind="increasing")
    return Relation(kind="different", place=first_wrong)


#: Size of the points at which an answer without a value is wrong; further out its formula may overflow.
NEAR_ZERO = 10.0


def sizes_of(points: Sequence[Point]) -> np.ndarray:
    """The largest entry of each point."""
    return np.array([max(np.abs(v).max(initial=0) for v in point.values()) for point in points])


def _affine(k: np.ndarray, a: np.ndarray, cancelled: np.ndarray) -> tuple[float, float] | None:
    """The factor and the shift with ``a = factor * k + shift`` at all points, or None."""
    order = np.argsort(np.abs(k))
    i, j = order[0], order[len(order) // 2]
    if k[i] == k[j]:
        j = order[-1]
    if k[i] == k[j] or a[i] == a[j]:
        return None
    factor = (a[i] - a[j]) / (k[i] - k[j])
    shift = a[i] - factor * k[i]
    if abs(shift) <= EQUAL * abs(a[i]):
        shift = 0.0
    if close(factor * k + shift, a, np.maximum(np.abs(shift), cancelled)).all():
        return float(factor), float(shift)
    return None


def _constant(values: np.ndarray) -> bool:
    """Whether all values are equal up to rounding."""
    return bool(close(values, np.full_like(values, values[0])).all())


def _increasing(k: np.ndarray, a: np.ndarray) -> bool:
    """Whether the answer's values rise wherever the key's do, and are equal where the key's are."""
    order = np.argsort(k)
    k, a = k[order], a[order]
    tied = close(k[1:], k[:-1])
    return bool(np.where(tied, close(a[1:], a[:-1]), np.diff(a) > 0).all())


def _distinct(k: np.ndarray) -> np.ndarray:
    """The places of the different values, one for each: points that a set projects on a corner have equal
    ones."""
    order = np.argsort(k)
    tied = close(k[order][1:], k[order][:-1])
    return order[np.concatenate([[True], ~tied])]


def _levels_agree(
    k: np.ndarray,
    a: np.ndarray,
    points: Sequence[Point],
    of_key: Callable[[Point], float],
    of_answer: Callable[[Point], float],
) -> bool:
    """Whether the answer's objective has one value on each of some level sets of the key's.

    The first ones are those where the two objectives differ.
    """
    order = np.argsort(k)
    tested = 0
    triples = zip(order, order[1:], order[2:], strict=False)
    equal = close(k, a)
    for low, middle, high in sorted(triples, key=lambda three: equal[three[1]]):
        start, end = points[low], points[high]
        level = k[middle]

        def above(share: float, start: Point = start, end: Point = end, level: float = level) -> float:
            """How far the key's objective is above the level, on the way between two points."""
            return of_key(between(start, end, share)) - level

        share = crossing(above, k[low] - level, k[high] - level)
        if share is None:
            continue
        value = of_answer(between(start, end, share))
        if abs(value - a[middle]) > LEVEL_EQUAL * max(abs(value), abs(a[middle])):
            return False
        tested += 1
        if tested == LEVELS:
            break
    return tested >= LEVELS // 2
