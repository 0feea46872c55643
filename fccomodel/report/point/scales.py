"""The scales of a problem at a point: what counts as small for its objective, its constraints and its
variables.

    objective      |f - c|, c the sum of f's terms without variables, and |f(w) - f(o)|, o the
                   origin moved into the variables'
                   sets; at least |f| up to 1, and ``SLIGHT`` of its slope
    size           |f - c|; at least ``RANGE_SHARE`` of |f(w) - f(o)|
    variables      |w_i|
    constraint k   |c_k(w) - c_k(o)| and what it changes where each variable moves by its scale

Gaps are compared with the size. It does not change with the units of the variables (a slope does),
it is multiplied by what multiplies f, and a constant added to f is no part of it.

Relative to them, stationarity is the change of the objective for a change of the variables by their
scales; feasibility the share of a constraint's range; complementarity the share of the objective.
Scales near 1 (``ORDINARY``) count as 1, so that residuals of well scaled problems are what they
are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from fccomodel.core import ir
from fccomodel.core.diagnostics import FccoError
from fccomodel.report.point.recording import Recorder
from fccomodel.report.point.system import Array, System
from fccomodel.report.quadratic_parts import terms_of

ORDINARY = (0.1, 10.0)
SLIGHT = 1e-3
#: The least size of an objective, relative to its change from the origin: that of a perfect fit is nearly 0.
RANGE_SHARE = 1e-2


@dataclass(frozen=True, eq=False, kw_only=True)
class Scales:
    """Positive numbers, 1 where ordinary (but for ``size``); of variables at least 1, entry by entry."""

    objective: float
    size: float
    variables: Array
    constraints: Array

    @property
    def ordinary_size(self) -> float:
        """The size, 1 where that is ordinary."""
        return float(_unit(np.array(self.size)))


def scales(system: System, rows: Array | None, slope: float = 0.0) -> Scales:
    """``rows`` are the gradients of the constraints kept, where they are known; ``slope`` the norm of
    the objective's own."""
    if system.point:
        flat = torch.cat([value.reshape(-1) for value in system.point.values()]).abs().numpy()
    else:
        flat = np.zeros(0)
    variables = np.where(flat > ORDINARY[1], flat, 1.0)
    size = abs(system.sign * system.objective - _constant(system))
    objective = max(size, min(abs(system.objective), 1.0), SLIGHT * slope)
    constraints = np.zeros(len(system.values))
    f, c = _at_origin(system)
    if np.isfinite(f):
        moved = abs(f - system.sign * system.objective)
        objective, size = max(objective, moved), max(size, RANGE_SHARE * moved)
    constraints = np.where(np.isfinite(c), np.abs(c - system.values), 0.0)
    if rows is not None:
        constraints[system.kept] = np.maximum(
            constraints[system.kept], np.linalg.norm(rows * variables, axis=1)
        )
    objective = float(_unit(np.array(objective)))
    size = max(float(np.nan_to_num(size)), np.finfo(float).tiny)
    return Scales(objective=objective, size=size, variables=variables, constraints=_unit(constraints))


def _constant(system: System) -> float:
    """The sum of the minimised objective's terms without variables."""
    terms = terms_of(system.problem.objective.expr, system.sign)
    fixed = [(node, sign) for node, sign in terms if not ir.variables_of(node)]
    return sum(sign * float(system.evaluator.value(node, {}).data) for node, sign in fixed)


def _unit(size: Array) -> Array:
    size = np.minimum(size, np.finfo(float).max)
    return np.where((size > 0) & ((size < ORDINARY[0]) | (size > ORDINARY[1])), size, 1.0)


def _at_origin(system: System) -> tuple[float, Array]:
    """Objective (minimised) and constraints at the origin, moved into the variables' sets; NaN where
    they are not defined."""
    point = {}
    for name, value in system.point.items():
        moved = torch.zeros_like(value)
        for simple, args in system.sets_of(name):
            moved = simple.project(moved, *simple.prepare(*args))
        point[name] = moved
    try:
        with torch.no_grad():
            f, c = system.evaluate(point, Recorder({}))[:2]
    except FccoError:
        return np.nan, np.full(len(system.values), np.nan)
    return float(f), c.numpy()
