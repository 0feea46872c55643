"""Whether convex constraints conflict, although a point violates none of them by more than the tolerance.

For multipliers y (y_k >= 0 for inequalities) and gradients J at w, convexity gives, for every x,

    y.c(x) >= y.c(w) + (J'y).(x - w).

If J'y = 0 and y.c(w) > 0, no x has c(x) <= 0 (J. Farkas, 1902). Such y come from a linear program, scaled
to sum |y_k| |J_k| = 1. Rounding leaves a residual r of J'y, and J itself is rounded. If both together are
at most r, then y.c(x) >= y.c(w) - |r| |x - w|, which is near y.c(w) as long as |x - w| is a small share of
y.c(w) / |r|.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fccomodel.core import ir
from fccomodel.report.certificates.rounding import Rounding
from fccomodel.report.point.system import System
from fccomodel.structure import Analysis
from fccomodel.structure.facts import Standing

Array = np.ndarray
#: Constraints and entries of variables up to which multipliers are searched.
MOST = 300
#: Violation, relative to the sizes of the numbers compared, up to which no conflict is searched.
LEAST_VIOLATION = 1e-12
#: Share of the largest multiplier up to which another one counts as 0.
NO_MULTIPLIER = 1e-6
#: Slack, in units of the largest violation, beyond which a constraint's own does not matter.
MOST_SLACK = 1e4
#: Distance, relative to the point, within which a conflict must be proved to be told.
LEAST_RADIUS = 100.0
#: Share of the violation that the residual may take within the radius of the proof.
RADIUS_SHARE = 0.01


@dataclass(frozen=True, kw_only=True)
class Conflict:
    """Constraints that no point meets together.

    labels   of the constraints
    size     every point violates one of them by at least this
    radius   within this distance of the point
    """

    labels: tuple[str, ...]
    size: float
    radius: float


@dataclass(frozen=True, eq=False)
class _Rows:
    """Affine lower bounds c + J (x - w) of constraints, with lengths of J's rows of 1.

    errors   bounds of the errors of c
    lengths  those of the gradients before
    numbers  of the constraints in the system; -1 for bounds of variables
    """

    labels: list[str]
    values: Array
    gradients: Array
    equal: Array
    errors: Array
    lengths: Array
    numbers: Array


def conflict(
    system: System, rows: Array | None, analysis: Analysis, rounded: Rounding | None
) -> Conflict | None:
    """The conflict that multipliers prove, or None. ``rows`` are the gradients of the constraints kept."""
    if rows is None or rounded is None or max(len(system.kept), system.d) > MOST:
        return None
    taken = _convex(system, rows, analysis, rounded)
    if not _is_violated(system, taken):
        return None
    y = _multipliers(taken)
    if y is None:
        return None
    # twice: a gradient at slightly wrong inner values is a subgradient up to the error of the value
    value = float(y @ taken.values - 2 * np.abs(y) @ taken.errors)
    if value <= 0:
        return None
    residual = max(float(np.linalg.norm(_residual(taken, y, rounded))), np.finfo(float).tiny)
    radius = RADIUS_SHARE * value / residual
    if radius < LEAST_RADIUS * max(1.0, float(np.linalg.norm(system.flat))):
        return None
    used = [k for k, label in enumerate(taken.labels) if y[k] and label]
    weights = float((np.abs(y) / taken.lengths)[used].sum())
    size = (1 - RADIUS_SHARE) * value / weights
    return Conflict(labels=tuple(taken.labels[k] for k in used), size=size, radius=radius)


def _residual(taken: _Rows, y: Array, rounded: Rounding) -> Array:
    """A bound by entry of J'y, with the rounding of the gradients and of the product."""
    constrained = taken.numbers >= 0
    multipliers = np.zeros(len(rounded.constraints))
    multipliers[taken.numbers[constrained]] = (np.abs(y) / taken.lengths)[constrained]
    products = np.abs(taken.gradients).T @ np.abs(y) * np.finfo(float).eps * (len(y) + 8)
    return np.abs(taken.gradients.T @ y) + products + rounded.slope_of_constraints(multipliers)


