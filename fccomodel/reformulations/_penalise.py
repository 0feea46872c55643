"""Constraints as penalties in the objective."""

from __future__ import annotations

import dataclasses
from typing import Any

from fccomodel import ir
from fccomodel.penalty import Penalty
from fccomodel.reformulations._base import Recover, Reformulation, same
from fccomodel.rewrite import apply as make


def penalty(*, name: str, order: int, formula: str, account: str, cite: str, **how: Any) -> Reformulation:
    """A penalty as a reformulation; ``how``: the atoms ``le`` and ``eq`` of a constraint's value, and fields of ``Penalty``."""

    def apply(problem: ir.Problem) -> tuple[ir.Problem, Recover, list[str]]:
        if not problem.constraints:
            return problem, same, []
        return penalise(problem, **how), same, [account]

    return Reformulation(
        name=name,
        order=order,
        role="penalty",
        formula=formula,
        apply=apply,
        removes=("constraints",),
        gives=("composition",),
        cite=cite,
    )


def penalise(problem: ir.Problem, *, le: str, eq: str, **how: Any) -> ir.Problem:
    """The problem without its constraints: their penalties by the atoms ``le`` and ``eq`` added to the objective."""
    objective = problem.objective.expr
    for constraint in problem.constraints:
        if not ir.variables_of(constraint.body):
            continue
        op = le if constraint.kind == "le" else eq
        term: ir.Expr = Penalty(
            label=constraint.label, kind=constraint.kind, op=op, args=(constraint.body,), span=constraint.span, **how
        )
        if constraint.binders:
            term = ir.Reduce(
                kind="sum", binders=constraint.binders, condition=constraint.condition, body=term, span=constraint.span
            )
        objective = make("add", objective, term, span=constraint.span)
    return dataclasses.replace(problem, objective=dataclasses.replace(problem.objective, expr=objective), constraints=())
