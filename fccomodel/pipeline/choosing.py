"""The choice of a method for an analysed problem, and the plan that settles it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fccomodel.core import options
from fccomodel.core.diagnostics import FccoError, refuse
from fccomodel.pipeline.boundary import quoted
from fccomodel.pipeline.conic_form import conic_form

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fccomodel.plan import Plan
    from fccomodel.plan.assumptions import Finding
    from fccomodel.plan.candidates import Candidate
    from fccomodel.plan.choice import Choice
    from fccomodel.structure import Analysis


@quoted
def decide(analysis: Analysis, given: options.Origins | None = None, like: Plan | None = None) -> Plan:
    """How the problem is solved: the algorithm, its normal form, and what the options leave open.

    ``like`` is the plan for other numbers: its algorithm is kept if it has the same guarantee.
    """
    return settled(choose(analysis, given or {}, None if like is None else like.choice.chosen))


def settled(choice: Choice) -> Plan:
    """The plan of a choice. Raises F06xx if nothing was chosen."""
    from fccomodel.plan import settle

    return settle(choice, choice.chosen.normal)


def choose(analysis: Analysis, given: options.Origins, like: Candidate | None = None) -> Choice:
    """The choice of a method: a stochastic algorithm, or the interior-point method.

    The interior-point method is chosen if it is named, or if no algorithm's theorem covers the model
    and the model is a conic program. Raises F0604 if it is named and the model is not one.
    """
    from fccomodel.plan import choose, errors, interior

    named = interior.named(given)
    others = {name: entry for name, entry in given.items() if not (named and name == "algorithm")}
    choice = choose(analysis, others, like)
    unsuited = choice.selected is None and all(one.code == errors.NO_ALGORITHM.id for one in choice.refusal)
    if not named and not unsuited:
        return choice
    findings = interior_point_findings(analysis, given)
    emitted = choice.selected or _nearest(choice)
    if findings is None or emitted is None:
        if named:
            refuse(errors.not_conic(), source=analysis.problem.source)
        return choice
    return replace(choice, selected=emitted, interior=findings)


def _nearest(choice: Choice) -> Candidate | None:
    """The algorithm whose program is emitted beside the answer of the interior-point method.

    It does not run before that method. None if no algorithm can run.
    """
    from fccomodel.plan.ranking import nearest

    return next((c for c in nearest(choice.candidates) if c.can_run), None)


def interior_point_findings(analysis: Analysis, given: options.Origins) -> Mapping[str, Finding] | None:
    """How the model meets the assumptions of the interior-point method, or None if it does not."""
    from fccomodel.plan import interior, settings

    if not settings.finishing(given) or settings.value(given, "unverified"):
        return None
    form = conic_form(analysis, settings.budget(given).seconds)
    if form is None:
        return None
    return interior.findings(analysis, *reversed(form.program.A.shape))


def bound_without_data(analysis: Analysis) -> Analysis | None:
    """The analysis with the model bound, if it needs no data and no values; None otherwise."""
    from fccomodel import structure
    from fccomodel.data import bind

    problem = analysis.problem
    if problem.tables or problem.nets or analysis.bound is not None:
        return None
    try:
        return structure.analyse(problem, bind.bind(problem))
    except FccoError:
        return None
