"""Bounds of the distance between the origin and a feasible point or an optimum, from the analysis."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fccomodel.core import ir
from fccomodel.evaluation.sets import elements
from fccomodel.library import sets
from fccomodel.report.quadratic_parts import sizes
from fccomodel.structure.facts import Standing

if TYPE_CHECKING:
    from fccomodel.report.certificates.gap import Gap
    from fccomodel.structure import Analysis

#: The Euclidean norm of n entries is at most the norm of a ``quadratic_parts.Size`` times this power
#: of n, by the ball's kind; 0 for others.
POWERS = {"cross": 0.5, "nuclear": 0.25}


def of_feasible(analysis: Analysis) -> float:
    """The largest Euclidean norm of all variables of a feasible point, from their sets and from
    constraints on norms of single variables; inf if no bound is known."""
    problem, see, bound = analysis.problem, analysis.see, analysis.bound
    radii: dict[str, float] = {}
    for name, variable in problem.variables.items():
        fact = see(ir.Var(name=name, shape=variable.shape)).size
        if fact.standing <= Standing.BOUNDED:
            radii[name] = fact.value.number
        else:
            radii[name] = math.inf
    for constraint in problem.constraints:
        if constraint.binders:
            continue
        signs = (1.0,) if constraint.kind == "le" else (1.0, -1.0)
        for sign in signs:
            for size in sizes(constraint.body, sign, 0.0, see):
                shape = problem.variables[size.variable].shape
                if bound is None:
                    count = 1
                else:
                    count = math.prod(elements.shape(bound, shape))
                radius = size.radius * count ** POWERS.get(size.ball, 0.0)
                radii[size.variable] = min(radii[size.variable], radius)
    return math.hypot(*radii.values()) * (1 + 1e-9)


def excluded(analysis: Analysis, gap: Gap | None, kind: str) -> str:
    """Why the objective cannot fall for ever (``unbounded``) or towards an infimum that no point
    attains (``unattained``); "" if nothing is known to exclude it."""
    fact = analysis.minimised
    known = fact.interval.standing <= Standing.BOUNDED
    if kind == "unbounded" and known and fact.interval.value.lo > -math.inf:
        return "the objective is proved to be bounded"
    if gap is not None and gap.value is not None and not gap.loose:
        return f"an optimum is proved to be near, by {gap.how}"
    if not fact.domain and math.isfinite(of_feasible(analysis)):
        return "the variables are bounded"
    if kind == "unattained" and _linear_or_quadratic(analysis):
        return "a convex quadratic function with linear constraints has a least value unless it is unbounded"
    return ""


def _linear_or_quadratic(analysis: Analysis) -> bool:
    """Whether the minimised function is convex of degree 2 at most, the constraints are affine, and the
    sets of the variables are intervals for each entry.

    Such a function attains its infimum if that is finite (M. Frank and P. Wolfe, An algorithm for
    quadratic programming, 1956).
    """
    f, rows = analysis.minimised, list(analysis.constraints.values())
    if not f.convex or f.degree is None or f.degree > 2 or not all(row.affine for row in rows):
        return False
    curvatures = [fact for g in (f, *rows) for fact in (g.below, g.above)]
    if max(fact.standing for fact in curvatures) > Standing.BOUNDED:
        return False
    domains = [domain for variable in analysis.problem.variables.values() for domain in variable.sets]
    return all(sets.all()[domain.family].entrywise for domain in domains)
