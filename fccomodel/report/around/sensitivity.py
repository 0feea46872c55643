"""The derivative of the optimal value in a param.

It is the derivative of the Lagrangian at the optimum and its multipliers (the envelope theorem: P. Milgrom,
I. Segal, Envelope theorems for arbitrary choice sets, Econometrica 70, 2002).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fccomodel.core import ir
from fccomodel.core.diagnostics import FccoError
from fccomodel.data import rebinding
from fccomodel.data.bound import Bound
from fccomodel.evaluation.passes import values

#: Step of a central difference, relative to max(1, |param|).
CENTRAL_STEP = 1e-5
#: Step of a one-sided difference, relative to max(1, |param|).
ONE_SIDED_STEP = 1e-7


def slope(
    bound: Bound, point: Mapping[str, np.ndarray], multipliers: Mapping[str, float], name: str
) -> float | None:
    """d/dp of f(w; p) + sum of nu_k c_k(w; p), in the model's sense (f - ... for a ``maximize``), for the
    scalar param p of that name.

    multipliers   of the minimised problem, by label

    None if p is no scalar, if it decides sizes, sets of variables or the choice of rows, or if the
    derivative is not finite.
    """
    value = bound.params.get(name)
    if value is None or np.ndim(value) or _decides(bound.problem, name):
        return None
    sign = 1.0 if bound.problem.objective.sense == "minimize" else -1.0

    def lagrangian(at: float) -> float | None:
        """The Lagrangian with the parameter at another value, or None if undefined there."""
        try:
            other = rebinding.with_values(bound, {name: at})
            if other is None:
                return None
            values_there, labels, _ = values(other, point)
        except FccoError:
            return None
        nu = np.array([multipliers.get(label, 0.0) for label in labels])
        return float(values_there[0] + sign * (nu @ values_there[1:] if nu.any() else 0.0))

    p, scale = float(value), max(1.0, abs(float(value)))
    low, high = lagrangian(p - CENTRAL_STEP * scale), lagrangian(p + CENTRAL_STEP * scale)
    if low is not None and high is not None:
        result = (high - low) / (2 * CENTRAL_STEP * scale)
    else:
        side, here = (-1.0 if high is None else 1.0), lagrangian(p)
        beside = lagrangian(p + side * ONE_SIDED_STEP * scale)
        if here is None or beside is None:
            return None
        result = side * (beside - here) / (ONE_SIDED_STEP * scale)
    if np.isfinite(result):
        return result
    return None


def _decides(problem: ir.Problem, name: str) -> bool:
    """Whether the param is part of a variable's set or of a condition on rows: then the derivative of
    the Lagrangian is not enough."""

    def within(*parts: ir.Expr | None) -> bool:
        """Whether the parameter occurs in one of the expressions."""
        return any(
            isinstance(n, ir.Param) and n.name == name
            for part in parts
            if part is not None
            for n in ir.walk(part)
        )

    sets = (s for variable in problem.variables.values() for s in variable.sets)
    conditions = (node.condition for node in problem.expressions(ir.Reduce))
    return within(*(arg for s in sets for arg in (*s.args, s.centre))) or within(*conditions)
