"""Structure: curvature, monotonicity, smoothness and constants of every expression, each with the rule that gave it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fccomodel import ir
from fccomodel.atoms import Interval
from fccomodel.bound import Bound
from fccomodel.facts import Facts
from fccomodel.structure._analyser import Analyser
from fccomodel.structure._context import Context
from fccomodel.structure.rules import RULES

__all__ = ["RULES", "Analysis", "analyse", "facts_of"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Analysis:
    """The facts of a problem: of its objective as the user wrote it, and of each constraint's body c(w) in c(w) <= 0.

    ``see`` gives the facts of any other expression of the problem (a family's body holds for every member).
    """

    problem: ir.Problem
    bound: Bound | None
    objective: Facts
    constraints: Mapping[str, Facts]
    see: Analyser = field(repr=False)

    @property
    def minimised(self) -> Facts:
        """The objective in the direction that is minimised: the negative of a ``maximize``."""
        return self.objective if self.problem.objective.sense == "minimize" else self.objective.negated()

    @property
    def convex(self) -> bool:
        """A convex problem: convex objective when minimised, convex inequalities, affine equations."""
        kinds = {c.label: c.kind for c in self.problem.constraints}
        return self.minimised.convex and all(
            f.affine if kinds[label] == "eq" else f.convex for label, f in self.constraints.items()
        )


def analyse(problem: ir.Problem, bound: Bound | None = None) -> Analysis:
    """The facts of every part of a problem; with data, constants that the text alone leaves open become numbers.

    The cost does not depend on the number of rows or on the size of families: a family is one expression, and a column's
    ends and norms are computed once.
    """
    see = Analyser(Context(problem=problem))
    if bound is not None:
        see = Analyser(Context(problem=problem, bound=bound), base=see)
    constraints = {c.label: see(c.body) for c in problem.constraints}
    return Analysis(problem=problem, bound=bound, objective=see(problem.objective.expr), constraints=constraints, see=see)


def facts_of(
    expr: ir.Expr,
    *,
    holes: Mapping[str, Interval] | None = None,
    params: Mapping[str, Any] | None = None,
    problem: ir.Problem | None = None,
    bound: Bound | None = None,
) -> Facts:
    """The facts of any expression, as a function of its variables and holes.

    holes   where each hole's value lies, by name; a hole without an interval ranges over the reals
    params  params without a problem: a number or array, an ``ir.Parameter``, or an Interval
    """
    problem = problem or (bound.problem if bound is not None else None)
    see = Analyser(Context(problem=problem, holes=dict(holes or {}), values=dict(params or {})))
    if bound is not None:
        see = Analyser(Context(problem=problem, bound=bound, holes=dict(holes or {}), values=dict(params or {})), base=see)
    return see(expr)
