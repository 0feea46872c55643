"""A plan to its program, which is refused if a run would take more memory than there is."""

from __future__ import annotations

from fccomodel.core import ir, memory
from fccomodel.core.diagnostics import refuse
from fccomodel.data.bound import Bound
from fccomodel.plan import Plan
from fccomodel.program import errors
from fccomodel.program.emit import Program, emit
from fccomodel.program.lower import foreseen, lower, over_all_ranks


def program_of(problem: ir.Problem, bound: Bound, plan: Plan, *, all_ranks: bool = False) -> Program:
    """The text of a standalone solver and its data: the plan lowered to graphs of values, printed.

    ``all_ranks``: the program is one of several ranks. Raises F0615 for a race, whose winner is not
    known before it has run, and F0704 if a run would take more memory than there is.
    """
    if plan.entrants:
        refuse(errors.no_program(plan.entrants), source=problem.source)
    lowered = lower(problem, bound, plan)
    needed, left = foreseen(lowered), memory.available()
    if needed.total > left:
        of = problem.objective.expr if needed.of is None else needed.of
        error = errors.memory_foreseen(needed.total, left, needed.largest, problem.text(of), of.span)
        refuse(error, source=problem.source)
    if all_ranks:
        lowered = over_all_ranks(lowered)
    return emit(lowered)
