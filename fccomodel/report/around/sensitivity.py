"""How fast the optimal value changes with a param: the derivative of the Lagrangian by it, at the
optimum and its multipliers (the envelope theorem: P. Milgrom, I. Segal, Envelope theorems for
arbitrary choice sets, Econometrica 70, 2002)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fccomodel.core import ir
from fccomodel.core.diagnostics import FccoError
from fccomodel.data import rebinding
from fccomodel.data.bound import Bound
from fccomodel.report.new_rows.intervals import values

#: Steps of differences, relative to the param where it is above 1: to both sides, and to one.
BOTH, ONE = 1e-5, 1e-7


def slope(
    bound: Bound, point: Mapping[str, np.ndarray], multipliers: Mapping[str, float], name: str
) -> float | None:
    """d/dp of f(w; p) + sum of nu_k c_k(w; p), in the model's sense (of a maximum: f - ...), for the
    scalar param p of that name.

    multipliers   of the minimised problem, by label None where it decides sizes, sets of variables
                  or which rows are taken, where p is no scalar, or the value is not finite.
    """
    value = bound.params.get(name)
    if value is None or np.ndim(value) or _decides(bound.problem, name):
        return None
    sign = 1.0 if bound.problem.objective.sense == "minimize" else -1.0

    def lagrangian(at: float) -> float | None:
        try:
            other = rebinding.with_values(bound, {name: at})
            if other is None:
                return None
            found, labels, _ = values(other, point)
        except FccoError:
            return None
        nu = np.array([multipliers.get(label, 0.0) for label in labels])
        return float(found[0] + sign * (nu @ found[1:] if nu.any() else 0.0))

    p, scale = float(value), max(1.0, abs(float(value)))
    low, high = lagrangian(p - BOTH * scale), lagrangian(p + BOTH * scale)
    if low is not None and high is not None:
        result = (high - low) / (2 * BOTH * scale)
    else:
        side, here = (-1.0 if high is None else 1.0), lagrangian(p)
        beside = lagrangian(p + side * ONE * scale)
        if here is None or beside is None:
            return None
        result = side * (beside - here) / (ONE * scale)
    return result if np.isfinite(result) else None


def _decides(problem: ir.Problem, name: str) -> bool:
    """The param is part of a variable's set, or of a condition on rows: then the Lagrangian alone does
    not tell."""

    def within(*parts: ir.Expr | None) -> bool:
        return any(
            isinstance(n, ir.Param) and n.name == name
            for part in parts
            if part is not None
            for n in ir.walk(part)
        )

    sets = (s for variable in problem.variables.values() for s in variable.sets)
    conditions = (node.condition for node in problem.expressions(ir.Reduce))
    return within(*(arg for s in sets for arg in (*s.args, s.centre))) or within(*conditions)
