"""Bounds of the distance between the origin and a feasible point or an optimum, from the analysis."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fccomodel.core import ir
from fccomodel.evaluation.sets import draws, elements
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
    if kind == "unattained" and _of_polyhedral_pieces(analysis):
        return (
            "a convex function of linear and quadratic pieces with linear constraints has a least value "
            "unless it is unbounded"
        )
    return ""


def _of_polyhedral_pieces(analysis: Analysis) -> bool:
    """Whether the minimised function is convex and piecewise linear-quadratic over a polyhedron.

    The constraints are affine, or convex and piecewise linear; the sets of the variables are intervals for
    each entry. Means over draws may be of polynomials alone: other functions have no finite number of
    pieces then. Such a function attains its infimum if that is finite (M. Frank and P. Wolfe, An algorithm
    for quadratic programming, 1956; R. T. Rockafellar and R. J.-B. Wets, Variational Analysis, Corollary
    11.16).
    """
    f, problem = analysis.minimised, analysis.problem
    listed = not draws.drawn(problem)
    if not f.convex or not (f.degree in (0, 1, 2) or listed and f.pieces is not None):
        return False
    rows = [analysis.constraints[constraint.label] for constraint in problem.constraints]
    for constraint, row in zip(problem.constraints, rows, strict=True):
        piecewise_linear = listed and constraint.kind == "le" and row.convex and row.pieces in (0, 1)
        if not row.affine and not piecewise_linear:
            return False
    curvatures = [fact for g in (f, *rows) for fact in (g.below, g.above) if fact.value.zero]
    if max(fact.standing for fact in curvatures) > Standing.BOUNDED:
        return False
    domains = [domain for variable in problem.variables.values() for domain in variable.sets]
    return all(sets.all()[domain.family].entrywise for domain in domains)
