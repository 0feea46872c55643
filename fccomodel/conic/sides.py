"""Active sides made exact: where an interior-point method ends, conditions with a multiplier have a
slack of its tolerance.

the least |dz| such that A z' = b in rows of equations, and in half-lines whose multiplier exceeds their slack
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from fccomodel.conic.cones import Assembled
from fccomodel.conic.scaling import Found

#: The most active rows, and columns that they have, for which the equations are solved.
MOST = 1000


def exact(program: Assembled, found: Found) -> Found:
    """The point with active sides exact, where no other condition is worse met by it; else the point
    as it is."""
    kinds = np.repeat([kind for kind, *_ in program.cones], [size for _, size, _ in program.cones])
    s = program.b - program.A @ found.x
    lines = kinds == "nonneg"
    active = np.flatnonzero((kinds == "zero") | lines & (found.z > np.abs(s)))
    if not 0 < len(active) <= MOST or not np.isfinite(found.x).all():
        return found
    rows = program.A.tocsr()[active]
    columns = np.unique(rows.indices)
    if not 0 < len(columns) <= MOST:
        return found
    x = found.x.copy()
    for _ in range(2):
        x[columns] += linalg.lstsq(rows[:, columns].toarray(), (program.b - program.A @ x)[active])[0]
    after = program.b - program.A @ x
    others = ~np.isin(np.arange(len(s)), active)
    worst = max(np.abs(s[active]).max(), -s[lines].min(initial=0.0))
    moved = np.abs(after - s)[others & ~lines].max(initial=0.0)
    if (
        np.abs(after[active]).max() > worst
        or -after[lines & others].min(initial=0.0) > worst
        or moved > worst
    ):
        return found
    upper = program.P @ x
    form = x @ upper + x @ (program.P.T @ x) - x @ (program.P.diagonal() * x)
    return found._replace(x=x, obj_val=float(0.5 * form + program.q @ x))