def _convex(system: System, rows: Array, analysis: Analysis, rounded: Rounding) -> _Rows:
    """The constraints that are proved to be convex, without kinks, and the bounds of the variables."""
    lines = [*_constraints(system, rows, analysis, rounded), *_bounds(system, analysis)]
    gradients = np.array([line[2] for line in lines]).reshape(len(lines), system.d)
    lengths = np.linalg.norm(gradients, axis=1)
    lengths[lengths == 0] = 1.0
    return _Rows(
        labels=[line[0] for line in lines],
        values=np.array([line[1] for line in lines]) / lengths,
        gradients=gradients / lengths[:, None],
        equal=np.array([line[3] for line in lines], dtype=bool),
        errors=np.array([line[4] for line in lines]) / lengths,
        lengths=lengths,
        numbers=np.array([line[5] for line in lines], dtype=int),
    )


_Line = tuple[str, float, Array, bool, float, int]


def _constraints(system: System, rows: Array, analysis: Analysis, rounded: Rounding) -> Iterator[_Line]:
    """Label, value, gradient, whether it is an equation, rounding, and number of each convex constraint."""
    for row, k, kinks in zip(rows, system.kept.tolist(), system.slopes[1:], strict=True):
        label, equal = system.labels[k], system.equal[k]
        facts = analysis.constraints[label.partition("[")[0]]
        known = facts.affine if equal else facts.convex
        if known and facts.below.standing <= Standing.BOUNDED and not kinks:
            yield label, float(system.values[k]), row, equal, float(rounded.constraints[k]), k


def _bounds(system: System, analysis: Analysis) -> Iterator[_Line]:
    """The same of the ends of the variables' intervals, which have no label."""
    first = 0
    for name, value in system.point.items():
        fact = analysis.see(ir.Var(name=name)).interval
        for place, entry in enumerate(value.reshape(-1).tolist(), start=first):
            unit = np.zeros(system.d)
            unit[place] = 1.0
            error = np.finfo(float).eps * abs(entry)
            if fact.standing > Standing.BOUNDED:
                continue
            if math.isfinite(fact.value.hi):
                yield "", entry - fact.value.hi, unit, False, error, -1
            if math.isfinite(fact.value.lo):
                yield "", fact.value.lo - entry, -unit, False, error, -1
        first += value.numel()


def _is_violated(system: System, taken: _Rows) -> bool:
    """Whether a violation is more than rounding."""
    sizes = np.where(taken.equal, np.abs(taken.values), taken.values)
    least = LEAST_VIOLATION * max(1.0, float(np.abs(system.flat).max(initial=0.0)))
    return bool((sizes > np.maximum(least, taken.errors)).any())


def _multipliers(taken: _Rows) -> Array | None:
    """Multipliers with J'y = 0 up to rounding and the largest y.c, or None."""
    from scipy.optimize import linprog

    scale = float(np.where(taken.equal, np.abs(taken.values), taken.values).max())
    halves = np.vstack([taken.gradients, -taken.gradients[taken.equal]])
    values = np.append(taken.values, -taken.values[taken.equal]) / scale
    found = linprog(
        -np.maximum(values, -MOST_SLACK),
        A_ub=np.ones((1, len(values))),
        b_ub=[1.0],
        A_eq=halves.T,
        b_eq=np.zeros(halves.shape[1]),
        method="highs",
    )
    if found.status != 0 or -found.fun <= 0:
        return None
    y = found.x[: len(taken.values)].copy()
    y[taken.equal] -= found.x[len(taken.values) :]
    used = np.abs(y) > NO_MULTIPLIER * np.abs(y).max(initial=0.0)
    y[~used] = 0.0
    columns = taken.gradients[used].T
    y[used] -= np.linalg.pinv(columns) @ (columns @ y[used])
    if (y[~taken.equal] < 0).any():
        return None
    return y
