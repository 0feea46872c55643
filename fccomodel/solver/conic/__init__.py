"""Convex problems of moderate size by an interior-point method: an end for runs whose own does not converge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fccomodel.core import ir
from fccomodel.data.bound import Bound
from fccomodel.library.atoms import Interval
from fccomodel.solver.conic.affine import NotConic as NotConic
from fccomodel.solver.conic.walk import Conic, conic

#: accuracy that is asked of the method: relative gap and residuals
TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False, kw_only=True)
class Answer:
    """variables by name, multipliers by label, and how it went."""

    variables: dict[str, np.ndarray]
    multipliers: dict[str, float]
    status: str
    iterations: int


def solve(bound: Bound, where: Callable[[ir.Expr], Interval], *, seconds: float | None = None) -> Answer:
    """Raises NotConic."""
    built = conic(bound, where)
    return _solved(built, seconds)


def _solved(built: Conic, seconds: float | None) -> Answer:
    import clarabel

    program = built.program
    kinds = {
        "zero": lambda n, a: clarabel.ZeroConeT(n),
        "nonneg": lambda n, a: clarabel.NonnegativeConeT(n),
        "second_order": lambda n, a: clarabel.SecondOrderConeT(n),
        "exponential": lambda n, a: clarabel.ExponentialConeT(),
        "power": lambda n, a: clarabel.PowerConeT(a),
    }
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = TOLERANCE
    if seconds is not None:
        settings.time_limit = seconds
    cones = [kinds[kind](size, power) for kind, size, power in program.cones]
    result = clarabel.DefaultSolver(program.P, program.q, program.A, program.b, cones, settings).solve()
    z, duals = np.asarray(result.x), np.asarray(result.z)
    variables = {}
    for name, (first, shape) in built.layout.items():
        variables[name] = z[first : first + int(np.prod(shape))].reshape(shape)
    multipliers = {label: float(sign * duals[row]) for label, (row, sign) in built.rows.items()}
    return Answer(variables=variables, multipliers=multipliers, status=str(result.status), iterations=int(result.iterations))
