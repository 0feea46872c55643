"""Whether two models have the same feasible points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from fccomodel.app.grading.functions import CANCELLED, EQUAL, NEEDED, sizes_of
from fccomodel.app.grading.points import between, crossing, numbers_after, random_point, restored
from fccomodel.app.grading.values import Point, Side, ValuesAtPoint

#: Rounding of values near 0.
ROUNDING = 1e-12
#: Starts of a search for a point that only one of the models accepts.
SEARCHES = 12
#: The search ends if so many first starts lead to no point.
GIVEN_UP_AFTER = 5
#: Violation, relative to the other values of a row, from which on a point is refused for certain.
REFUSED = 1e-5
#: Places at which the boundaries of two models are compared, and those that each row must have of them.
CROSSINGS = 60
CROSSINGS_EACH = 2
#: Distance from a boundary, as a share of a segment, at which both models must agree.
BESIDE = 1e-6


@dataclass(frozen=True, kw_only=True)
class Regions:
    """How the feasible points of an answer differ from the key's.

    same     True, False, or None if it is not decided
    missing  labels of the key's constraints that do not follow from one of the answer's
    extra    labels of the answer's constraints that do not follow from one of the key's
    unlike   labels of constraints that no row of the other model equals: the key's, the answer's
    accepts  a point that only the answer accepts
    refuses  a point that only the key accepts
    """

    same: bool | None
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    unlike: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    accepts: Point | None = field(default=None, repr=False)
    refuses: Point | None = field(default=None, repr=False)


def compared(
    key: Side,
    answer: Side,
    points: Sequence[Point],
    at_key: Sequence[ValuesAtPoint],
    at_answer: Sequence[ValuesAtPoint],
) -> Regions:
    """The comparison of the constraints of two models, by rows first, then by points of their regions."""
    ours, theirs = np.array([v.rows for v in at_key]), np.array([v.rows for v in at_answer])
    good = np.isfinite(ours).all(axis=1) & np.isfinite(theirs).all(axis=1)
    if good.sum() < NEEDED and (ours.size or theirs.size):
        own, other = _names(key, range(ours.shape[1])), _names(answer, range(theirs.shape[1]))
        return Regions(same=None, missing=own, extra=other, unlike=(own, other))
    ours, theirs = ours[good], theirs[good]
    rounding = ROUNDING + EQUAL * CANCELLED * sizes_of(points)[good]
    slack_ours = [_slack(row, theirs, rounding) for row in ours.T]
    slack_theirs = [_slack(row, ours, rounding) for row in theirs.T]
    alone_ours = [j for j, slack in enumerate(slack_ours) if slack is None]
    alone_theirs = [j for j, slack in enumerate(slack_theirs) if slack is None]
    if not alone_ours and not alone_theirs:
        return Regions(same=True)
    missing, extra = _names(key, alone_ours), _names(answer, alone_theirs)
    unlike = (
        _names(key, [j for j, slack in enumerate(slack_ours) if slack != 0.0]),
        _names(answer, [j for j, slack in enumerate(slack_theirs) if slack != 0.0]),
    )
    scale_ours, scale_theirs = _scales(ours), _scales(theirs)
    accepts = _one_sided(answer, key, scale_ours)
    refuses = _one_sided(key, answer, scale_theirs)
    if accepts is not None or refuses is not None:
        return Regions(
            same=False, missing=missing, extra=extra, unlike=unlike, accepts=accepts, refuses=refuses
        )
    same = _same_boundary(
        key, answer, (alone_ours, alone_theirs), [p for p, well in zip(points, good, strict=True) if well]
    )
    if same:
        return Regions(same=True)
    return Regions(same=None, missing=missing, extra=extra, unlike=unlike)


def _names(side: Side, rows: Sequence[int]) -> tuple[str, ...]:
    """The labels of some rows, each once."""
    return tuple(dict.fromkeys(side.labels[j] for j in rows))


def _scales(rows: np.ndarray) -> np.ndarray:
    """The usual size of each row's values."""
    if not rows.size:
        return np.zeros(rows.shape[1])
    return np.median(np.abs(rows), axis=0) + 1e-12


