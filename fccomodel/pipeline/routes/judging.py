"""The report on where a run ended, and which of two answers is better."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import replace
from threading import Event
from typing import TYPE_CHECKING

from fccomodel.pipeline.routes.records import Answer, Request
from fccomodel.pipeline.stages import report

if TYPE_CHECKING:
    from fccomodel.core.failure import Failure
    from fccomodel.execution.run import Solution
    from fccomodel.pipeline.records import Planned
    from fccomodel.program.emit import Program
    from fccomodel.report import KKTReport

#: How many times the tolerance the report may find the residual of an answer to be.
TOLERANCE_FACTOR = 10.0
#: Objectives that differ by less are equal, relative to the objective ...
EQUAL_OBJECTIVES = 1e-6
#: ... or to this size, whichever is larger.
SMALLEST_OBJECTIVE = 1e-2
#: The share of a budget in seconds that a proof may take that constraints conflict.
PROOF_SHARE = 0.1


def judged(request: Request, planned: Planned, program: Program, solution: Solution) -> Answer:
    """The end of a run with its report, and with the failure that the report finds or bears out.

    Ctrl-C ends the report's search and what would come after it.
    """
    from fccomodel import report as judging
    from fccomodel.execution.run.machine import interruptible

    until = request.deadlines.for_report()
    with nullcontext(Event()) if solution.interrupted else interruptible() as asked:
        kkt = report(planned, solution, sensitive=request.sensitive, until=until, stop=asked.is_set)
    if asked.is_set():
        solution = replace(solution, ended="interrupted", stopped="interrupted")
    failure = judging.unmet(planned.bound, kkt)
    claimed = solution.failure
    if failure is None and claimed is not None and kkt.failure != claimed.kind:
        if kkt.relative["feasibility"] > judging.FEASIBLE:
            failure = _conflict(planned, kkt)
        if failure is None and not kkt.failure:
            solution = replace(solution, failure=None)
    if failure is not None:
        solution, kkt = replace(solution, failure=failure), judging.failed(kkt, failure, convex=True)
    return Answer(planned=planned, program=program, solution=solution, report=kkt)


def _conflict(planned: Planned, kkt: KKTReport) -> Failure | None:
    """A proof that no point meets the constraints, if a run knew that only of points nearby."""
    from fccomodel import conic

    if not planned.finishes:
        return None
    see, seconds = planned.analysis.see, planned.budget.seconds or 0.0
    sides = {label: row.value for label, row in kkt.constraints.items()}
    proof = conic.disproved(
        planned.bound, lambda expr: see(expr).interval.value, sides, PROOF_SHARE * seconds
    )
    if proof is not None and math.isinf(proof.radius):
        return proof
    return None


def better(new: Answer, old: Answer, *, convex: bool) -> bool:
    """Whether an answer is better than another one.

    It is if its objective is better and its constraints hold as well, or at the tolerance. In a
    convex problem a smaller residual is enough, and a gain that is negligible does not count.
    """
    gain = old.report.objective - new.report.objective
    if old.planned.problem.objective.sense == "maximize":
        gain = -gain
    tolerance = old.planned.tolerance
    if convex:
        allowed = tolerance
    else:
        allowed = TOLERANCE_FACTOR * tolerance
    gains = new.report.feasibility <= max(old.report.feasibility, allowed) and gain > 0
    if not convex:
        return gains
    return residual(new.report) <= residual(old.report) or (gains and not negligible(old.report, gain))


def settled(answer: Answer, factor: float = TOLERANCE_FACTOR) -> bool:
    """Whether the residual, by the problem's scales, is at most ``factor`` times the tolerance."""
    return residual(answer.report) <= answer.planned.tolerance * factor


def residual(kkt: KKTReport) -> float:
    """The residual by the problem's scales, or the plain one."""
    return kkt.relative.get("epsilon", kkt.epsilon)


def negligible(kkt: KKTReport, gap: float | None) -> bool:
    """Whether a difference of objectives is known and too small to count."""
    return gap is not None and abs(gap) <= EQUAL_OBJECTIVES * max(abs(kkt.objective), SMALLEST_OBJECTIVE)
