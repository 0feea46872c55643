"""Structure: curvature, monotonicity, smoothness and constants of every expression.

Each fact names the rule that gave it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fccomodel.core import ir
from fccomodel.data.bound import Bound
from fccomodel.library.atoms import Interval
from fccomodel.structure.analyser import Analyser
from fccomodel.structure.declarations import Declarations
from fccomodel.structure.estimates.steep import steep_at_0
from fccomodel.structure.facts import Fact, Facts, Standing
from fccomodel.structure.rules import RULES

__all__ = ["RULES", "Analyser", "Analysis", "analyse", "estimate", "facts_of", "seer", "steep_at_0"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Analysis:
    """The facts of a problem.

    objective        facts of the objective as the user wrote it
    constraints      by label, facts of the body c(w) of c(w) <= 0 (of a family: for every member)
    see              gives the facts of any other expression of the problem
    left_to_binding  conditions on params and data that are not bound yet; binding checks them
    """

    problem: ir.Problem
    bound: Bound | None
    objective: Facts
    constraints: Mapping[str, Facts]
    see: Analyser = field(repr=False)
    left_to_binding: Mapping[ir.Expr, str] = field(default_factory=dict, repr=False)

    @property
    def minimised(self) -> Facts:
        """Facts of the function that is minimised: the negated objective of a ``maximize``."""
        if self.problem.objective.sense == "minimize":
            return self.objective
        return self.objective.negated()

    @property
    def convex(self) -> bool:
        """Whether the problem is convex: convex minimised objective and ``convex_constraints``."""
        return self.minimised.convex and self.convex_constraints

    @property
    def convex_constraints(self) -> bool:
        """Whether all inequalities are convex and all equations affine."""
        kinds = {c.label: c.kind for c in self.problem.constraints}
        return all(f.affine if kinds[label] == "eq" else f.convex for label, f in self.constraints.items())

    @property
    def convex_for_sure(self) -> bool:
        """Whether the problem is convex, by facts that are proved or bounded from data, none assumed."""
        if not self.convex:
            return False
        known = [self.minimised.below]
        for constraint in self.problem.constraints:
            facts = self.constraints[constraint.label]
            known.append(facts.below)
            if constraint.kind == "eq":
                known.append(facts.above)
        return all(fact.standing <= Standing.BOUNDED for fact in known)


def analyse(problem: ir.Problem, bound: Bound | None = None) -> Analysis:
    """The facts of the objective and of every constraint of a problem.

    With data, constants that the text alone leaves open become numbers. The cost does not depend on
    the number of rows or on the size of families: a family is one expression, and the ends and norms
    of a column are computed once. Only least values take passes over the data; they are computed
    only for the arguments of roots and logarithms and for denominators.
    """
    see = Analyser(Declarations(problem=problem))
    if bound is not None:
        see = Analyser(Declarations(problem=problem, bound=bound), base=see)
    constraints = {c.label: see(c.body) for c in problem.constraints}
    objective = see(problem.objective.expr)
    return Analysis(
        problem=problem,
        bound=bound,
        objective=objective,
        constraints=constraints,
        see=see,
        left_to_binding=dict(see.left_to_binding),
    )


def facts_of(
    expr: ir.Expr,
    *,
    holes: Mapping[str, Interval] | None = None,
    params: Mapping[str, Any] | None = None,
    problem: ir.Problem | None = None,
    bound: Bound | None = None,
) -> Facts:
    """The facts of any expression, as a function of its variables and holes.

    holes   interval of each hole's values, by name; a hole without an interval ranges over the reals
    params  params without a problem: a number or array, an ``ir.Parameter``, or an Interval
    """
    if problem is None and bound is not None:
        problem = bound.problem
    return seer(problem, bound, holes, params)(expr)


def seer(
    problem: ir.Problem | None,
    bound: Bound | None = None,
    holes: Mapping[str, Interval] | None = None,
    params: Mapping[str, Any] | None = None,
    within: Mapping[ir.Expr, Interval] | None = None,
) -> Analyser:
    """An analyser that gives the facts of any expression and analyses common parts only once.

    The arguments are those of ``facts_of``, and

    within  intervals in which some expressions are assumed to lie
    """
    context = Declarations(
        problem=problem,
        holes=dict(holes or {}),
        values=dict(params or {}),
        within=dict(within or {}),
    )
    see = Analyser(context)
    if bound is None:
        return see
    return Analyser(replace(context, bound=bound), base=see)


def estimate(
    problem: ir.Problem,
    bound: Bound,
    expr: ir.Expr,
    *,
    seed: int = 0,
    samples: int = 32,
    points: Sequence[Mapping[str, Any]] = (),
    radius: float = 1.0,
) -> dict[str, Fact]:
    """Constants of an expression on the bound data by seeded sampling: facts of standing ``estimated``.

    expr     a tracked expectation ``E[..] g`` (or mean, sum, prob) with its node, or any other
             expression g. Its free binders are its blocks i; a few blocks are drawn. Larger
             reductions inside use ``samples`` draws each. So the cost depends neither on the number
             of rows nor on the number of blocks
    points   centres of the search, variables by name; by default the start: zero projected into the
             simple sets, nets as they are bound
    radius   points are drawn in the ball of this radius around each centre, inside the simple sets

    Returns, by name (a constant that could not be evaluated anywhere is left out; so is ``gradient``
    if the expression has kinks):

    interval        range of the values g_i(w) that were seen
    lipschitz       C_g, the largest |grad g_i(w)| (Frobenius norm of the Jacobian)
    gradient        L_g, the largest |grad g_i(w) - grad g_i(v)| / |w - v|, directions by power iteration
    value noise     sigma^2 (sigma_0^2), the largest E |g_i(w; xi) - g_i(w)|^2; only for ``E`` and ``mean``
    gradient noise  zeta^2 (sigma_1^2), the largest E |grad g_i(w; xi) - grad g_i(w)|^2 (sox-2022,
                    Assumption 2; alexr-2025, Assumption 4; for a mean over blocks it is their
                    delta^2); only for ``E`` and ``mean``

    All are maxima over the sample, hence lower bounds of the true constants.
    """
    from fccomodel.structure.estimates.sampling import Probe

    probe = Probe(problem=problem, bound=bound, expr=expr, seed=seed, samples=samples)
    facts = probe.facts(points, radius)
    if not facts_of(expr, problem=problem, bound=bound).smooth:
        facts.pop("gradient", None)
    return facts
