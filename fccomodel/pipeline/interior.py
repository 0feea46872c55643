"""Whether a problem is a conic program that the interior-point method may solve, and the plan that
rests on this method."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fccomodel.core import options
from fccomodel.core.diagnostics import FccoError, quoting, refuse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fccomodel.conic import Conic
    from fccomodel.plan.assumptions import Finding
    from fccomodel.plan.candidates import Candidate
    from fccomodel.plan.choice import Choice
    from fccomodel.structure import Analysis


def chosen(analysis: Analysis, given: options.Origins, like: Candidate | None = None) -> Choice:
    """The choice of a method: a stochastic algorithm; where none is covered, or the interior-point
    method is named, this one if the model is a conic program. F0604 where it is named and the model
    is none."""
    from fccomodel.plan import choose, errors, interior

    named = interior.named(given)
    others = {name: entry for name, entry in given.items() if not (named and name == "algorithm")}
    choice = choose(analysis, others, like)
    unsuited = choice.selected is None and all(one.code == errors.NO_ALGORITHM.id for one in choice.refusal)
    if not named and not unsuited:
        return choice
    found = findings(analysis, given)
    emitted = choice.selected or _nearest(choice)
    if found is None or emitted is None:
        if named:
            refuse(errors.not_conic(), source=analysis.problem.source)
        return choice
    return replace(choice, selected=emitted, interior=found)


def _nearest(choice: Choice) -> Candidate | None:
    """The algorithm whose program is emitted beside the answer; it is not run before the
    interior-point method."""
    from fccomodel.plan.ranking import nearest

    return next((c for c in nearest(choice.candidates) if c.can_run), None)


def findings(analysis: Analysis, given: options.Origins) -> Mapping[str, Finding] | None:
    """How the model meets the method's assumptions; None where it does not."""
    from fccomodel.plan import interior, settings

    if not settings.finishing(given) or settings.value(given, "unverified"):
        return None
    route = conic_form(analysis, settings.budget(given).seconds)
    if route is None:
        return None
    return interior.findings(analysis, *reversed(route.program.A.shape))


def conic_form(analysis: Analysis, seconds: float | None) -> Conic | None:
    """A bound problem of a convex objective and a convex set as a conic program of moderate size, if
    it is one, where the method is foreseen to take no longer than the budget in seconds; a budget
    of steps or oracle calls has no time for it."""
    from fccomodel import conic

    if seconds is None or analysis.bound is None or not convex(analysis):
        return None
    with quoting(analysis.problem.source):
        route = conic.of(analysis.bound, lambda expr: analysis.see(expr).interval.value)
    return route if route is not None and conic.cost(route) <= seconds else None


def convex(analysis: Analysis) -> bool:
    """Whether the objective is convex, on a convex set."""
    return analysis.minimised.convex and _convex_set(analysis)


def _convex_set(analysis: Analysis) -> bool:
    """The constraints hold on a convex set, by what is known of each."""
    kept = [c for c in analysis.problem.constraints if not analysis.constraints[c.label].affine]
    if any(c.kind == "eq" for c in kept):
        return False
    if all(analysis.see(c.body).convex for c in kept):
        return True
    from fccomodel.conic import level_sets  # loads much

    return all(level_sets.convex(c.body, analysis.see) for c in kept)


def bound_without_data(analysis: Analysis) -> Analysis | None:
    """The analysis of a model that needs no data and no values, bound; None where it needs some."""
    from fccomodel import structure
    from fccomodel.data import bind

    problem = analysis.problem
    if problem.tables or problem.nets or analysis.bound is not None:
        return None
    try:
        return structure.analyse(problem, bind.bind(problem))
    except FccoError:
        return None
