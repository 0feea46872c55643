"""That a problem has no solution, with the evidence: the solver concludes it, the report states it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a problem has no solution, as the finish concludes.

    kind       ``infeasible``: constraints conflict; ``unbounded``: the objective falls for ever;
               ``unattained``: it falls towards
               an infimum that no point attains
    conflict   infeasible: v_k > 0, the violations whose squares' sum cannot be lowered, by label,
               and 0 for sets of variables
               that hold the point
    proved     by numbers of ours that were checked: multipliers of the constraints, ``conflict``,
               that no feasible point allows
               (within ``radius``); or a direction along which every feasible point stays feasible
               and the objective falls
    fixed      infeasible: the constraints ``conflict`` have no variable, so that no point changes
               what they are violated by
    nearest    infeasible: where constraints are convex, no feasible point is nearer to the one returned
    radius     infeasible: where constraints are convex, no feasible point has a smaller Euclidean
               norm of all variables
    along      otherwise: the entry of a variable that grows the most, and whether it rises
    far        otherwise: the largest norm of all variables at which the objective was still seen to fall
    """

    kind: str
    conflict: Mapping[str, float] = field(default_factory=dict)
    proved: bool = False
    fixed: bool = False
    nearest: float = 0.0
    radius: float = 0.0
    along: tuple[str, bool] | None = None
    far: float = 0.0
