"""The finding that a problem has no solution, with its evidence.

The solver makes it, the report states it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a problem has no solution, as the finish concludes.

    kind       ``infeasible``: constraints conflict; ``unbounded``: the objective falls without
               bound; ``unattained``: it falls towards an infimum that no point attains
    proved     whether checked numbers prove it: multipliers (``conflict``) that no feasible point
               within ``radius`` allows; or a direction along which every feasible point stays
               feasible and the objective falls

    If ``infeasible``:

    conflict   by label, the violation v_k > 0 of each conflicting constraint at a point where the sum
               of squared violations cannot be lowered; 0 for sets of variables that hold the point
    fixed      whether the constraints in ``conflict`` contain no variable, so that no point helps
    nearest    for convex constraints: no feasible point is nearer than this to the returned one
    radius     for convex constraints: no feasible point has a smaller Euclidean norm than this

    Otherwise:

    along      the entry of a variable that grows the most, and whether it rises
    far        the largest Euclidean norm of all variables at which the objective still fell
    """

    kind: str
    conflict: Mapping[str, float] = field(default_factory=dict)
    proved: bool = False
    fixed: bool = False
    nearest: float = 0.0
    radius: float = 0.0
    along: tuple[str, bool] | None = None
    far: float = 0.0
