"""The choice of a method: a stochastic algorithm, or the interior-point method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fccomodel.core import options
from fccomodel.core.diagnostics import refuse
from fccomodel.plan import errors, interior, settings
from fccomodel.plan.assumptions import Finding
from fccomodel.plan.candidates import Candidate
from fccomodel.plan.choice import Choice, choose
from fccomodel.plan.conic_form import conic_form
from fccomodel.plan.ranking import nearest
from fccomodel.structure import Analysis


def choose_method(analysis: Analysis, given: options.Origins, like: Candidate | None = None) -> Choice:
    """The choice of a method: a stochastic algorithm, or the interior-point method.

    The interior-point method is chosen if it is named, or if no algorithm's theorem covers the model
    and the model is a conic program. Raises F0604 if it is named and the model is not one.
    """
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
    return next((c for c in nearest(choice.candidates) if c.can_run), None)


def interior_point_findings(analysis: Analysis, given: options.Origins) -> Mapping[str, Finding] | None:
    """How the model meets the assumptions of the interior-point method, or None if it does not."""
    if not settings.finishing(given) or settings.value(given, "unverified"):
        return None
    form = conic_form(analysis, settings.budget_of(given).seconds)
    if form is None:
        return None
    return interior.findings(analysis, *reversed(form.program.A.shape))
