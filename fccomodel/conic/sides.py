"""Correction of a solution whose active constraints have a slack of the method's tolerance.

The corrected point is the nearest one at which the active constraints hold as equations: the
equations, and the inequalities whose multiplier is larger than their slack.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from fccomodel.conic.cones import Assembled
from fccomodel.conic.scaling import MethodOutcome

#: The largest number of active rows, and of their columns, for which the equations are solved.
MAX_ACTIVE = 1000
#: How often the equations are solved; the second time removes the rounding of the first.
CORRECTIONS = 2


def exact(program: Assembled, outcome: MethodOutcome) -> MethodOutcome:
    """The outcome with exact active constraints, or the given one if another condition would get worse."""
    kinds = [kind for kind, *_ in program.cones]
    sizes = [size for _, size, _ in program.cones]
    kind_of_row = np.repeat(kinds, sizes)
    inequality = kind_of_row == "nonneg"
    slack = program.b - program.A @ outcome.x
    binding = inequality & (outcome.z > np.abs(slack))
    equation = kind_of_row == "zero"
    active = np.flatnonzero(equation | binding)
    if not 0 < len(active) <= MAX_ACTIVE or not np.isfinite(outcome.x).all():
        return outcome
    rows = program.A.tocsr()[active]
    columns = np.unique(rows.indices)
    if not 0 < len(columns) <= MAX_ACTIVE:
        return outcome
    x = outcome.x.copy()
    equations = rows[:, columns].toarray()
    for _ in range(CORRECTIONS):
        residual = (program.b - program.A @ x)[active]
        correction, *_ = linalg.lstsq(equations, residual)
        x[columns] += correction
    after = program.b - program.A @ x
    others = ~np.isin(np.arange(len(slack)), active)
    largest_at_bounds = np.abs(slack[active]).max()
    largest_violation = -slack[inequality].min(initial=0.0)
    worst = max(largest_at_bounds, largest_violation)
    left = np.abs(after[active]).max()
    violated = -after[inequality & others].min(initial=0.0)
    in_other_cones = others & ~inequality
    changed = np.abs(after - slack)[in_other_cones].max(initial=0.0)
    if left > worst or violated > worst or changed > worst:
        return outcome
    # P has the upper triangle of the quadratic form alone.
    upper = x @ (program.P @ x)
    lower = x @ (program.P.T @ x)
    diagonal = x @ (program.P.diagonal() * x)
    form = upper + lower - diagonal
    value = 0.5 * form + program.q @ x
    return outcome._replace(x=x, obj_val=float(value))
