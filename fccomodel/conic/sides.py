"""Correction of a solution whose active constraints have a slack of the method's tolerance.

The corrected point is the nearest one at which the active constraints hold as equations: the
equations, and the inequalities whose multiplier is larger than their slack.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from fccomodel.conic.cones import Assembled
from fccomodel.conic.scaling import Outcome

#: The largest number of active rows, and of their columns, for which the equations are solved.
MAX_ACTIVE = 1000


def exact(program: Assembled, outcome: Outcome) -> Outcome:
    """The outcome with exact active constraints, or the given one if another condition would get worse."""
    kinds = np.repeat([kind for kind, *_ in program.cones], [size for _, size, _ in program.cones])
    s = program.b - program.A @ outcome.x
    lines = kinds == "nonneg"
    active = np.flatnonzero((kinds == "zero") | lines & (outcome.z > np.abs(s)))
    if not 0 < len(active) <= MAX_ACTIVE or not np.isfinite(outcome.x).all():
        return outcome
    rows = program.A.tocsr()[active]
    columns = np.unique(rows.indices)
    if not 0 < len(columns) <= MAX_ACTIVE:
        return outcome
    x = outcome.x.copy()
    for _ in range(2):
        x[columns] += linalg.lstsq(rows[:, columns].toarray(), (program.b - program.A @ x)[active])[0]
    after = program.b - program.A @ x
    others = ~np.isin(np.arange(len(s)), active)
    worst = max(np.abs(s[active]).max(), -s[lines].min(initial=0.0))
    left = np.abs(after[active]).max()
    violated = -after[lines & others].min(initial=0.0)
    changed = np.abs(after - s)[others & ~lines].max(initial=0.0)
    if left > worst or violated > worst or changed > worst:
        return outcome
    upper = program.P @ x
    form = x @ upper + x @ (program.P.T @ x) - x @ (program.P.diagonal() * x)
    return outcome._replace(x=x, obj_val=float(0.5 * form + program.q @ x))
