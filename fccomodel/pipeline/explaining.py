"""What is known of a model and how it would be solved. No data is needed."""

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
    """What was found about a model, with its data or without, and how it would be solved.

    given       the options given, with their origins
    plan        None if nothing solves it: ``refusal`` says what it lacks
    candidates  every algorithm with what it lacks; none if the problem has no normal form
    """

    analysis: Analysis
    given: options.Origins = field(default_factory=dict)
    plan: Plan | None = None
    candidates: Mapping[str, Candidate] = field(default_factory=dict)
    refusal: tuple[Diagnostic, ...] = ()

    def __reduce__(self) -> tuple[Callable[..., Explained], tuple[Any, ...]]:
        """Pickled without its plan, which is made anew (see ``Planned``)."""
        return explained, (self.analysis, self.given)


def explain(
    compiled: Compiled, binding: Binding, chosen: options.Origins, *, bound: Bound | None = None
) -> Explained:
    """What is known of a model, and how it would be solved or why not."""
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
    """How the model meets the assumptions of every algorithm, and of the interior-point method.

    The second result is None if the model does not meet those of the interior-point method. To find
    out needs all data.
    """
    from fccomodel.plan import candidates as considered
    from fccomodel.plan.methods import interior_point_findings

    known = _known(compiled, binding, chosen)
    findings = interior_point_findings(choosing.bound_without_data(known) or known, chosen)
    return considered.candidates(known, chosen), findings


def _known(
    compiled: Compiled, binding: Binding, chosen: options.Origins, bound: Bound | None = None
) -> Analysis:
    """The structure with the data at hand, or by the text and the values of params alone."""
    if bound is None and binding:
        bound, _ = rows(compiled, binding, chosen)
    if bound is None:
        return analyse(with_parameters(compiled.problem, binding))
    bound = with_members(bound)
    return analyse(bound.problem, bound)
