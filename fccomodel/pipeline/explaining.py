"""Explanations of a model: its structure, and the plan by which it would be solved. Data are optional."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from fccomodel.core import options
from fccomodel.core.diagnostics import Diagnostic, FccoError
from fccomodel.pipeline import availability, choosing
from fccomodel.pipeline.boundary import quoted
from fccomodel.pipeline.records import Binding, Compiled
from fccomodel.pipeline.rows import with_parameters
from fccomodel.pipeline.stages import analyse, rows, with_members

if TYPE_CHECKING:
    from fccomodel.data.bound import Bound
    from fccomodel.plan import Plan
    from fccomodel.plan.assumptions import Finding
    from fccomodel.plan.candidates import Candidate
    from fccomodel.structure import Analysis


@dataclass(frozen=True, eq=False, kw_only=True)
class Explained:
    """The structure of a model, with its data or without, and its plan.

    analysis    the structure
    given       the options that are given, with their origins
    plan        the plan, or None if no method solves the model
    candidates  every algorithm, with the assumptions that the model does not meet; empty if the problem
                has no normal form
    refusal     the reasons why no method solves the model
    """

    analysis: Analysis
    given: options.Origins = field(default_factory=dict)
    plan: Plan | None = None
    candidates: Mapping[str, Candidate] = field(default_factory=dict)
    refusal: tuple[Diagnostic, ...] = ()

    def __reduce__(self) -> tuple[Callable[..., Explained], tuple[Any, ...]]:
        """Pickle without the plan, which is made again (see ``Planned``)."""
        return explained, (self.analysis, self.given)


def explain(
    compiled: Compiled, binding: Binding, chosen: options.Origins, *, bound: Bound | None = None
) -> Explained:
    """The structure of a model and its plan, or the reasons why it has none."""
    chosen, set_aside = availability.available(chosen)
    explanation = explained(_known(compiled, binding, chosen, bound), chosen)
    if explanation.plan is None:
        return explanation
    return replace(explanation, plan=replace(explanation.plan, unused=(*set_aside, *explanation.plan.unused)))


@quoted
def explained(analysis: Analysis, given: options.Origins) -> Explained:
    """The explanation of a model whose structure is known."""
    from fccomodel.normal_form import errors
    from fccomodel.plan.methods import choose_method

    try:
        choice = choose_method(analysis, given)
        if choice.selected is None:
            bound = choosing.bound_without_data(analysis)
            if bound is not None:
                choice = choose_method(bound, given)
    except FccoError as error:
        if any(d.code not in errors.FORMLESS for d in error.diagnostics):
            raise
        return Explained(analysis=analysis, given=given, refusal=error.diagnostics)
    if choice.selected is None:
        return Explained(analysis=analysis, given=given, candidates=choice.candidates, refusal=choice.refusal)
    plan = choosing.settled(choice)
    return Explained(analysis=analysis, given=given, plan=plan, candidates=choice.candidates)


@quoted
def candidates(
    compiled: Compiled, binding: Binding, chosen: options.Origins
) -> tuple[Mapping[str, Candidate], Mapping[str, Finding] | None]:
    """The findings about the assumptions of every algorithm, and of the interior-point method.

    The second value is None if the model does not meet the assumptions of the interior-point method;
    this check needs all data.
    """
    from fccomodel.plan import candidates as considered
    from fccomodel.plan.methods import interior_point_findings

    known = _known(compiled, binding, chosen)
    findings = interior_point_findings(choosing.bound_without_data(known) or known, chosen)
    return considered.candidates(known, chosen), findings


def _known(
    compiled: Compiled, binding: Binding, chosen: options.Origins, bound: Bound | None = None
) -> Analysis:
    """The structure of a model with the given data, or by its text and the given params alone."""
    if bound is None and binding:
        bound, _ = rows(compiled, binding, chosen)
    if bound is None:
        return analyse(with_parameters(compiled.problem, binding))
    bound = with_members(bound)
    return analyse(bound.problem, bound)