def _slack(row: np.ndarray, others: np.ndarray, rounding: np.ndarray) -> float | None:
    """The slack of a row that follows from one of the others: 0 if it equals one, None if it follows from
    none.

    It follows if it is a positive multiple of the other one, minus a number that is not negative. A row
    that is constant and holds needs no other.
    """
    if row.max() <= 0 and np.ptp(row) <= EQUAL * abs(row).max():
        return float(-row.max())
    if not others.size:
        return None
    lowest, highest = int(np.argmin(row)), int(np.argmax(row))
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = (row[highest] - row[lowest]) / (others[highest] - others[lowest])
    pairs = zip(others.T, factors, strict=True)
    multiples = [factor * other for other, factor in pairs if 0 < factor < np.inf]
    slacks = [_constant_slack(row, multiple, rounding) for multiple in multiples]
    return min((slack for slack in slacks if slack is not None), default=None)


def _constant_slack(row: np.ndarray, other: np.ndarray, rounding: np.ndarray) -> float | None:
    """The number by which one row is always below the other, or None."""
    slack = other - row
    size = np.maximum(np.abs(row), np.abs(other))
    constant = float(np.median(slack))
    if abs(constant) <= EQUAL * np.median(size):
        constant = 0.0
    if constant >= 0 and (np.abs(slack - constant) <= EQUAL * size + rounding).all():
        return constant
    return None


def _one_sided(first: Side, second: Side, scale: np.ndarray) -> Point | None:
    """A point that the first model accepts and the second refuses for certain, or None."""
    rng = np.random.default_rng(len(scale))
    failed = 0
    for number in numbers_after(first, SEARCHES):
        point = restored(first, random_point(first, number, rng))
        if point is None:
            failed += 1
            if failed == number + 1 == GIVEN_UP_AFTER:
                break
            continue
        rows = second.at(point).rows
        if np.isfinite(rows).all() and (rows > REFUSED * np.maximum(scale, 1e-3)).any():
            if first.at(point).rows.max(initial=-1.0) <= MET_BY_FIRST:
                return point
    return None


#: Violation up to which the first of two models accepts a point that the second refuses.
MET_BY_FIRST = 1e-8


def _highest(side: Side, rows: list[int], start: Point, end: Point, share: float) -> float:
    """The largest of some rows, on the way between two points."""
    return float(side.at(between(start, end, share)).rows[rows].max())


def _same_boundary(
    key: Side, answer: Side, rows: tuple[list[int], list[int]], points: Sequence[Point]
) -> bool:
    """Whether the rows without an equal in the other model have the same boundary.

    Segments between points that they accept and points that they refuse are followed to the boundary of
    each model; beside it, both must agree. True needs several such places for each row.
    """
    if not rows[0] or not rows[1]:
        return False
    hits = {("key", j): 0 for j in rows[0]} | {("answer", j): 0 for j in rows[1]}
    rng = np.random.default_rng(0)
    at_points = [(key.at(p).rows[rows[0]], answer.at(p).rows[rows[1]]) for p in points]
    for _ in range(CROSSINGS):
        i, j = rng.choice(len(points), 2, replace=False)
        for model, (side, chosen) in enumerate(((key, rows[0]), (answer, rows[1]))):
            first, last = at_points[i][model].max(), at_points[j][model].max()
            if (first > 0) == (last > 0):
                continue

            highest = partial(_highest, side, chosen, points[i], points[j])
            share = crossing(highest, first, last)
            if share is None:
                continue
            for moved in (share - BESIDE, share + BESIDE):
                place = between(points[i], points[j], moved)
                ours, theirs = key.at(place).rows[rows[0]], answer.at(place).rows[rows[1]]
                if (ours.max() > 0) != (theirs.max() > 0):
                    return False
            hits["key", rows[0][int(np.argmax(ours))]] += 1
            hits["answer", rows[1][int(np.argmax(theirs))]] += 1
        if min(hits.values()) >= CROSSINGS_EACH:
            return True
    return False
