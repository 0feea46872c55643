"""The scales of a problem at a point: what counts as small for its objective, its constraints and its variables.

    objective      |f| and |f(w) - f(o)|, o the origin moved into the variables' sets; at least ``SLIGHT`` of its slope
    variables      |w_i|
    constraint k   |c_k(w) - c_k(o)| and what it changes where each variable moves by its scale

Relative to them, stationarity is the change of the objective for a change of the variables by their scales; feasibility the share
of a constraint's range; complementarity the share of the objective. Scales near 1 (``ORDINARY``) count as 1, so that residuals of
well scaled problems are what they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from fccomodel.core.diagnostics import FccoError
from fccomodel.report.recording import Recorder
from fccomodel.report.system import Array, System

ORDINARY = (0.1, 10.0)
SLIGHT = 1e-3


@dataclass(frozen=True, eq=False, kw_only=True)
class Scales:
    """Positive numbers, 1 where ordinary; of variables at least 1, entry by entry."""

    objective: float
    variables: Array
    constraints: Array


def scales(system: System, rows: Array | None, slope: float = 0.0) -> Scales:
    """``rows`` are the gradients of the constraints kept, where they are known; ``slope`` the norm of the objective's own."""
    flat = torch.cat([value.reshape(-1) for value in system.point.values()]).abs().numpy() if system.point else np.zeros(0)
    variables = np.where(flat > ORDINARY[1], flat, 1.0)
    objective, constraints = max(abs(system.objective), SLIGHT * slope), np.zeros(len(system.values))
    f, c = _at_origin(system)
    if np.isfinite(f):
        objective = max(objective, abs(f - system.sign * system.objective))
    constraints = np.where(np.isfinite(c), np.abs(c - system.values), 0.0)
    if rows is not None:
        constraints[system.kept] = np.maximum(constraints[system.kept], np.linalg.norm(rows * variables, axis=1))
    return Scales(objective=float(_unit(np.array(objective))), variables=variables, constraints=_unit(constraints))


def _unit(size: Array) -> Array:
    size = np.minimum(size, np.finfo(float).max)
    return np.where((size > 0) & ((size < ORDINARY[0]) | (size > ORDINARY[1])), size, 1.0)


def _at_origin(system: System) -> tuple[float, Array]:
    """Objective (minimised) and constraints at the origin, moved into the variables' sets; NaN where they are not defined."""
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
