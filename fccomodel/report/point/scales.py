"""The scales of a problem at a point: what counts as small for its objective, its constraints and its
variables.

With c the sum of f's terms without variables, and o the origin moved into the variables' sets:

    objective      max(|f - c|, |f(w) - f(o)|); at least min(|f|, 1), and ``SLOPE_SHARE`` of its slope
    size           |f - c|; at least ``RANGE_SHARE`` of |f(w) - f(o)|, and that at most ``SMALL_OBJECTIVE``
    variables      |w_i|
    constraint k   max(|c_k(w) - c_k(o)|, its change if each variable moves by its scale)

Gaps are compared with the size. It does not change with the units of the variables, as a slope
does. A factor of f multiplies it, and a constant added to f does not change it. The range counts only for
small objectives: an origin that is far from the data (dates) says nothing about an objective of 100.

Relative to the scales, stationarity is the change of the objective if the variables change by their
scales. Feasibility is a share of a constraint's range, complementarity a share of the objective.
Scales near 1 (``ORDINARY``) count as 1, so that residuals of well scaled problems do not change.
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

#: Scales in this range count as 1.
ORDINARY = (0.1, 10.0)
#: The least scale of an objective, relative to the norm of its gradient.
SLOPE_SHARE = 1e-3
#: The objective up to which gains by violations, and gaps, are compared with its scale or its range.
SMALL_OBJECTIVE = 1e-2
#: The least size of an objective, relative to its change from the origin: a perfect fit is nearly 0.
RANGE_SHARE = 1e-2


@dataclass(frozen=True, eq=False, kw_only=True)
class Scales:
    """Positive numbers. All but ``size`` are 1 if ordinary; those of the variables are at least 1."""

    objective: float
    size: float
    variables: Array
    constraints: Array

    @property
    def ordinary_size(self) -> float:
        """The size, or 1 if it is ordinary."""
        return float(_unit(np.array(self.size)))

    @property
    def of_gains(self) -> float:
        """The scale for gains by violations: the size, or the objective's scale if that is small but
        larger.

        A steep slope, which makes the objective's scale large, does not excuse such gains.
        """
        return max(self.size, min(self.objective, SMALL_OBJECTIVE))


def scales(system: System, rows: Array | None, slope: float = 0.0) -> Scales:
    """The scales at the system's point.

    rows    gradients of the constraints kept, None if they are not known
    slope   norm of the objective's gradient
    """
    flat = np.zeros(0)
    if system.point:
        flat = np.abs(system.flat)
    variables = np.where(flat > ORDINARY[1], flat, 1.0)
    size = abs(system.sign * system.objective - _constant(system))
    objective = max(size, min(abs(system.objective), 1.0), SLOPE_SHARE * slope)
    constraints = np.zeros(len(system.values))
    f, c = _at_origin(system)
    if np.isfinite(f):
        moved = abs(f - system.sign * system.objective)
        objective, size = max(objective, moved), max(size, min(RANGE_SHARE * moved, SMALL_OBJECTIVE))
    constraints = np.where(np.isfinite(c), np.abs(c - system.values), 0.0)
    if rows is not None:
        changes = np.linalg.norm(rows * variables, axis=1)
        constraints[system.kept] = np.maximum(constraints[system.kept], changes)
    objective = float(_unit(np.array(objective)))
    size = max(float(np.nan_to_num(size)), np.finfo(float).tiny)
    return Scales(objective=objective, size=size, variables=variables, constraints=_unit(constraints))


def _constant(system: System) -> float:
    """The sum of the minimised objective's terms without variables."""
    terms = terms_of(system.problem.objective.expr, system.sign)
    fixed = [(node, sign) for node, sign in terms if not ir.variables_of(node)]
    return sum(sign * float(system.evaluator.value(node, {}).data) for node, sign in fixed)


def _unit(size: Array) -> Array:
    """Scales with 1 in place of ordinary ones and of 0."""
    size = np.minimum(size, np.finfo(float).max)
    least, most = ORDINARY
    unusual = (size > 0) & ((size < least) | (size > most))
    return np.where(unusual, size, 1.0)


def _at_origin(system: System) -> tuple[float, Array]:
    """The minimised objective and the constraints at the origin, moved into the variables' sets; NaN if
    they are not defined there."""
    zeros = {name: torch.zeros_like(value) for name, value in system.point.items()}
    point = {name: system.into_sets(name, zero) for name, zero in zeros.items()}
    try:
        with torch.no_grad():
            f, c = system.evaluate(point, Recorder({}))[:2]
    except FccoError:
        return np.nan, np.full(len(system.values), np.nan)
    return float(f), c.numpy()
