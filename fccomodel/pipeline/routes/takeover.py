"""Steps with limited patience, and the interior-point method if the report does not find them at the
optimum."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fccomodel.core.diagnostics import FccoError, refuse
from fccomodel.evaluation.sets import draws
from fccomodel.pipeline.choosing import settled as settled_plan
from fccomodel.pipeline.endings import ending
from fccomodel.pipeline.routes import interior_point, patience
from fccomodel.pipeline.routes.judging import better, judged, negligible, settled
from fccomodel.pipeline.routes.records import Answer, Request
from fccomodel.pipeline.routes.steps import ran
from fccomodel.pipeline.stages import emit
from fccomodel.plan.errors import not_conic

if TYPE_CHECKING:
    from fccomodel import conic
    from fccomodel.core.failure import Failure
    from fccomodel.execution.run import Solution
    from fccomodel.pipeline.records import Planned
    from fccomodel.program.emit import Program

#: Codes of what was asked for (files, a device, a backend) begin so: the answer of another method
#: does not make up for such an error.
ASKED_FOR = "F08"


def planned(request: Request) -> Answer | None:
    """The answer of a plan that rests on the interior-point method alone; None for another plan.

    It may also be this method's proof that there is no optimum, or the answer of the steps if the
    report finds it to be one. Otherwise the model is refused, as no theorem covers it.
    """
    plan = request.planned.plan
    if not plan.interior:
        return None
    request = replace(request, progress=None)
    if request.form is not None:
        answer = interior_point.alone(request, request.form)
        if answer is not None:
            return answer
        answer = _answer(request, patience.SHORTEST)
        solution = answer.solution
        if solution.interior or solution.failure is not None or solution.interrupted:
            return answer
        if answer.report.solved:
            by_steps = settled_plan(replace(plan.choice, interior=None))
            return replace(answer, planned=replace(answer.planned, plan=by_steps))
    refuse(*(plan.choice.refusal or (not_conic(),)), source=request.planned.problem.source)


def after_steps(request: Request) -> Answer | None:
    """The answer of the steps, or of the interior-point method, whichever is better."""
    assert request.patience is not None
    return _answer(request, request.patience)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Steps:
    """The end of steps with limited patience.

    solution  None if the run, or the report on where it ended, raised ``error``
    answer    the solution with its report, once that is made
    """

    request: Request
    planned: Planned
    program: Program
    solution: Solution | None = None
    answer: Answer | None = None
    error: FccoError | None = None

    def judged(self, solution: Solution | None = None) -> Answer:
        """The report on where the steps ended, or on another solution in its place."""
        solution = solution or self.solution
        assert solution is not None
        return judged(self.request, self.planned, self.program, solution)

    def again(self) -> Answer:
        """A run with the whole budget, with its report."""
        return judged(self.request, *self.ran_again())

    def ran_again(self) -> tuple[Planned, Program, Solution]:
        """A run with the whole budget; the steps themselves if less time is left than they took."""
        left = self.request.deadlines.seconds_for(0.0)
        if self.solution is not None and left is not None and left < self.solution.wall_s:
            return self.planned, self.program, self.solution
        return ran(self.request, self.planned, part="again")


def _answer(request: Request, seconds: float) -> Answer:
    """The answer of steps for at most this many counted seconds, or of the method that takes over from
    them.
    """
    steps = _steps(request, seconds)
    if steps.answer is not None and _enough(steps.answer):
        return steps.answer
    form = request.form
    if form is None:  # the patience was for other numbers
        if steps.answer is not None and steps.answer.solution.failure is not None:
            return steps.answer
        return steps.again()
    outcome, interrupted = interior_point.solved(form, request.deadlines)
    if not isinstance(outcome, str):
        return _better_of(steps, outcome)
    if interrupted and steps.solution is not None:
        solution = replace(steps.solution, ended="interrupted", stopped="interrupted")
        if steps.answer is not None:
            return replace(steps.answer, solution=solution)
        return steps.judged(solution)
    if steps.solution is None:
        raise steps.error or AssertionError(outcome)
    return _without_optimum(steps, steps.solution, form, outcome)


def _steps(request: Request, seconds: float) -> _Steps:
    """Run steps for at most this many counted seconds, and report on them if they claim to have ended."""
    try:
        planned, program, solution = ran(request, request.planned, patience=seconds)
    except FccoError as error:
        if any(diagnostic.code.startswith(ASKED_FOR) for diagnostic in error.diagnostics):
            raise
        return _Steps(request=request, planned=request.planned, program=emit(request.planned), error=error)
    steps = _Steps(request=request, planned=planned, program=program, solution=solution)
    if solution.status not in ("converged", "interrupted", "unattained"):
        return steps
    try:
        answer = steps.judged()
    except FccoError as error:  # it ended where a function has no gradient
        return replace(steps, solution=None, error=error)
    return replace(steps, solution=answer.solution, answer=answer)


def _enough(answer: Answer) -> bool:
    """Whether nothing takes over: steps were interrupted, draw samples, or ended at the optimum."""
    if answer.solution.interrupted or draws.drawn(answer.planned.problem):
        return True
    gap = answer.report.gap
    optimal = settled(answer) and gap is not None and negligible(answer.report, gap.value)
    return optimal and answer.report.solved and answer.solution.failure is None


def _better_of(steps: _Steps, optimum: conic.ConicAnswer) -> Answer:
    """The better of the steps' answer and the interior-point method's."""
    first, solution = steps.answer, steps.solution
    if first is not None and settled(first, 1):
        if negligible(first.report, first.report.objective - optimum.objective):
            return first
    try:
        second = steps.judged(interior_point.as_solution(optimum, solution))
    except FccoError:  # by rounding, its answer is where a function is not defined
        return first or steps.again()
    if solution is None:
        return second
    if solution.status in ("unbounded", "unattained") and not _attained(second):
        first = first or steps.judged()
        if first.report.failure:  # else the report finds no such fall
            return first
    if settled(second) or second.solution.interrupted:
        return second
    try:
        first = first or steps.judged()
    except FccoError:
        return second
    by_patience = ending(steps.planned, solution).how == "budget"  # not by the budget itself
    if by_patience and not first.report.solved and not better(second, first, convex=True):
        first = steps.again()
    if better(second, first, convex=True):
        return second
    return first


def _attained(answer: Answer) -> bool:
    """Whether the report finds a solution, and proves that there is one."""
    from fccomodel import report as judging

    kkt = answer.report
    return kkt.solved and bool(judging.excluded(answer.planned.analysis, kkt.gap, "unattained"))


def _without_optimum(steps: _Steps, solution: Solution, form: conic.Conic, outcome: str) -> Answer:
    """The answer if the interior-point method proves that there is no optimum, or ends the whole run."""
    from fccomodel import conic

    proof: Failure | None = None
    if outcome == "infeasible":
        proof = conic.conflict(form, steps.request.deadlines.seconds_for(patience.SHORTEST))
    elif outcome == "unbounded":
        way = conic.endless(form)
        if way is not None:
            point, failure = way
            return steps.judged(
                replace(solution, variables=point, multipliers={}, limits={}, failure=failure)
            )
        proof = conic.empty(form)
    if proof is not None:
        return steps.judged(replace(solution, failure=proof))
    if steps.answer is not None:
        return steps.answer
    planned, program = steps.planned, steps.program
    if solution.failure is None:
        planned, program, solution = steps.ran_again()
    if solution.status in ("stopped", "infeasible"):
        proof = conic.conflict(form, steps.request.deadlines.seconds_for(patience.SHORTEST))
        known = solution.failure
        if proof is not None and (known is None or known.radius < proof.radius):
            solution = replace(solution, failure=proof)
    return judged(steps.request, planned, program, solution)
