"""Structure: curvature, monotonicity, smoothness and constants of every expression, each with the rule
that gave it."""

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
from fccomodel.structure.facts import Fact, Facts
from fccomodel.structure.rules import RULES

__all__ = ["RULES", "Analyser", "Analysis", "analyse", "estimate", "facts_of", "seer", "steep_at_0"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Analysis:
    """The facts of a problem: of its objective as the user wrote it, and of each constraint's body
    c(w) in c(w) <= 0.

    ``see`` gives the facts of any other expression of the problem (a family's body holds for every member);
    ``left_to_binding`` says what is asked of params and data that are not bound, which binding will check.
    """

    problem: ir.Problem
    bound: Bound | None
    objective: Facts
    constraints: Mapping[str, Facts]
    see: Analyser = field(repr=False)
    left_to_binding: Mapping[ir.Expr, str] = field(default_factory=dict, repr=False)

    @property
    def minimised(self) -> Facts:
        """The objective in the direction that is minimised: the negative of a ``maximize``."""
        if self.problem.objective.sense == "minimize":
            return self.objective
        return self.objective.negated()

    @property
    def convex(self) -> bool:
        """A convex problem: convex objective when minimised, convex inequalities, affine equations."""
        return self.minimised.convex and self.convex_constraints

    @property
    def convex_constraints(self) -> bool:
        """Convex inequalities, affine equations."""
        kinds = {c.label: c.kind for c in self.problem.constraints}
        return all(f.affine if kinds[label] == "eq" else f.convex for label, f in self.constraints.items())


def analyse(problem: ir.Problem, bound: Bound | None = None) -> Analysis:
    """The facts of every part of a problem; with data, constants that the text alone leaves open
    become numbers.

    The cost does not depend on the number of rows or on the size of families: a family is one
    expression, and a column's ends and norms are computed once. One fact takes passes over the
    data, and is sought only for what is below a root, a logarithm or a fraction's bar: its least
    value.
    """
    see = Analyser(Declarations(problem=problem))
    if bound is not None:
        see = Analyser(Declarations(problem=problem, bound=bound), base=see)
    constraints, objective = {c.label: see(c.body) for c in problem.constraints}, see(problem.objective.expr)
    left = dict(see.left_to_binding)
    return Analysis(
        problem=problem,
        bound=bound,
        objective=objective,
        constraints=constraints,
        see=see,
        left_to_binding=left,
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

    holes   where each hole's value lies, by name; a hole without an interval ranges over the reals
    params  params without a problem: a number or array, an ``ir.Parameter``, or an Interval
    """
    return seer(problem or (bound.problem if bound is not None else None), bound, holes, params)(expr)


def seer(
    problem: ir.Problem | None,
    bound: Bound | None = None,
    holes: Mapping[str, Interval] | None = None,
    params: Mapping[str, Any] | None = None,
    within: Mapping[ir.Expr, Interval] | None = None,
) -> Analyser:
    """What gives the facts of any expression of a problem, computing those of common parts once;
    arguments as of ``facts_of``.

    within  where some expressions are taken to lie
    """
    context = Declarations(
        problem=problem, holes=dict(holes or {}), values=dict(params or {}), within=dict(within or {})
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
    """Constants of an expression on the bound data, by seeded sampling, as facts of standing
    ``estimated``.

    expr     a tracked expectation ``E[..] g`` (or mean, sum, prob) with its node, or any other
             expression g. Binders free in it
             are its blocks i, of which a few are drawn; larger reductions inside are made of
             ``samples`` draws each, so that the cost depends neither on the number of rows nor on
             the number of blocks
    points   where to look, variables by name; by default the start: zero, inside the simple sets,
             nets as they are bound
    radius   points are drawn in the ball of this radius around each, inside the variables' simple sets

    Returns, by name (what could not be evaluated anywhere, and ``gradient`` of what has kinks
    there, is left out):

    interval        where the values g_i(w) were
    lipschitz       C_g, the largest |grad g_i(w)| (Frobenius norm of the Jacobian)
    gradient        L_g, the largest |grad g_i(w) - grad g_i(v)| / |w - v|, the direction by power iteration
    value noise     sigma^2 (sigma_0^2), the largest E |g_i(w; xi) - g_i(w)|^2; ``E`` and ``mean``
                    nodes only, as the next
    gradient noise  zeta^2 (sigma_1^2), the largest E |grad g_i(w; xi) - grad g_i(w)|^2 (sox-2022,
                    Assumption 2; alexr-2025,
                    Assumption 4; of a mean over blocks it is their delta^2)

    They are maxima over what was seen, hence lower bounds of the true ones.
    """
    from fccomodel.structure.estimates.sampling import Probe

    facts = Probe(problem=problem, bound=bound, expr=expr, seed=seed, samples=samples).facts(points, radius)
    if not facts_of(expr, problem=problem, bound=bound).smooth:
        facts.pop("gradient", None)
    return facts
